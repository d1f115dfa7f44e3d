//! Logit bias: a number added to the logit of a token; minus infinity bans it. It always comes first and so has no name in the order.

use super::Sampler;
use crate::{Candidates, SamplingError};

#[derive(Debug)]
pub(crate) struct LogitBias {
    biases: Vec<(u32, f32)>,
}

impl LogitBias {
    pub(crate) fn new(biases: &[(u32, f32)]) -> Self {
        Self {
            biases: biases.to_vec(),
        }
    }
}

impl Sampler for LogitBias {
    fn apply(&mut self, candidates: &mut Candidates<'_>) -> Result<(), SamplingError> {
        let len = candidates.len();
        for &(token, bias) in &self.biases {
            if token as usize >= len {
                return Err(SamplingError::BiasOutOfRange { token, len });
            }
            candidates.update(token, |logit| {
                let sum = logit + bias;
                // A ban wins over a logit of plus infinity.
                if sum.is_nan() { f32::NEG_INFINITY } else { sum }
            });
        }
        Ok(())
    }
}
