//! Llama 1 to 3.2, Mistral, SmolLM2, TinyLlama and others of the same shape (Touvron et al., 2023).

use super::{Architecture, attention_scale};
use crate::{
    Loader, ModelError,
    Size::{
        Any, AttentionOut, Embedding, FeedForward, FusedQkv, Keys, Queries, RopePairs, Values,
        Vocabulary,
    },
    TensorSpec, Transform,
    blocks::{GatedFeedForward, PreNormDecoder, rope_factors},
    optional, required,
};
use puna_graph::{
    Graph,
    ops::{ActivationKind, RopeOrder},
};

/// See the file's text.
pub(super) const ARCHITECTURE: Architecture = Architecture {
    name: "llama",
    hugging_face: &[
        "LlamaForCausalLM",
        "LLaMAForCausalLM",
        "MistralForCausalLM",
        "LlamaModel",
    ],
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
    optional("rope_freqs.weight", "", &[RopePairs]),
    optional("rope_factors_long.weight", "", &[RopePairs]),
    optional("rope_factors_short.weight", "", &[RopePairs]),
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
    )
    .transform(Transform::PermuteQueries),
    optional(
        "blk.{i}.attn_q.bias",
        "model.layers.{i}.self_attn.q_proj.bias",
        &[Queries],
    )
    .transform(Transform::PermuteQueries),
    optional(
        "blk.{i}.attn_k.weight",
        "model.layers.{i}.self_attn.k_proj.weight",
        &[Keys, Embedding],
    )
    .transform(Transform::PermuteKeys),
    optional(
        "blk.{i}.attn_k.bias",
        "model.layers.{i}.self_attn.k_proj.bias",
        &[Keys],
    )
    .transform(Transform::PermuteKeys),
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
        "blk.{i}.attn_output.weight",
        "model.layers.{i}.self_attn.o_proj.weight",
        &[Embedding, AttentionOut],
    ),
    optional(
        "blk.{i}.attn_output.bias",
        "model.layers.{i}.self_attn.o_proj.bias",
        &[Embedding],
    ),
    // Inverse frequencies that early converters wrote; they follow from the base.
    optional("blk.{i}.attn_rot_embd.weight", "", &[Any]),
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
        rope: model
            .hyper()
            .rope(&model.keys(), RopeOrder::Normal, rope_factors(model)?)?,
        attention_scale: attention_scale(model)?,
        feed_forward: GatedFeedForward {
            kind: ActivationKind::Silu,
            factors: true,
        },
    }
    .build(model)
}
