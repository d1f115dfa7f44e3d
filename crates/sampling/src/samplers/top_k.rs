//! Top-k: only the `k` best tokens stay.

use super::{Sampler, Spec};
use crate::{Candidates, SamplingError};

pub(super) const SPEC: Spec = Spec {
    name: "top_k",
    letter: 'k',
    aliases: &[],
    build: |options| {
        let k = usize::try_from(options.top_k).ok().filter(|&k| k > 0)?;
        Some(Box::new(TopK {
            k: k.max(options.min_keep),
        }))
    },
};

#[derive(Debug)]
struct TopK {
    k: usize,
}

impl Sampler for TopK {
    fn apply(&mut self, candidates: &mut Candidates<'_>) -> Result<(), SamplingError> {
        candidates.keep_best(self.k);
        Ok(())
    }
}
