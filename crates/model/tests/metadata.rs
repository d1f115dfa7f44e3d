//! Metadata that is hostile yet well-formed, and what the keys do to the graph.

use puna_gguf::{ElementType, Gguf, GgufWriter, StringArray, Value};
use puna_graph::{
    Graph, Op, Reach,
    ops::{Rope, RopeScaling},
};
use puna_model::{LoadOptions, Model, ModelError};
use std::sync::Arc;

const WIDTH: u64 = 8;
const HEADS: u32 = 2;
const VOCABULARY: u64 = 5;
const LAYERS: u32 = 6;

/// A file of zeros, with these keys in place of, or beside, the usual ones. Keys without a dot belong to the architecture, as do those
/// that begin with `rope.` or `attention.`.
fn gguf(architecture: &str, keys: &[(&str, Value)]) -> Arc<Gguf> {
    let mut writer = GgufWriter::new();
    writer.set("general.architecture", architecture).unwrap();
    let usual = [
        ("context_length", 64),
        ("embedding_length", WIDTH as u32),
        ("block_count", LAYERS),
        ("feed_forward_length", WIDTH as u32),
        ("attention.head_count", HEADS),
    ];
    let eps = ("attention.layer_norm_rms_epsilon", 1e-6f32.into());
    let usual = usual.into_iter().map(|(k, n)| (k, n.into())).chain([eps]);
    for (key, value) in usual.chain(keys.iter().cloned()) {
        let own = !key.starts_with("tokenizer.");
        let prefix = if own {
            format!("{architecture}.")
        } else {
            String::new()
        };
        writer.set(&format!("{prefix}{key}"), value).unwrap();
    }
    let mut tensor = |name: &str, dims: &[u64]| {
        let bytes = vec![0; dims.iter().product::<u64>() as usize * 4];
        writer.tensor(name, dims, ElementType::F32, bytes).unwrap();
    };
    tensor("token_embd.weight", &[WIDTH, VOCABULARY]);
    tensor("output_norm.weight", &[WIDTH]);
    for layer in 0..LAYERS {
        for name in "attn_q attn_k attn_v attn_output ffn_gate ffn_up ffn_down".split(' ') {
            tensor(&format!("blk.{layer}.{name}.weight"), &[WIDTH, WIDTH]);
        }
        let more = ["post_attention_norm", "post_ffw_norm"].iter();
        let more = more.filter(|_| architecture == "gemma3");
        for name in ["attn_norm", "ffn_norm"].iter().chain(more) {
            tensor(&format!("blk.{layer}.{name}.weight"), &[WIDTH]);
        }
        if architecture == "gemma3" {
            for name in ["attn_q_norm", "attn_k_norm"] {
                let head = WIDTH / u64::from(HEADS);
                tensor(&format!("blk.{layer}.{name}.weight"), &[head]);
            }
        }
    }
    let mut file = Vec::new();
    writer.write_to(&mut file).unwrap();
    Arc::new(Gguf::from_bytes(file).unwrap())
}

fn load(architecture: &str, keys: &[(&str, Value)]) -> Result<Graph, ModelError> {
    let gguf = gguf(architecture, keys);
    Model::load(&gguf, &LoadOptions::default()).map(|model| model.graph)
}

fn ropes(graph: &Graph) -> Vec<&Rope> {
    let ropes = graph.nodes().iter().filter_map(|node| match &node.op {
        Op::Rope(rope) => Some(rope),
        _ => None,
    });
    ropes.collect()
}

fn yarn() -> (&'static str, Value) {
    ("rope.scaling.type", "yarn".into())
}

/// The last of these keys is refused with this text.
fn refused(architecture: &str, keys: &[(&str, Value)], expected: &str) {
    let error = load(architecture, keys).unwrap_err();
    assert!(matches!(error, ModelError::InvalidKey { .. }), "{error}");
    let key = keys[keys.len() - 1].0;
    let text = format!("key `{architecture}.{key}`: {expected}");
    assert_eq!(error.to_string(), text);
}

