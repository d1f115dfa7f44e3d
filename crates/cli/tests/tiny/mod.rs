//! A tiny random model with a byte-level vocabulary and a chat template, and the program run on it.

#![allow(dead_code, reason = "each test program uses a part")]

use puna::gguf::{ElementType, GgufWriter, StringArray};
use serde_json::Value;
use std::{
    ffi::OsStr,
    fs::File,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

/// Begins a text.
pub(crate) const BOS: u32 = 256;
/// Begins a message.
pub(crate) const START: u32 = 257;
/// Ends a message, and an answer.
pub(crate) const END: u32 = 258;
/// Context of the model's training.
pub(crate) const CONTEXT: u32 = 256;

const MERGES: [&str; 6] = ["h e", "l l", "he ll", "hell o", "\u{120} t", "\u{120}t he"];
const TEMPLATE: &str = "{{ bos_token }}{% for m in messages %}<|start|>{{ m.role }}\n{{ m.content }}<|end|>\n{% endfor %}\
{% if add_generation_prompt %}<|start|>assistant\n{% endif %}";
const EMBEDDING: u64 = 64;
const KV: u64 = 32;
const FEED_FORWARD: u64 = 96;
const LAYERS: u32 = 2;

/// What the file has beside its tensors.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Vocabulary and chat template.
    Chat,
    /// Vocabulary without a template.
    Base,
    /// A vocabulary that no tokenizer can be made of.
    NoTokenizer,
}

/// A folder with one model.
pub(crate) struct Tiny {
    folder: tempfile::TempDir,
    /// The model's file.
    pub(crate) model: PathBuf,
}

impl Tiny {
    pub(crate) fn new(kind: Kind) -> Self {
        Self::named(kind, "tiny.gguf")
    }

    pub(crate) fn named(kind: Kind, name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let model = folder.path().join(name);
        let mut file = Vec::new();
        writer(kind).write_to(&mut file).unwrap();
        File::create(&model).unwrap().write_all(&file).unwrap();
        Self { folder, model }
    }

    /// A path in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The program with a cache folder of its own, no network and an empty standard input.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_puna"));
        command
            .env("HF_HOME", self.path("hf"))
            .env("HF_HUB_OFFLINE", "1")
            .env_remove("PUNA_KERNELS")
            .env("RUST_BACKTRACE", "1")
            .stdin(Stdio::null());
        command
    }

    /// Runs a subcommand on the model. `arguments` are cut at spaces; `more` follow as they are.
    pub(crate) fn output(&self, arguments: &str, more: &[&str]) -> Output {
        self.run(&self.model, arguments, more, &[])
    }

    pub(crate) fn run(
        &self,
        model: &Path,
        arguments: &str,
        more: &[&str],
        environment: &[(&str, &str)],
    ) -> Output {
        let mut words = arguments.split_whitespace();
        let mut command = self.command();
        command.arg(words.next().unwrap()).arg("-m").arg(model);
        command
            .args(words)
            .args(more)
            .envs(environment.iter().copied());
        command.output().unwrap()
    }

    /// Standard output of a run that succeeds.
    pub(crate) fn text(&self, arguments: &str, more: &[&str]) -> String {
        success(self.output(arguments, more))
    }

    /// The JSON that a run prints.
    pub(crate) fn json(&self, arguments: &str, more: &[&str]) -> Value {
        serde_json::from_str(&self.text(arguments, more)).unwrap()
    }

    /// Runs with this text piped in.
    pub(crate) fn piped(&self, arguments: &str, more: &[&str], input: &str) -> Output {
        let mut words = arguments.split_whitespace();
        let mut command = self.command();
        command
            .arg(words.next().unwrap())
            .arg("-m")
            .arg(&self.model);
        command.args(words).args(more);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(input.as_bytes())
            .unwrap();
        child.wait_with_output().unwrap()
    }

    /// The one line on standard error of a run that fails with this code.
    pub(crate) fn error(&self, code: i32, arguments: &str, more: &[&str]) -> String {
        failure(&self.output(arguments, more), code)
    }
}

