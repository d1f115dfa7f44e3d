//! `SuperBPE`: numbers are apart, and their digits in groups of three from the end. Everything else merges across words.

use super::Emit;
use crate::unicode::{Class, Reader};

/// `(?=(\d{3})+(?!\d))`: a cut, without a character of its own, wherever threes of digits are left to the end of a run.
pub(super) fn digit_groups(text: &str, emit: Emit<'_>) {
    let reader = Reader::new(text);
    let mut start = 0;
    let mut pos = 0;
    while let Some((class, next)) = reader.class(pos) {
        if !class.is(Class::DIGIT) {
            pos = next;
            continue;
        }
        let end = reader.run(pos, Class::DIGIT);
        let digits = text.get(pos..end).unwrap_or_default().chars().count();
        let mut cut = reader.run_up_to(pos, Class::DIGIT, digits % 3);
        while cut < end {
            if start < cut {
                emit(text.get(start..cut).unwrap_or_default());
            }
            start = cut;
            cut = reader.run_up_to(cut, Class::DIGIT, 3);
        }
        pos = end;
    }
    if start < text.len() {
        emit(text.get(start..).unwrap_or_default());
    }
}
