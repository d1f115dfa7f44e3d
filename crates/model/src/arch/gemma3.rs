//! Gemma 3 (Gemma team, 2025): norms before and after each part, five layers with a sliding window to one with full attention, each
//! kind with its own rotary base.

use super::{Architecture, attention_scale, rms_eps};
use crate::{
    Loader, ModelError,
    Size::{AttentionOut, Embedding, FeedForward, KeyDim, Keys, Queries, Values, Vocabulary},
    TensorSpec, Transform,
    blocks::{GatedFeedForward, SelfAttention},
    optional, required,
};
use puna_graph::{
    Graph, GraphBuilder, Reach,
    ops::{ActivationKind, Rope, RopeOrder, RopeScaling},
};

/// See the file's text.
pub(super) const ARCHITECTURE: Architecture = Architecture {
    name: "gemma3",
    hugging_face: &["Gemma3ForCausalLM", "Gemma3ForConditionalGeneration"],
    tensors: TENSORS,
    build,
};

/// Every sixth layer sees the whole context, unless the file says otherwise; a pattern of 0 says nothing.
const DEFAULT_PATTERN: usize = 6;
/// Layers of the 27B model, whose attention scale follows from the width and not from the head.
const LAYERS_27B: usize = 62;

const TENSORS: &[TensorSpec] = &[
    required(
        "token_embd.weight",
        "model.embed_tokens.weight",
        &[Vocabulary, Embedding],
    ),
    required("output_norm.weight", "model.norm.weight", &[Embedding]).transform(Transform::AddOne),
    optional("output.weight", "lm_head.weight", &[Vocabulary, Embedding]),
    required(
        "blk.{i}.attn_norm.weight",
        "model.layers.{i}.input_layernorm.weight",
        &[Embedding],
    )
    .transform(Transform::AddOne),
    required(
        "blk.{i}.attn_q.weight",
        "model.layers.{i}.self_attn.q_proj.weight",
        &[Queries, Embedding],
    ),
    required(
        "blk.{i}.attn_k.weight",
        "model.layers.{i}.self_attn.k_proj.weight",
        &[Keys, Embedding],
    ),
    required(
        "blk.{i}.attn_v.weight",
        "model.layers.{i}.self_attn.v_proj.weight",
        &[Values, Embedding],
    ),
    required(
        "blk.{i}.attn_output.weight",
        "model.layers.{i}.self_attn.o_proj.weight",
        &[Embedding, AttentionOut],
    ),
    required(
        "blk.{i}.attn_q_norm.weight",
        "model.layers.{i}.self_attn.q_norm.weight",
        &[KeyDim],
    )
    .transform(Transform::AddOne),
    required(
        "blk.{i}.attn_k_norm.weight",
        "model.layers.{i}.self_attn.k_norm.weight",
        &[KeyDim],
    )
    .transform(Transform::AddOne),
    required(
        "blk.{i}.post_attention_norm.weight",
        "model.layers.{i}.post_attention_layernorm.weight",
        &[Embedding],
    )
    .transform(Transform::AddOne),
    required(
        "blk.{i}.ffn_norm.weight",
        "model.layers.{i}.pre_feedforward_layernorm.weight",
        &[Embedding],
    )
    .transform(Transform::AddOne),
    required(
        "blk.{i}.ffn_gate.weight",
        "model.layers.{i}.mlp.gate_proj.weight",
        &[FeedForward, Embedding],
    ),
    required(
        "blk.{i}.ffn_up.weight",
        "model.layers.{i}.mlp.up_proj.weight",
        &[FeedForward, Embedding],
    ),
    required(
        "blk.{i}.ffn_down.weight",
        "model.layers.{i}.mlp.down_proj.weight",
        &[Embedding, FeedForward],
    ),
    required(
        "blk.{i}.post_ffw_norm.weight",
        "model.layers.{i}.post_feedforward_layernorm.weight",
        &[Embedding],
    )
    .transform(Transform::AddOne),
];