/// Runs the program without a model.
pub(crate) fn bare<S: AsRef<OsStr>>(arguments: &[S]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_puna"));
    command
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

pub(crate) fn success(output: Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    String::from_utf8(output.stdout).unwrap()
}

/// One line that says what is wrong, the code, and nothing of Rust's own.
pub(crate) fn failure(output: &Output, code: i32) -> String {
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{error}");
    assert!(error.starts_with("error: "), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(
        !error.contains("panicked") && !error.contains("backtrace"),
        "{error}"
    );
    error
}

/// The ids of a JSON list.
pub(crate) fn ids(value: &Value) -> Vec<u32> {
    let list = value.as_array().unwrap().iter();
    list.map(|id| u32::try_from(id.as_u64().unwrap()).unwrap())
        .collect()
}

fn writer(kind: Kind) -> GgufWriter<'static> {
    let mut writer = GgufWriter::new();
    let numbers = [
        ("context_length", CONTEXT),
        ("embedding_length", EMBEDDING as u32),
        ("block_count", LAYERS),
        ("feed_forward_length", FEED_FORWARD as u32),
        ("attention.head_count", 2),
        ("attention.head_count_kv", 1),
        ("rope.dimension_count", KV as u32),
    ];
    writer.set("general.architecture", "llama").unwrap();
    writer.set("general.name", "Tiny").unwrap();
    for (key, n) in numbers {
        writer.set(&format!("llama.{key}"), n).unwrap();
    }
    writer
        .set("llama.attention.layer_norm_rms_epsilon", 1e-5f32)
        .unwrap();
    let tokens = vocabulary(&mut writer, kind);
    let mut random = Random(0x1234_5678_9abc_def1);
    tensor(
        &mut writer,
        "token_embd.weight",
        &[EMBEDDING, tokens],
        &mut random,
    );
    tensor(&mut writer, "output_norm.weight", &[EMBEDDING], &mut random);
    for layer in 0..LAYERS {
        for (name, dims) in [
            ("attn_norm", &[EMBEDDING][..]),
            ("attn_q", &[EMBEDDING, EMBEDDING]),
            ("attn_k", &[EMBEDDING, KV]),
            ("attn_v", &[EMBEDDING, KV]),
            ("attn_output", &[EMBEDDING, EMBEDDING]),
            ("ffn_norm", &[EMBEDDING]),
            ("ffn_gate", &[EMBEDDING, FEED_FORWARD]),
            ("ffn_up", &[EMBEDDING, FEED_FORWARD]),
            ("ffn_down", &[FEED_FORWARD, EMBEDDING]),
        ] {
            tensor(
                &mut writer,
                &format!("blk.{layer}.{name}.weight"),
                dims,
                &mut random,
            );
        }
    }
    writer
}

/// Writes the vocabulary and returns its size.
fn vocabulary(writer: &mut GgufWriter<'_>, kind: Kind) -> u64 {
    let mut tokens: Vec<String> = (0..=255).map(byte_char).map(String::from).collect();
    tokens.extend(["<|begin|>", "<|start|>", "<|end|>"].map(str::to_owned));
    tokens.extend(MERGES.map(|merge| merge.replace(' ', "")));
    let types: Vec<i32> = (0..tokens.len() as u32)
        .map(|id| if (BOS..=END).contains(&id) { 3 } else { 1 })
        .collect();
    let model = if kind == Kind::NoTokenizer {
        "test"
    } else {
        "gpt2"
    };
    writer.set("tokenizer.ggml.model", model).unwrap();
    writer.set("tokenizer.ggml.pre", "gpt-2").unwrap();
    writer
        .set(
            "tokenizer.ggml.tokens",
            tokens.iter().collect::<StringArray>(),
        )
        .unwrap();
    writer.set("tokenizer.ggml.token_type", &types[..]).unwrap();
    writer
        .set(
            "tokenizer.ggml.merges",
            MERGES.iter().collect::<StringArray>(),
        )
        .unwrap();
    writer.set("tokenizer.ggml.bos_token_id", BOS).unwrap();
    writer.set("tokenizer.ggml.eos_token_id", END).unwrap();
    writer.set("tokenizer.ggml.add_bos_token", true).unwrap();
    if kind == Kind::Chat {
        writer.set("tokenizer.chat_template", TEMPLATE).unwrap();
    }
    tokens.len() as u64
}

/// The character that byte-level vocabularies write for a byte.
fn byte_char(byte: u8) -> char {
    let is_shown = |b: u8| matches!(b, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    if is_shown(byte) {
        return char::from(byte);
    }
    let rank = (0..byte).filter(|b| !is_shown(*b)).count() as u32;
    char::from_u32(0x100 + rank).unwrap()
}

/// Norms near one, and matrices in blocks of 32 random bytes behind a fixed scale.
fn tensor(writer: &mut GgufWriter<'_>, name: &str, dims: &[u64], random: &mut Random) {
    /// 2 to the power of -9, as a 16-bit float.
    const SCALE: u16 = 0x1800;
    let n: u64 = dims.iter().product();
    if dims.len() == 1 {
        let floats = (0..n).flat_map(|_| (1.0 + 0.1 * random.next()).to_le_bytes());
        let bytes: Vec<u8> = floats.collect();
        writer.tensor(name, dims, ElementType::F32, bytes).unwrap();
        return;
    }
    let mut bytes = Vec::new();
    for _ in 0..n / 32 {
        bytes.extend(SCALE.to_le_bytes());
        bytes.extend((0..32).map(|_| (127.0 * random.next()) as i8 as u8));
    }
    writer.tensor(name, dims, ElementType::Q8_0, bytes).unwrap();
}

/// Numbers from -1 to 1.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 40) as f32 / (1u32 << 23) as f32 - 1.0
    }
}
