//! The chain: bias, the samplers in their order, the draw.

use crate::candidates::weight;
use crate::samplers::LogitBias;
use crate::{Candidate, Candidates, Sampler, SamplerOptions, SamplingError, Xoshiro256};
use std::hash::{BuildHasher, RandomState};
use std::ops::ControlFlow;

/// Chooses tokens for one sequence.
#[derive(Debug)]
pub struct Chain {
    samplers: Vec<Box<dyn Sampler>>,
    greedy: bool,
    seed: u32,
    random: Xoshiro256,
    list: Vec<Candidate>, // storage of `Candidates`, kept from call to call
}

impl Chain {
    /// The chain that the options describe.
    ///
    /// # Errors
    /// [`SamplingError::Option`] names the first option outside its range.
    pub fn new(options: &SamplerOptions) -> Result<Self, SamplingError> {
        options.validate()?;
        let mut samplers: Vec<Box<dyn Sampler>> = Vec::new();
        if !options.logit_bias.is_empty() {
            samplers.push(Box::new(LogitBias::new(&options.logit_bias)));
        }
        samplers.extend(options.order.iter().filter_map(|kind| kind.build(options)));
        // The hasher of a fresh map is the standard library's only source of randomness.
        let seed = options
            .seed
            .unwrap_or_else(|| RandomState::new().hash_one(0) as u32);
        Ok(Self {
            samplers,
            greedy: options.temperature == 0.0,
            seed,
            random: Xoshiro256::new(u64::from(seed)),
            list: Vec::new(),
        })
    }

    /// The seed in use: that of the options, or the fresh one taken for `None`. Giving it again gives the same tokens.
    pub fn seed(&self) -> u32 {
        self.seed
    }

    /// Appends a sampler of the caller's own to the end of the chain, before the draw.
    pub fn push(&mut self, sampler: Box<dyn Sampler>) {
        self.samplers.push(sampler);
    }

    /// Tells the samplers which token came next. The penalties count the tokens of the prompt too, so those are to be told as well.
    pub fn accept(&mut self, token: u32) {
        for sampler in &mut self.samplers {
            sampler.accept(token);
        }
    }

    /// Chooses a token from the logits of one position, `[vocabulary]`, which are changed in doing so. It is not accepted yet.
    ///
    /// A token of weight w is drawn if the random number falls into its share of the sum of all weights, laid side by side in the order of ids.
    ///
    /// # Errors
    /// An empty row, a logit that is not a number, a bias for a token outside the row, or all logits minus infinity.
    pub fn sample(&mut self, logits: &mut [f32]) -> Result<u32, SamplingError> {
        let len = logits.len();
        if len == 0 {
            return Err(SamplingError::EmptyVocabulary);
        }
        if logits.iter().map(|x| u32::from(x.is_nan())).sum::<u32>() > 0 {
            let token = logits.iter().position(|x| x.is_nan()).unwrap_or_default() as u32;
            return Err(SamplingError::NotANumber { token, len });
        }
        let mut candidates = Candidates::new(logits, &mut self.list);
        for sampler in &mut self.samplers {
            sampler.apply(&mut candidates)?;
        }
        // One number for each token, however many candidates are left, so that the sequence of numbers does not depend on them.
        let random = self.random.next_f64();
        let max = candidates.max_logit();
        if max == f32::NEG_INFINITY {
            return Err(SamplingError::NothingLeft { len });
        }
        let drawn = if self.greedy {
            candidates.best()
        } else {
            draw(&mut candidates, max, random)
        };
        drawn
            .map(|candidate| candidate.id)
            .ok_or(SamplingError::NothingLeft { len })
    }

    /// Starts anew: the samplers forget the tokens, and the random numbers begin again.
    pub fn reset(&mut self) {
        for sampler in &mut self.samplers {
            sampler.reset();
        }
        self.random = Xoshiro256::new(u64::from(self.seed));
    }
}

/// The candidate at `random` (from 0 up to, but not with, 1) of the way through the summed weights, in the order of ids.
fn draw(candidates: &mut Candidates<'_>, max: f32, random: f64) -> Option<Candidate> {
    let target = random * candidates.total_weight();
    let mut sum = 0.0;
    let mut last = None;
    // A walk to the end, which rounding makes possible, takes the last token that has a weight.
    let _ = candidates.by_id().try_for_each(|candidate| {
        let weight = f64::from(weight(candidate.logit, max));
        if weight > 0.0 {
            sum += weight;
            last = Some(candidate);
        }
        if sum > target {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    last
}
