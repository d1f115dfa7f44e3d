//! Gated feed-forward network.

use crate::{Layer, ModelError};
use puna_graph::{GraphBuilder, ValueId, Vector, ops::ActivationKind};

/// `down(activation(gate(x)) * up(x))`.
pub struct GatedFeedForward {
    /// The function on the gate.
    pub kind: ActivationKind,
    /// Whether factors that a file keeps beside these matrices count. They are in use for some architectures and not for others, and
    /// files are made accordingly.
    pub factors: bool,
}

impl GatedFeedForward {
    /// `[rows, embedding]` to the same.
    pub fn forward(
        &self,
        g: &mut GraphBuilder,
        layer: &Layer<'_, '_>,
        x: ValueId,
    ) -> Result<ValueId, ModelError> {
        let gate = self.linear(g, layer, x, "ffn_gate")?; // [rows, feed_forward]
        let up = self.linear(g, layer, x, "ffn_up")?; // [rows, feed_forward]
        let hidden = g.gated(gate, up, self.kind)?;
        self.linear(g, layer, hidden, "ffn_down")
    }

    fn linear(
        &self,
        g: &mut GraphBuilder,
        layer: &Layer<'_, '_>,
        x: ValueId,
        name: &str,
    ) -> Result<ValueId, ModelError> {
        let mut weight = layer.matrix(&format!("{name}.weight"))?;
        let mut bias = layer.optional_vector(&format!("{name}.bias"))?;
        if !self.factors {
            weight = weight.with_scale(1.0);
        } else if weight.scale() != 1.0 {
            // Here, unlike in attention, the factor covers the bias too.
            bias = bias.map(|b| {
                let scaled: Vec<f32> = b.data.iter().map(|x| x * weight.scale()).collect();
                Vector::new(b.name, scaled)
            });
        }
        Ok(g.linear(x, &weight, bias.as_ref())?)
    }
}
