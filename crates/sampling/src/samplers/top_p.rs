//! Top-p, or nucleus sampling (Holtzman et al., 2019): the best tokens stay whose probabilities together reach `p`.

use super::{Sampler, Spec};
use crate::candidates::weight;
use crate::{Candidate, Candidates, SamplingError};

pub(super) const SPEC: Spec = Spec {
    name: "top_p",
    letter: 'p',
    aliases: &["nucleus"],
    build: |options| {
        let (p, min_keep) = (options.top_p, options.min_keep.max(1));
        (p < 1.0).then(|| {
            Box::new(TopP {
                p: f64::from(p),
                min_keep,
            }) as Box<dyn Sampler>
        })
    },
};

#[derive(Debug)]
struct TopP {
    p: f64,
    min_keep: usize,
}

impl Sampler for TopP {
    fn apply(&mut self, candidates: &mut Candidates<'_>) -> Result<(), SamplingError> {
        match self.last_of_nucleus(candidates) {
            Some((last, kept)) if kept >= self.min_keep => candidates.keep_through(last),
            _ => candidates.keep_best(self.min_keep),
        }
        Ok(())
    }
}

impl TopP {
    /// The worst token of the smallest set of best tokens that reaches `p`, and the size of that set.
    ///
    /// A whole vocabulary is not sorted for it: tokens are counted into buckets by their distance from the best logit, and only the
    /// bucket in which the sum is reached is sorted.
    fn last_of_nucleus(&self, candidates: &Candidates<'_>) -> Option<(Candidate, usize)> {
        const BUCKETS: usize = 1024;
        const PER_UNIT: f32 = 32.0; // so the last bucket holds all that is 32 or more below the best: below e^-32 of its weight each
        let max = candidates.max_logit();
        let enough = self.p * candidates.total_weight();
        let bucket = |logit: f32| (((max - logit) * PER_UNIT) as usize).min(BUCKETS - 1);
        let mut filled = vec![(0.0_f64, 0_usize); BUCKETS];
        for candidate in candidates.iter() {
            if let Some((sum, count)) = filled.get_mut(bucket(candidate.logit)) {
                *sum += f64::from(weight(candidate.logit, max));
                *count += 1;
            }
        }
        let (mut sum, mut kept, mut chosen) = (0.0, 0, BUCKETS - 1);
        for (i, &(weights, count)) in filled.iter().enumerate().take(BUCKETS - 1) {
            if sum + weights >= enough && count > 0 {
                chosen = i;
                break;
            }
            sum += weights;
            kept += count;
        }
        let members = candidates.iter().filter(|c| bucket(c.logit) == chosen);
        let mut members: Vec<Candidate> = members.collect();
        members.sort_unstable_by(Candidate::rank);
        for candidate in &members {
            sum += f64::from(weight(candidate.logit, max));
            kept += 1;
            if sum >= enough {
                return Some((*candidate, kept));
            }
        }
        // Rounding left the sum a hair below: the worst member is the last.
        members.last().map(|last| (*last, kept))
    }
}
