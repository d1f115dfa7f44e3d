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

#[test]
fn values_that_make_no_sense_are_refused_by_key_with_what_was_found_and_expected() {
    let with_yarn = |key, x: f32| vec![yarn(), (key, x.into())];
    let number = |key, x: f32| vec![(key, x.into())];
    let count = |key, n: u32| vec![(key, n.into())];
    let cases: [(Vec<(&str, Value)>, &str); 27] = [
        (
            number("attention.layer_norm_rms_epsilon", -1e-5),
            "found -0.00001, expected a positive number, at most 1",
        ),
        (
            number("attention.layer_norm_rms_epsilon", 0.0),
            "found 0, expected a positive number, at most 1",
        ),
        (
            number("attention.layer_norm_rms_epsilon", 1e30),
            "expected a positive number, at most 1",
        ),
        (
            number("attention.layer_norm_rms_epsilon", f32::NAN),
            "found NaN, expected a finite number",
        ),
        (
            number("attention.scale", -0.1),
            "found -0.1, expected a positive number, at most 1000",
        ),
        (
            number("attention.scale", 1e38),
            "expected a positive number, at most 1000",
        ),
        (number("rope.freq_base", 1e-40), "expected a number above 1"),
        (
            number("rope.freq_base", -10_000.0),
            "found -10000, expected a number above 1",
        ),
        (
            number("rope.freq_base", 1.0),
            "found 1, expected a number above 1",
        ),
        (
            number("rope.freq_base", f32::INFINITY),
            "found inf, expected a finite number",
        ),
        (
            number("rope.scaling.factor", 1e-30),
            "expected a number of at least 1",
        ),
        (
            number("rope.scaling.factor", -4.0),
            "found -4, expected a number of at least 1",
        ),
        (
            number("rope.scale_linear", 0.5),
            "found 0.5, expected a number of at least 1",
        ),
        (
            number("rope.scaling.attn_factor", -1.0),
            "found -1, expected a positive number, at most 1000",
        ),
        (
            number("rope.scaling.attn_factor", 1e38),
            "expected a positive number, at most 1000",
        ),
        (
            with_yarn("rope.scaling.yarn_ext_factor", 1e38),
            "expected 0 to 1, or less than 0 for 1",
        ),
        (
            with_yarn("rope.scaling.yarn_beta_fast", -32.0),
            "found -32, expected a positive number",
        ),
        (
            with_yarn("rope.scaling.yarn_beta_slow", -1.0),
            "found -1, expected a positive number",
        ),
        (
            vec![("rope.scaling.type", "sideways".into())],
            "found sideways, expected none, linear, yarn or longrope",
        ),
        (
            count("rope.dimension_count", 6),
            "found 6, expected an even number up to the 4 elements of a head",
        ),
        (
            count("rope.dimension_count", 3),
            "found 3, expected an even number up to the 4 elements of a head",
        ),
        (
            count("attention.head_count", 0),
            "found 0, expected a positive number",
        ),
        (
            count("attention.head_count_kv", 0),
            "found 0, expected a positive number",
        ),
        (
            count("attention.head_count_kv", 3),
            "found 3, expected a divisor of the 2 heads of layer 0",
        ),
        (
            vec![(
                "attention.head_count_kv",
                (&[2u32, 2, 2, 0, 2, 2][..]).into(),
            )],
            "found 0, expected 1 to 16777216",
        ),
        (
            vec![("attention.head_count", (&[2u32, 2][..]).into())],
            "found 2 values, expected 6, one per layer",
        ),
        (
            count("vocab_size", 7),
            "found 7, expected 5, the rows of `token_embd.weight`",
        ),
    ];
    for (keys, expected) in cases {
        let key = keys.last().unwrap().0;
        let error = load("llama", &keys).unwrap_err();
        assert!(matches!(error, ModelError::InvalidKey { .. }), "{error}");
        let text = error.to_string();
        assert!(
            text.starts_with(&format!("key `llama.{key}`: ")) && text.contains(expected),
            "{key}: {text}"
        );
    }
    let softcap = [("final_logit_softcapping", (-30f32).into())];
    let error = load("gemma3", &softcap).unwrap_err().to_string();
    assert_eq!(
        error,
        "key `gemma3.final_logit_softcapping`: found -30, expected a positive number"
    );
    let base = [
        ("attention.sliding_window", 4u32.into()),
        ("rope.freq_base_swa", 0.5f32.into()),
    ];
    let error = load("gemma3", &base).unwrap_err().to_string();
    assert!(
        error.contains("`gemma3.rope.freq_base_swa`: found 0.5"),
        "{error}"
    );
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
    let graph = load("gemma3", &[&bases[..], &[window.clone()]].concat()).unwrap();
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
