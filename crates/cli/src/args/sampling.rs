//! How tokens are chosen, and when to stop.

use super::PromptArgs;
use crate::failure::usage_error;
use anyhow::Result;
use clap::Args;
use puna::{GenerationOptions, SamplerKind, SamplerOptions};

/// How tokens are chosen, and when to stop.
#[derive(Args)]
#[command(next_help_heading = "Sampling")]
pub(crate) struct SamplingArgs {
    /// Most tokens to generate; -1 for no limit, -2 until the context is full
    #[arg(short = 'n', long = "predict", visible_alias = "n-predict", value_name = "N", default_value_t = -1, allow_negative_numbers = true)]
    predict: i64,
    /// Seed; -1 for a fresh one
    #[arg(short, long, value_name = "N", default_value_t = -1, allow_negative_numbers = true,
          value_parser = clap::value_parser!(i64).range(-1..=i64::from(u32::MAX)))]
    seed: i64,
    /// Temperature; 0 always takes the best token
    #[arg(
        long,
        visible_alias = "temperature",
        value_name = "X",
        default_value_t = 0.8,
        allow_negative_numbers = true
    )]
    temp: f32,
    /// Keep the K best tokens; 0 is off
    #[arg(
        long,
        value_name = "K",
        default_value_t = 40,
        allow_negative_numbers = true
    )]
    top_k: i32,
    /// Keep the best tokens that reach this probability together; 1 is off
    #[arg(
        long,
        value_name = "P",
        default_value_t = 0.95,
        allow_negative_numbers = true
    )]
    top_p: f32,
    /// Keep tokens that have this share of the best one's probability; 0 is off
    #[arg(
        long,
        value_name = "P",
        default_value_t = 0.05,
        allow_negative_numbers = true
    )]
    min_p: f32,
    /// How many of the last tokens the penalties look at; 0 is off, -1 is the context
    #[arg(long, value_name = "N", default_value_t = 64, allow_negative_numbers = true,
          value_parser = clap::value_parser!(i64).range(-1..=i64::from(i32::MAX)))]
    repeat_last_n: i64,
    /// Divides the logits of recent tokens; 1 is off
    #[arg(
        long,
        value_name = "X",
        default_value_t = 1.0,
        allow_negative_numbers = true
    )]
    repeat_penalty: f32,
    /// Taken off the logit of a recent token for each time it occurred
    #[arg(
        long,
        value_name = "X",
        default_value_t = 0.0,
        allow_negative_numbers = true
    )]
    frequency_penalty: f32,
    /// Taken off the logit of a recent token once
    #[arg(
        long,
        value_name = "X",
        default_value_t = 0.0,
        allow_negative_numbers = true
    )]
    presence_penalty: f32,
    /// The samplers in their order, by name [default: `penalties;top_k;top_p;min_p;temperature`]
    #[arg(long, value_name = "NAMES")]
    samplers: Option<String>,
    /// The samplers in their order, by letter [default: `ekpmt`]
    #[arg(
        long,
        visible_alias = "sampling-seq",
        value_name = "LETTERS",
        conflicts_with = "samplers"
    )]
    sampler_seq: Option<String>,
    /// Add to a token's logit: 15043+1, 15043-1.5, 15043-inf bans it; may be repeated
    #[arg(short, long, value_name = "ID+BIAS", value_parser = bias)]
    logit_bias: Vec<(u32, f32)>,
    /// Go on where the model would end
    #[arg(long)]
    ignore_eos: bool,
    /// Stop at this text, which is not printed; may be repeated
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
    reverse_prompt: Vec<String>,
}

/// How many tokens are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Predict {
    /// As many as the model gives.
    Unlimited,
    /// As many as the context has room for.
    FillContext,
    /// At most so many.
    Limit(usize),
}

impl SamplingArgs {
    /// How many tokens are wanted.
    pub(crate) fn predict(&self) -> Result<Predict> {
        match self.predict {
            -1 => Ok(Predict::Unlimited),
            -2 => Ok(Predict::FillContext),
            n => usize::try_from(n).map(Predict::Limit).map_err(|_| {
                usage_error(format!("-n {n}: expected a number from 0 up, -1 for no limit or -2 until the context is full"))
            }),
        }
    }

    /// Whether the options can be used with any model.
    pub(crate) fn check(&self, prompt: &PromptArgs) -> Result<()> {
        self.predict()?;
        self.options(0, prompt).map(drop)
    }

    /// Options of a generation, its length aside, for a model with this context.
    pub(crate) fn options(&self, context: usize, prompt: &PromptArgs) -> Result<GenerationOptions> {
        let order = match (&self.samplers, &self.sampler_seq) {
            (Some(names), _) => SamplerKind::order_from_names(names),
            (None, Some(letters)) => SamplerKind::order_from_letters(letters),
            (None, None) => Ok(SamplerKind::ALL.to_vec()),
        };
        let sampler = SamplerOptions {
            seed: u32::try_from(self.seed).ok(),
            temperature: self.temp,
            top_k: self.top_k,
            top_p: self.top_p,
            min_p: self.min_p,
            repeat_last_n: usize::try_from(self.repeat_last_n).unwrap_or(context),
            repeat_penalty: self.repeat_penalty,
            frequency_penalty: self.frequency_penalty,
            presence_penalty: self.presence_penalty,
            logit_bias: self.logit_bias.clone(),
            order: order.map_err(|error| usage_error(error.to_string()))?,
            ..SamplerOptions::default()
        };
        sampler
            .validate()
            .map_err(|error| usage_error(error.to_string()))?;
        let mut options = GenerationOptions::default();
        options.sampler = sampler;
        options.ignore_eos = self.ignore_eos;
        options.stop = self
            .reverse_prompt
            .iter()
            .map(|text| prompt.argument(text))
            .collect();
        if options.stop.iter().any(String::is_empty) {
            return Err(usage_error("-r: the text to stop at is empty"));
        }
        Ok(options)
    }
}

fn bias(text: &str) -> Result<(u32, f32), String> {
    let parsed = || {
        let at = text.find(['+', '-'])?;
        let (id, bias) = text.split_at_checked(at)?;
        Some((id.trim().parse().ok()?, bias.trim().parse().ok()?))
    };
    parsed().ok_or_else(|| {
        "expected a token id and a signed number, as in 15043+1 or 15043-inf".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::bias;

    #[test]
    fn a_bias_is_an_id_and_a_signed_number() {
        assert_eq!(bias("15043+1"), Ok((15043, 1.0)));
        assert_eq!(bias("7-1.5"), Ok((7, -1.5)));
        assert_eq!(bias("7-inf"), Ok((7, f32::NEG_INFINITY)));
        for wrong in ["7", "+1", "x+1", "7+x", "7+", ""] {
            assert!(bias(wrong).is_err(), "{wrong}");
        }
    }
}