#[test]
fn factors_that_make_no_sense_are_refused_by_key_with_what_was_found_and_expected() {
    const EPS: &str = "attention.layer_norm_rms_epsilon";
    const BASE: &str = "rope.freq_base";
    const FACTOR: &str = "rope.scaling.factor";
    const ATTENTION: &str = "rope.scaling.attn_factor";
    let up_to_1 = "expected a positive number, at most 1";
    let up_to_1000 = "expected a positive number, at most 1000";
    let from_1 = "expected a number of at least 1";
    let above_1 = "expected a number above 1";
    let positive = "expected a positive number";
    for (key, x, expected) in [
        (EPS, -1e-5, up_to_1),
        (EPS, 0.0, up_to_1),
        (EPS, 1e30, up_to_1),
        (EPS, f32::NAN, "expected a finite number"),
        ("attention.scale", -0.1, up_to_1000),
        ("attention.scale", 1e38, up_to_1000),
        (BASE, 1e-40, above_1),
        (BASE, -1e4, above_1),
        (BASE, 1.0, above_1),
        (BASE, f32::INFINITY, "expected a finite number"),
        (FACTOR, 1e-30, from_1),
        (FACTOR, -4.0, from_1),
        ("rope.scale_linear", 0.5, from_1),
        (ATTENTION, -1.0, up_to_1000),
        (ATTENTION, 1e38, up_to_1000),
        (
            "rope.scaling.yarn_ext_factor",
            1e38,
            "expected 0 to 1, or less than 0 for 1",
        ),
        ("rope.scaling.yarn_beta_fast", -32.0, positive),
        ("rope.scaling.yarn_beta_slow", -1.0, positive),
    ] {
        let keys = [yarn(), (key, x.into())];
        refused("llama", &keys, &format!("found {x}, {expected}"));
    }
    let softcap = [("final_logit_softcapping", (-30f32).into())];
    refused("gemma3", &softcap, &format!("found -30, {positive}"));
    let window = ("attention.sliding_window", 4u32.into());
    let base = [window, ("rope.freq_base_swa", 0.5f32.into())];
    refused("gemma3", &base, &format!("found 0.5, {above_1}"));
    let sideways = [("rope.scaling.type", "sideways".into())];
    let types = "found sideways, expected none, linear, yarn or longrope";
    refused("llama", &sideways, types);
}

#[test]
fn counts_that_make_no_sense_are_refused_by_key_with_what_was_found_and_expected() {
    const HEADS_KEY: &str = "attention.head_count";
    const KV: &str = "attention.head_count_kv";
    let even = "an even number up to the 4 elements of a head";
    for (key, n, expected) in [
        ("rope.dimension_count", 6u32, even),
        ("rope.dimension_count", 3, even),
        (HEADS_KEY, 0, "a positive number"),
        (KV, 0, "a positive number"),
        (KV, 3, "a divisor of the 2 heads of layer 0"),
        ("block_count", 0, "a positive number"),
        ("block_count", 1025, "at most 1024"),
        ("vocab_size", 7, "5, the rows of `token_embd.weight`"),
    ] {
        let text = format!("found {n}, expected {expected}");
        refused("llama", &[(key, n.into())], &text);
    }
    let one_is_zero = [(KV, (&[2u32, 2, 2, 0, 2, 2][..]).into())];
    refused("llama", &one_is_zero, "found 0, expected 1 to 16777216");
    let two = [(HEADS_KEY, (&[2u32, 2][..]).into())];
    refused("llama", &two, "found 2 values, expected 6, one per layer");
}

#[test]
fn a_vocabulary_that_contradicts_the_embedding_is_refused() {
    let tokens = |n: usize| {
        let texts: Vec<String> = (0..n).map(|i| format!("t{i}")).collect();
        let list: StringArray = texts.iter().collect();
        ("tokenizer.ggml.tokens", Value::from(list))
    };
    load("llama", &[tokens(5), ("vocab_size", 5u32.into())]).unwrap();
    for n in [0, 4, 6] {
        let error = load("llama", &[tokens(n)]).unwrap_err().to_string();
        assert_eq!(
            error,
            format!(
                "key `tokenizer.ggml.tokens`: found {n} entries, expected 5, the rows of `token_embd.weight`"
            )
        );
    }
    let scores = |x: f32| {
        (
            "tokenizer.ggml.scores",
            (&[0.0, -1.0, x, 0.5, 1.0][..]).into(),
        )
    };
    load("llama", &[tokens(5), scores(f32::NEG_INFINITY)]).unwrap();
    let error = load("llama", &[tokens(5), scores(f32::NAN)]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "key `tokenizer.ggml.scores`: found NaN for token 2, expected numbers"
    );
}

