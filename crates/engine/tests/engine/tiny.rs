//! Model files without a single useful weight: shapes, a vocabulary of letters, and an engine over the fake backend.

#![allow(dead_code, reason = "each test program uses a part")]

use crate::fake::{Fake, logits};
use puna_engine::{Engine, EngineError, EngineOptions, Feed, SeqId, Want};
use puna_gguf::{ElementType, Gguf, GgufWriter, StringArray};
use puna_graph::Reach;
use puna_tokenizer::TokenId;
use std::sync::Arc;

/// `a` to `z` are 0 to 25; then `ab`, a control token, and a normal token.
pub(crate) const VOCABULARY: usize = 29;
/// A control token.
pub(crate) const CONTROL: u32 = 27;
/// `<end>`, of the normal kind.
pub(crate) const END: u32 = 28;

const WIDTH: u64 = 4;

/// How far the layers of a model look.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layers {
    /// All layers see everything.
    Full,
    /// One of two layers has a window of so many positions.
    Window(u32),
}

impl Layers {
    /// Of each layer group.
    pub(crate) fn reaches(self) -> Vec<Reach> {
        match self {
            Self::Full => vec![Reach::Full],
            Self::Window(n) => vec![Reach::Window(n), Reach::Full],
        }
    }
}

/// A model file; generation ends at token `end`.
pub(crate) fn gguf(layers: Layers, end: u32) -> Arc<Gguf> {
    let mut writer = GgufWriter::new();
    let prefix = match layers {
        Layers::Full => "llama",
        Layers::Window(_) => "gemma3",
    };
    writer.set("general.architecture", prefix).unwrap();
    let mut number = |key: &str, n: u32| {
        writer.set(&format!("{prefix}.{key}"), n).unwrap();
    };
    for key in ["embedding_length", "feed_forward_length"] {
        number(key, WIDTH as u32);
    }
    number("context_length", 4096);
    number("block_count", 2);
    number("attention.head_count", 1);
    if let Layers::Window(n) = layers {
        number("attention.sliding_window", n);
        number("attention.sliding_window_pattern", 2);
    }
    let eps = format!("{prefix}.attention.layer_norm_rms_epsilon");
    writer.set(&eps, 1e-6f32).unwrap();
    vocabulary(&mut writer, end);
    let mut tensor = |name: &str, dims: &[u64]| {
        let bytes = vec![0; dims.iter().product::<u64>() as usize * 4];
        writer.tensor(name, dims, ElementType::F32, bytes).unwrap();
    };
    tensor("token_embd.weight", &[WIDTH, VOCABULARY as u64]);
    tensor("output_norm.weight", &[WIDTH]);
    let matrices = "attn_q attn_k attn_v attn_output ffn_gate ffn_up ffn_down";
    let vectors = match layers {
        Layers::Full => "attn_norm ffn_norm",
        Layers::Window(_) => {
            "attn_norm ffn_norm attn_q_norm attn_k_norm post_attention_norm post_ffw_norm"
        }
    };
    for layer in 0..2 {
        for name in matrices.split(' ') {
            tensor(&format!("blk.{layer}.{name}.weight"), &[WIDTH, WIDTH]);
        }
        for name in vectors.split(' ') {
            tensor(&format!("blk.{layer}.{name}.weight"), &[WIDTH]);
        }
    }
    let mut file = Vec::new();
    writer.write_to(&mut file).unwrap();
    Arc::new(Gguf::from_bytes(file).unwrap())
}

fn vocabulary(writer: &mut GgufWriter<'_>, end: u32) {
    let mut tokens: Vec<String> = ('a'..='z').map(String::from).collect();
    tokens.extend(["ab", "<control>", "<end>"].map(str::to_owned));
    let mut kinds = [1i32; VOCABULARY];
    kinds[CONTROL as usize] = 3;
    let set = |writer: &mut GgufWriter<'_>, key: &str, value: &str| {
        writer.set(&format!("tokenizer.ggml.{key}"), value).unwrap();
    };
    set(writer, "model", "gpt2");
    set(writer, "pre", "gpt-2");
    let tokens: StringArray = tokens.iter().collect();
    writer.set("tokenizer.ggml.tokens", tokens).unwrap();
    writer.set("tokenizer.ggml.token_type", &kinds[..]).unwrap();
    let merges: StringArray = ["a b"].iter().collect();
    writer.set("tokenizer.ggml.merges", merges).unwrap();
    writer.set("tokenizer.ggml.eos_token_id", end).unwrap();
}

/// An engine, what is behind it, and what its logits must be.
pub(crate) struct Tiny {
    pub(crate) engine: Engine,
    pub(crate) fake: Fake,
    layers: Layers,
}

impl Tiny {
    pub(crate) fn new(layers: Layers, context: usize, batch: usize) -> Self {
        Self::with(layers, context, batch, END, Fake::default())
    }

    pub(crate) fn with(layers: Layers, context: usize, batch: usize, end: u32, fake: Fake) -> Self {
        let mut options = EngineOptions::default();
        options.context = Some(context);
        options.batch = batch;
        let engine = Engine::from_gguf(gguf(layers, end), &fake, &options).unwrap();
        Self {
            engine,
            fake,
            layers,
        }
    }

    /// Feeds these and checks every row of logits.
    pub(crate) fn feed(&mut self, feeds: &[(SeqId, &[TokenId])]) -> Result<(), EngineError> {
        let reaches = self.layers.reaches();
        let held: Vec<Vec<TokenId>> = feeds
            .iter()
            .map(|(s, _)| {
                self.engine
                    .tokens(*s)
                    .map(<[_]>::to_vec)
                    .unwrap_or_default()
            })
            .collect();
        let all: Vec<Feed<'_>> = feeds
            .iter()
            .map(|&(sequence, tokens)| Feed {
                sequence,
                tokens,
                want: Want::All,
            })
            .collect();
        let mut rows = 0;
        let result = self.engine.decode(&all, &mut |feed, token, row| {
            let tokens = held[feed].iter().chain(&all[feed].tokens[..=token]);
            let tokens: Vec<u32> = tokens.map(|t| t.0).collect();
            assert_eq!(row, logits(&reaches, &tokens, VOCABULARY), "token {token}");
            rows += 1;
        });
        if result.is_ok() {
            assert_eq!(rows, feeds.iter().map(|(_, t)| t.len()).sum::<usize>());
        }
        result
    }

    /// A sequence that holds these tokens.
    pub(crate) fn sequence(&mut self, tokens: &[TokenId]) -> SeqId {
        let sequence = self.engine.sequence();
        self.feed(&[(sequence, tokens)]).unwrap();
        sequence
    }

    /// Tokens of each sequence and pages in use: what a refused call must not change.
    pub(crate) fn state(&self, sequences: &[SeqId]) -> (Vec<Vec<TokenId>>, Vec<usize>) {
        let tokens = sequences
            .iter()
            .map(|s| self.engine.tokens(*s).unwrap().to_vec());
        (tokens.collect(), self.engine.pages_in_use())
    }
}

/// Some letters.
pub(crate) fn letters(len: usize, salt: usize) -> Vec<TokenId> {
    let letter = |i: usize| TokenId(((i * i + 3 * i + salt) % 26) as u32);
    (0..len).map(letter).collect()
}
