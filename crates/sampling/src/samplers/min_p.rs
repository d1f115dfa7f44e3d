//! Min-p (Nguyen et al., 2024): the tokens stay that are at least `p` times as probable as the best one.

use super::{Sampler, Spec};
use crate::{Candidates, SamplingError, math};

pub(super) const SPEC: Spec = Spec {
    name: "min_p",
    letter: 'm',
    aliases: &[],
    build: |options| {
        let (p, min_keep) = (options.min_p, options.min_keep.max(1));
        let ln_p = math::ln(f64::from(p)) as f32;
        (p > 0.0).then(|| Box::new(MinP { ln_p, min_keep }) as Box<dyn Sampler>)
    },
};

#[derive(Debug)]
struct MinP {
    ln_p: f32,
    min_keep: usize,
}

impl Sampler for MinP {
    fn apply(&mut self, candidates: &mut Candidates<'_>) -> Result<(), SamplingError> {
        // p_i >= p * p_max, in logits: the sum of the softmax cancels.
        let least = candidates.max_logit() + self.ln_p;
        if candidates.count_from(least) >= self.min_keep {
            candidates.keep_from(least);
        } else {
            candidates.keep_best(self.min_keep);
        }
        Ok(())
    }
}
