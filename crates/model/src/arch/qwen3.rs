//! Qwen 3 (Yang et al., 2025): RMS norm of every query and key head before the rotation, no biases, head size of its own.

use super::{Architecture, attention_scale};
use crate::{
    Loader, ModelError,
    Size::{
        Any, AttentionOut, Embedding, FeedForward, FusedQkv, KeyDim, Keys, Queries, Values,
        Vocabulary,
    },
    TensorSpec,
    blocks::{GatedFeedForward, PreNormDecoder},
    optional, required,
};
use puna_graph::{
    Graph,
    ops::{ActivationKind, RopeOrder},
};

/// See the file's text.
pub(super) const ARCHITECTURE: Architecture = Architecture {
    name: "qwen3",
    hugging_face: &["Qwen3ForCausalLM", "Qwen3Model"],
    tensors: TENSORS,
    build,
};

const TENSORS: &[TensorSpec] = &[
    required(
        "token_embd.weight",
        "model.embed_tokens.weight",
        &[Vocabulary, Embedding],
    ),
    required("output_norm.weight", "model.norm.weight", &[Embedding]),
    optional("output.weight", "lm_head.weight", &[Vocabulary, Embedding]),
    // The classification head of rerankers; not part of the logits.
    optional("cls.output.weight", "score.weight", &[Any, Embedding]),
    required(
        "blk.{i}.attn_norm.weight",
        "model.layers.{i}.input_layernorm.weight",
        &[Embedding],
    ),
    optional("blk.{i}.attn_qkv.weight", "", &[FusedQkv, Embedding]),
    optional("blk.{i}.attn_qkv.bias", "", &[FusedQkv]),
    optional(
        "blk.{i}.attn_q.weight",
        "model.layers.{i}.self_attn.q_proj.weight",
        &[Queries, Embedding],
    ),
    optional(
        "blk.{i}.attn_q.bias",
        "model.layers.{i}.self_attn.q_proj.bias",
        &[Queries],
    ),
    optional(
        "blk.{i}.attn_k.weight",
        "model.layers.{i}.self_attn.k_proj.weight",
        &[Keys, Embedding],
    ),
    optional(
        "blk.{i}.attn_k.bias",
        "model.layers.{i}.self_attn.k_proj.bias",
        &[Keys],
    ),
    optional(
        "blk.{i}.attn_v.weight",
        "model.layers.{i}.self_attn.v_proj.weight",
        &[Values, Embedding],
    ),
    optional(
        "blk.{i}.attn_v.bias",
        "model.layers.{i}.self_attn.v_proj.bias",
        &[Values],
    ),
    required(
        "blk.{i}.attn_q_norm.weight",
        "model.layers.{i}.self_attn.q_norm.weight",
        &[KeyDim],
    ),
    required(
        "blk.{i}.attn_k_norm.weight",
        "model.layers.{i}.self_attn.k_norm.weight",
        &[KeyDim],
    ),
    required(
        "blk.{i}.attn_output.weight",
        "model.layers.{i}.self_attn.o_proj.weight",
        &[Embedding, AttentionOut],
    ),
    optional(
        "blk.{i}.attn_output.bias",
        "model.layers.{i}.self_attn.o_proj.bias",
        &[Embedding],
    ),
    required(
        "blk.{i}.ffn_norm.weight",
        "model.layers.{i}.post_attention_layernorm.weight",
        &[Embedding],
    ),
    required(
        "blk.{i}.ffn_gate.weight",
        "model.layers.{i}.mlp.gate_proj.weight",
        &[FeedForward, Embedding],
    ),
    optional(
        "blk.{i}.ffn_gate.bias",
        "model.layers.{i}.mlp.gate_proj.bias",
        &[FeedForward],
    ),
    required(
        "blk.{i}.ffn_up.weight",
        "model.layers.{i}.mlp.up_proj.weight",
        &[FeedForward, Embedding],
    ),
    optional(
        "blk.{i}.ffn_up.bias",
        "model.layers.{i}.mlp.up_proj.bias",
        &[FeedForward],
    ),
    required(
        "blk.{i}.ffn_down.weight",
        "model.layers.{i}.mlp.down_proj.weight",
        &[Embedding, FeedForward],
    ),
    optional(
        "blk.{i}.ffn_down.bias",
        "model.layers.{i}.mlp.down_proj.bias",
        &[Embedding],
    ),
];

fn build(model: &mut Loader<'_>) -> Result<Graph, ModelError> {
    PreNormDecoder {
        rope: model.hyper().rope(&model.keys(), RopeOrder::Neox, None)?,
        attention_scale: attention_scale(model)?,
        feed_forward: GatedFeedForward {
            kind: ActivationKind::Silu,
            factors: true,
        },
    }
    .build(model)
}
