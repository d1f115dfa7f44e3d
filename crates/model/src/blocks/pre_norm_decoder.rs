//! The plain decoder of Llama and its kin: a norm before attention and before the feed-forward network, both added to the residual
//! stream, then a last norm and the output matrix.

use super::{GatedFeedForward, SelfAttention};
use crate::{Loader, ModelError, arch::rms_eps};
use puna_graph::{Graph, GraphBuilder, Reach, ops::Rope};

/// What differs from one architecture to the next.
pub struct PreNormDecoder {
    /// Rotary positions of every layer.
    pub rope: Rope,
    /// Factor on attention scores.
    pub attention_scale: f32,
    /// The feed-forward network.
    pub feed_forward: GatedFeedForward,
}

impl PreNormDecoder {
    /// The whole forward pass, from tokens to logits.
    pub fn build(&self, model: &Loader<'_>) -> Result<Graph, ModelError> {
        let layers = model.hyper().block_count;
        let eps = rms_eps(model)?;
        let attention = SelfAttention {
            rope: &self.rope,
            reach: Reach::Full,
            scale: self.attention_scale,
            norm_eps: eps,
        };
        let mut g = GraphBuilder::new();
        let mut h = g.embed(&model.matrix("token_embd.weight")?, 1.0); // [tokens, embedding]
        for i in 0..layers {
            let layer = model.layer(i);
            let x = g.rms_norm(h, &layer.vector("attn_norm.weight")?, eps)?;
            let mut x = attention.attend(&mut g, &layer, x)?;
            if i + 1 == layers {
                // From here on only the rows whose logits are wanted.
                (x, h) = (g.select_outputs(x)?, g.select_outputs(h)?);
            }
            let x = SelfAttention::project(&mut g, &layer, x)?;
            h = g.add(h, x)?;

            let x = g.rms_norm(h, &layer.vector("ffn_norm.weight")?, eps)?;
            let x = self.feed_forward.forward(&mut g, &layer, x)?;
            h = g.add(h, x)?;
        }
        let h = g.rms_norm(h, &model.vector("output_norm.weight")?, eps)?;
        let bias = model.optional_vector("output.bias")?;
        let logits = g.linear(h, &model.output()?, bias.as_ref())?; // [outputs, vocabulary]
        Ok(g.finish(logits))
    }
}
