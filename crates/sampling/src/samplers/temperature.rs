//! Temperature: logits divided by it. Below 1 the best tokens gain, above 1 the others; 0 leaves only the best token.

use super::{Sampler, Spec};
use crate::{Candidates, SamplingError};

pub(super) const SPEC: Spec = Spec {
    name: "temperature",
    letter: 't',
    aliases: &["temp"],
    build: |options| {
        let temperature = options.temperature;
        (temperature != 1.0).then(|| Box::new(Temperature { temperature }) as Box<dyn Sampler>)
    },
};

#[derive(Debug)]
struct Temperature {
    temperature: f32,
}

impl Sampler for Temperature {
    fn apply(&mut self, candidates: &mut Candidates<'_>) -> Result<(), SamplingError> {
        let max = candidates.max_logit();
        // So small a temperature that the best logit overflows is greedy as well, and must not make several logits infinite.
        let overflows = max.is_finite() && !(max / self.temperature).is_finite();
        if self.temperature == 0.0 || overflows {
            candidates.keep_best(1);
        } else {
            candidates.divide(self.temperature);
        }
        Ok(())
    }
}
