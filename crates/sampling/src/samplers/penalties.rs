//! Penalties for tokens that occurred among the last `repeat_last_n`: repetition (Keskar et al., 2019), frequency and presence (as in
//! the `OpenAI` API).

use super::{Sampler, Spec};
use crate::{Candidates, SamplingError};
use std::collections::{BTreeMap, VecDeque};

pub(super) const SPEC: Spec = Spec {
    name: "penalties",
    letter: 'e',
    aliases: &["penalty", "repetitionpenalty", "repeatpenalty"],
    build: |options| {
        let (repeat, frequency, presence) = (
            options.repeat_penalty,
            options.frequency_penalty,
            options.presence_penalty,
        );
        let off = repeat == 1.0 && frequency == 0.0 && presence == 0.0;
        (options.repeat_last_n > 0 && !off).then(|| {
            Box::new(Penalties {
                last_n: options.repeat_last_n,
                repeat,
                frequency,
                presence,
                recent: VecDeque::new(),
                counts: BTreeMap::new(),
            }) as Box<dyn Sampler>
        })
    },
};

#[derive(Debug)]
struct Penalties {
    last_n: usize,
    repeat: f32,
    frequency: f32,
    presence: f32,
    recent: VecDeque<u32>,      // at most `last_n`, oldest first
    counts: BTreeMap<u32, u32>, // of the tokens in `recent`
}

impl Penalties {
    fn penalise(&self, logit: f32, count: u32) -> f32 {
        let repeated = if logit <= 0.0 {
            logit * self.repeat
        } else {
            logit / self.repeat
        };
        let result = repeated - count as f32 * self.frequency - self.presence;
        // Infinity minus infinity, from absurd options.
        if result.is_nan() {
            f32::NEG_INFINITY
        } else {
            result
        }
    }
}

impl Sampler for Penalties {
    fn apply(&mut self, candidates: &mut Candidates<'_>) -> Result<(), SamplingError> {
        for (&token, &count) in &self.counts {
            candidates.update(token, |logit| self.penalise(logit, count));
        }
        Ok(())
    }

    fn accept(&mut self, token: u32) {
        if self.recent.len() == self.last_n
            && let Some(oldest) = self.recent.pop_front()
            && let Some(count) = self.counts.get_mut(&oldest)
        {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&oldest);
            }
        }
        self.recent.push_back(token);
        *self.counts.entry(token).or_insert(0) += 1;
    }

    fn reset(&mut self) {
        self.recent.clear();
        self.counts.clear();
    }
}