#[test]
fn the_logarithmic_multiplier_of_yarn_is_refused_and_not_ignored() {
    const KEY: &str = "rope.scaling.yarn_log_multiplier";
    let error = load("llama", &[yarn(), (KEY, 0.1f32.into())]).unwrap_err();
    assert!(matches!(error, ModelError::Unsupported { .. }));
    let text = error.to_string();
    assert!(
        text.contains("`llama.rope.scaling.yarn_log_multiplier` (0.1)"),
        "{text}"
    );
    load("llama", &[yarn(), (KEY, 0f32.into())]).unwrap();
    // Without YaRN there is nothing that it multiplies.
    load("llama", &[(KEY, 0.1f32.into())]).unwrap();
}

#[test]
fn the_attention_factor_is_the_magnitude_of_every_rotation() {
    let factor = ("rope.scaling.attn_factor", 1.25f32.into());
    let types = ["none", "linear", "yarn", "longrope"];
    for architecture in ["llama", "qwen2", "gemma3"] {
        for scaling in types {
            let keys = [
                ("attention.sliding_window", 4u32.into()),
                ("rope.scaling.type", scaling.into()),
                ("rope.scaling.factor", 4f32.into()),
                factor.clone(),
            ];
            let graph = load(architecture, &keys).unwrap();
            let ropes = ropes(&graph);
            assert_eq!(ropes.len(), 2 * LAYERS as usize);
            for rope in ropes {
                let own = match rope.scaling {
                    RopeScaling::Yarn { attn_factor, .. } => attn_factor,
                    _ => 1.0,
                };
                assert_eq!(rope.magnitude * own, 1.25, "{architecture} {scaling}");
            }
        }
    }
    let graph = load("llama", &[]).unwrap();
    assert!(ropes(&graph).iter().all(|rope| rope.magnitude == 1.0));
}

#[test]
fn layers_without_a_window_see_everything_and_turn_by_the_global_base() {
    let bases = [
        ("rope.freq_base", 1e6f32.into()),
        ("rope.freq_base_swa", 500f32.into()),
        ("attention.sliding_window_pattern", 3u32.into()),
    ];
    let reaches = |graph: &Graph| -> Vec<Reach> {
        graph
            .cache_layers()
            .iter()
            .map(|layer| layer.reach)
            .collect()
    };
    let graph = load("gemma3", &bases).unwrap();
    assert_eq!(reaches(&graph), [Reach::Full; LAYERS as usize]);
    assert!(ropes(&graph).iter().all(|rope| rope.base == 1e6));
    // A window of 0 is none, as its writers mean it.
    let zero = ("attention.sliding_window", 0u32.into());
    let graph = load("gemma3", &[&bases[..], &[zero]].concat()).unwrap();
    assert_eq!(reaches(&graph), [Reach::Full; LAYERS as usize]);

    let window = ("attention.sliding_window", 4u32.into());
    let graph = load(
        "gemma3",
        &[&bases[..], std::slice::from_ref(&window)].concat(),
    )
    .unwrap();
    let (near, far) = (Reach::Window(4), Reach::Full);
    assert_eq!(reaches(&graph), [near, near, far, near, near, far]);
    let turned: Vec<f32> = ropes(&graph).iter().step_by(2).map(|r| r.base).collect();
    assert_eq!(turned, [500.0, 500.0, 1e6, 500.0, 500.0, 1e6]);

    let pattern = |p: &[bool]| ("attention.sliding_window_pattern", Value::from(p));
    let graph = load(
        "gemma3",
        &[
            window.clone(),
            pattern(&[true, false, false, false, false, true]),
        ],
    );
    assert_eq!(reaches(&graph.unwrap()), [near, far, far, far, far, near]);
    let error = load("gemma3", &[window, pattern(&[true])]).unwrap_err();
    assert!(
        error.to_string().contains("found 1 values, expected 6"),
        "{error}"
    );
}
