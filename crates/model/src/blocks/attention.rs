//! Self-attention with rotary positions, optional biases and optional norms of queries and keys.

use crate::{Layer, ModelError};
use puna_graph::{CacheLayer, GraphBuilder, Reach, ValueId, Vector, Weight, ops::Rope};

/// What differs from layer to layer and from architecture to architecture.
pub struct SelfAttention<'a> {
    /// Rotary positions.
    pub rope: &'a Rope,
    /// How far back the layer looks.
    pub reach: Reach,
    /// Factor on the scores.
    pub scale: f32,
    /// `eps` of the norms of queries and keys, which are applied where the layer has them.
    pub norm_eps: f32,
}

impl SelfAttention<'_> {
    /// Queries, keys and values of `x`, attention, and the projection back: `[tokens, embedding]` to `[tokens, attention out]`.
    /// The output projection is left to [`Self::project`], so that the last layer can drop rows in between.
    pub fn attend(
        &self,
        g: &mut GraphBuilder,
        layer: &Layer<'_, '_>,
        x: ValueId,
    ) -> Result<ValueId, ModelError> {
        let hyper = layer.model().hyper();
        let (heads, kv_heads) = (
            hyper.head_count[layer.index],
            hyper.head_count_kv[layer.index],
        );
        let [wq, wk, wv] = projections(layer)?;
        let q = g.linear(x, &wq.0, wq.1.as_ref())?; // [tokens, heads * key_dim]
        let k = g.linear(x, &wk.0, wk.1.as_ref())?; // [tokens, kv_heads * key_dim]
        let v = g.linear(x, &wv.0, wv.1.as_ref())?; // [tokens, kv_heads * value_dim]
        let q = self.norm_heads(g, layer, "attn_q_norm.weight", q)?;
        let k = self.norm_heads(g, layer, "attn_k_norm.weight", k)?;
        let q = g.rope(q, self.rope)?;
        let k = g.rope(k, self.rope)?;
        let cache = CacheLayer {
            kv_heads,
            key_dim: hyper.key_length,
            value_dim: hyper.value_length,
            reach: self.reach,
        };
        Ok(g.attention([q, k, v], heads, cache, self.scale, None)?)
    }

    /// `[rows, attention out]` to `[rows, embedding]`.
    pub fn project(
        g: &mut GraphBuilder,
        layer: &Layer<'_, '_>,
        x: ValueId,
    ) -> Result<ValueId, ModelError> {
        let bias = layer.optional_vector("attn_output.bias")?;
        Ok(g.linear(x, &layer.matrix("attn_output.weight")?, bias.as_ref())?)
    }

    fn norm_heads(
        &self,
        g: &mut GraphBuilder,
        layer: &Layer<'_, '_>,
        name: &str,
        x: ValueId,
    ) -> Result<ValueId, ModelError> {
        match layer.optional_vector(name)? {
            Some(weight) => Ok(g.rms_norm(x, &weight, self.norm_eps)?),
            None => Ok(x),
        }
    }
}

type Projection = (Weight, Option<Vector>);

/// Query, key and value matrices with their biases, from one fused tensor or from three.
fn projections(layer: &Layer<'_, '_>) -> Result<[Projection; 3], ModelError> {
    let Some(fused) = layer.optional_matrix("attn_qkv.weight")? else {
        let load = |name: &str| {
            Ok::<_, ModelError>((
                layer.matrix(&format!("{name}.weight"))?,
                layer.optional_vector(&format!("{name}.bias"))?,
            ))
        };
        return Ok([load("attn_q")?, load("attn_k")?, load("attn_v")?]);
    };
    let bias = layer.optional_vector("attn_qkv.bias")?;
    let hyper = layer.model().hyper();
    let (heads, kv_heads) = (
        hyper.head_count[layer.index],
        hyper.head_count_kv[layer.index],
    );
    let q = heads * hyper.key_length;
    let k = q + kv_heads * hyper.key_length;
    let v = k + kv_heads * hyper.value_length;
    let part = |name: &str, rows: std::ops::Range<usize>| {
        let part_bias = bias
            .as_ref()
            .map(|b| Vector::new(format!("{}[{name}]", b.name), &b.data[rows.clone()]));
        Ok::<_, ModelError>((
            fused.row_slice(format!("{}[{name}]", fused.name()), rows)?,
            part_bias,
        ))
    };
    Ok([part("q", 0..q)?, part("k", q..k)?, part("v", k..v)?])
}
