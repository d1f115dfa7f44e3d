//! Words between spaces, for BPE over characters: `\S+`.

use super::{Emit, cut};
use crate::unicode::Class;

/// Runs of anything but spaces.
pub(super) fn words(text: &str, emit: Emit<'_>) {
    cut(text, emit, |r, pos| r.run_not(pos, Class::SPACE));
}
