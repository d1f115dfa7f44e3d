//! Gated feed-forward network.

use crate::{Layer, ModelError};
use puna_graph::{GraphBuilder, ValueId, ops::ActivationKind};

/// `down(activation(gate(x)) * up(x))`: `[rows, embedding]` to the same.
pub fn gated_feed_forward(
    g: &mut GraphBuilder,
    layer: &Layer<'_, '_>,
    x: ValueId,
    kind: ActivationKind,
) -> Result<ValueId, ModelError> {
    let mut linear = |g: &mut GraphBuilder, x, name: &str| {
        let weight = layer.matrix(&format!("{name}.weight"))?;
        let bias = layer.optional_vector(&format!("{name}.bias"))?;
        Ok::<_, ModelError>(g.linear(x, &weight, bias.as_ref())?)
    };
    let gate = linear(g, x, "ffn_gate")?; // [rows, feed_forward]
    let up = linear(g, x, "ffn_up")?; // [rows, feed_forward]
    let hidden = g.gated(gate, up, kind)?;
    linear(g, hidden, "ffn_down")
}
