//! The options of a chain, and their ranges.

use crate::{SamplerKind, SamplingError};

/// How tokens are chosen. The defaults are llama.cpp's.
///
/// ```
/// use puna_sampling::{Chain, SamplerOptions};
/// let options = SamplerOptions { seed: Some(42), temperature: 0.7, ..SamplerOptions::default() };
/// let mut chain = Chain::new(&options)?;
/// let token = chain.sample(&mut [0.1, 2.0, -1.0])?;
/// chain.accept(token);
/// # Ok::<(), puna_sampling::SamplingError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct SamplerOptions {
    /// Seed of the draw; `None` takes a fresh one, which [`crate::Chain::seed`] tells.
    pub seed: Option<u32>,
    /// Divides the logits; 0 always takes the best token (greedy), whatever the order says.
    pub temperature: f32,
    /// Keeps the `top_k` best tokens; 0 or less is off.
    pub top_k: i32,
    /// Keeps the best tokens whose probabilities together reach `top_p`; 1 is off.
    pub top_p: f32,
    /// Keeps the tokens that are at least `min_p` times as probable as the best one; 0 is off.
    pub min_p: f32,
    /// How many of the last tokens the penalties look at; 0 is off.
    pub repeat_last_n: usize,
    /// Divides positive and multiplies negative logits of recent tokens; 1 is off.
    pub repeat_penalty: f32,
    /// Subtracted from the logit of a recent token, once for each time it occurred; 0 is off.
    pub frequency_penalty: f32,
    /// Subtracted from the logit of a recent token, once; 0 is off.
    pub presence_penalty: f32,
    /// No truncating sampler leaves fewer tokens than this; 0 counts as 1.
    pub min_keep: usize,
    /// Added to the logits before anything else; minus infinity bans a token. Token ids with their bias.
    pub logit_bias: Vec<(u32, f32)>,
    /// The samplers, in the order in which they are applied. One that is missing is off. The draw is always last.
    pub order: Vec<SamplerKind>,
}

impl Default for SamplerOptions {
    fn default() -> Self {
        Self {
            seed: None,
            temperature: 0.8,
            top_k: 40,
            top_p: 0.95,
            min_p: 0.05,
            repeat_last_n: 64,
            repeat_penalty: 1.0,
            frequency_penalty: 0.0,
            presence_penalty: 0.0,
            min_keep: 0,
            logit_bias: Vec::new(),
            order: SamplerKind::ALL.to_vec(),
        }
    }
}

impl SamplerOptions {
    /// The defaults, with temperature 0: always the best token.
    pub fn greedy() -> Self {
        Self {
            temperature: 0.0,
            ..Self::default()
        }
    }

    /// Checks each value against its range.
    pub fn validate(&self) -> Result<(), SamplingError> {
        let probability = "a number from 0 to 1";
        let number = "a finite number";
        let checks = [
            (
                "temperature",
                self.temperature,
                self.temperature >= 0.0 && self.temperature.is_finite(),
                "a finite number from 0 (greedy) up",
            ),
            (
                "top_p",
                self.top_p,
                (0.0..=1.0).contains(&self.top_p),
                probability,
            ),
            (
                "min_p",
                self.min_p,
                (0.0..=1.0).contains(&self.min_p),
                probability,
            ),
            (
                "repeat_penalty",
                self.repeat_penalty,
                self.repeat_penalty > 0.0 && self.repeat_penalty.is_finite(),
                "a finite number above 0",
            ),
            (
                "frequency_penalty",
                self.frequency_penalty,
                self.frequency_penalty.is_finite(),
                number,
            ),
            (
                "presence_penalty",
                self.presence_penalty,
                self.presence_penalty.is_finite(),
                number,
            ),
        ];
        for (option, found, fine, expected) in checks {
            if !fine {
                let found = found.to_string();
                return Err(SamplingError::Option {
                    option,
                    found,
                    expected,
                });
            }
        }
        if let Some((token, _)) = self.logit_bias.iter().find(|(_, bias)| bias.is_nan()) {
            return Err(SamplingError::Option {
                option: "logit_bias",
                found: format!("not a number for token {token}"),
                expected: "a number, or minus infinity to ban the token",
            });
        }
        Ok(())
    }
}