fn build(model: &mut Loader<'_>) -> Result<Graph, ModelError> {
    let width = model.hyper().embedding_length;
    let eps = rms_eps(model)?;
    let attention = LayerAttention::read(model)?;
    let feed_forward = GatedFeedForward {
        kind: ActivationKind::GeluTanh,
        factors: true,
    };

    let mut g = GraphBuilder::new();
    let mut h = g.embed(&model.matrix("token_embd.weight")?, (width as f32).sqrt()); // [tokens, embedding]
    for i in 0..model.hyper().block_count {
        let layer = model.layer(i);
        let x = g.rms_norm(h, &layer.vector("attn_norm.weight")?, eps)?;
        let mut x = attention.of(i).attend(&mut g, &layer, x)?;
        if i + 1 == model.hyper().block_count {
            // From here on only the rows whose logits are wanted.
            (x, h) = (g.select_outputs(x)?, g.select_outputs(h)?);
        }
        let x = SelfAttention::project(&mut g, &layer, x)?;
        let x = g.rms_norm(x, &layer.vector("post_attention_norm.weight")?, eps)?;
        h = g.add(h, x)?;

        let x = g.rms_norm(h, &layer.vector("ffn_norm.weight")?, eps)?;
        let x = feed_forward.forward(&mut g, &layer, x)?;
        let x = g.rms_norm(x, &layer.vector("post_ffw_norm.weight")?, eps)?;
        h = g.add(h, x)?;
    }
    let h = g.rms_norm(h, &model.vector("output_norm.weight")?, eps)?;
    let mut logits = g.linear(h, &model.output()?, None)?; // [outputs, vocabulary]
    let cap = |key| model.keys().positive(key, |_| true, "a positive number");
    if let Some(cap) = cap("final_logit_softcapping")? {
        logits = g.softcap(logits, cap);
    }
    Ok(g.finish(logits))
}

/// The two kinds of attention, and which layer has which.
struct LayerAttention {
    /// Of each layer: whether it looks through the window.
    local_layers: Vec<bool>,
    window: Reach,
    local: Rope,
    global: Rope,
    scale: f32,
    eps: f32,
}

impl LayerAttention {
    fn read(model: &Loader<'_>) -> Result<Self, ModelError> {
        let (hyper, keys) = (model.hyper(), model.keys());
        let window = keys.size("attention.sliding_window")?;
        let global = hyper.rope(&keys, RopeOrder::Neox, None)?;
        Ok(Self {
            local_layers: match window {
                Some(_) => local_layers(model)?,
                None => vec![false; hyper.block_count],
            },
            window: window.map_or(Reach::Full, |n| Reach::Window(n as u32)),
            local: Rope {
                base: keys.rope_base("rope.freq_base_swa")?,
                scaling: RopeScaling::None,
                ..global.clone()
            },
            global,
            scale: scale(model)?,
            eps: rms_eps(model)?,
        })
    }

    /// That of layer `i`.
    fn of(&self, i: usize) -> SelfAttention<'_> {
        let (rope, reach) = if self.local_layers[i] {
            (&self.local, self.window)
        } else {
            (&self.global, Reach::Full)
        };
        SelfAttention {
            rope,
            reach,
            scale: self.scale,
            norm_eps: self.eps,
        }
    }
}

/// Factor on attention scores. Where it follows from the width, each head must have a part of it.
fn scale(model: &Loader<'_>) -> Result<f32, ModelError> {
    let hyper = model.hyper();
    if hyper.block_count != LAYERS_27B {
        return attention_scale(model);
    }
    match hyper.embedding_length / hyper.head_count[0] {
        0 => Err(ModelError::InvalidKey {
            key: model.keys().full("attention.head_count"),
            found: hyper.head_count[0].to_string(),
            expected: format!("at most the width of {}", hyper.embedding_length),
        }),
        width => Ok(1.0 / (width as f32).sqrt()),
    }
}

/// Which layers look through the window, where there is one: all but every n-th, or as an array says.
fn local_layers(model: &Loader<'_>) -> Result<Vec<bool>, ModelError> {
    const KEY: &str = "attention.sliding_window_pattern";
    let (keys, layers) = (model.keys(), model.hyper().block_count);
    let full = keys.full(KEY);
    if !matches!(keys.metadata().get(&full), Some(puna_gguf::Value::Array(_))) {
        let n = keys.size(KEY)?.unwrap_or(DEFAULT_PATTERN);
        return Ok((0..layers).map(|i| (i + 1) % n != 0).collect());
    }
    let pattern = keys.metadata().bools(&full)?.unwrap_or_default();
    if pattern.len() == layers {
        return Ok(pattern);
    }
    Err(ModelError::InvalidKey {
        key: full,
        found: format!("{} values", pattern.len()),
        expected: format!("{layers}, one per layer"),
    })
}
