//! Speed of loading and encoding: `cargo bench -p puna-tokenizer -- [VOCABULARY.gguf ...]`.
//!
//! Without arguments the vocabularies of the folder `tokenizers` in `PUNA_TEST_DATA` are measured. Each figure is the best of several
//! runs on one core. The English text is `english.txt` over and over with its sentences in ever new order and words inserted, so
//! that it does not repeat like a loop.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use puna_gguf::Gguf;
use puna_tokenizer::hf::Files;
use puna_tokenizer::{DecodeOptions, EncodeOptions, Tokenizer};

const BYTES: usize = 4 << 20;
const RUNS: usize = 5;

fn main() {
    let mut paths: Vec<PathBuf> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with("--"))
        .map(PathBuf::from)
        .collect();
    if paths.is_empty() {
        let Some(data) = std::env::var_os("PUNA_TEST_DATA") else {
            println!("give files, or set PUNA_TEST_DATA");
            return;
        };
        for name in [
            "gpt-2",
            "llama-bpe",
            "qwen2",
            "falcon",
            "starcoder",
            "llama-spm",
            "bert-bge",
        ] {
            paths.push(PathBuf::from(&data).join(format!("tokenizers/ggml-vocab-{name}.gguf")));
        }
    }
    let texts = Sample {
        english: english(BYTES),
        code: include_str!("../src/merge.rs").repeat(BYTES / include_str!("../src/merge.rs").len()),
        same: "A".repeat(1 << 20),
    };
    println!(
        "{:<44} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "", "load", "English", "bytes/id", "code", "1 MiB A", "decode"
    );
    // Models of which there is no large vocabulary: the small ones of the tests.
    let small = ["unigram", "sp-unigram-bytes", "bpe-merges", "bpe-words"];
    for name in small {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/data/hf")
            .join(name);
        let files = Files::read(&folder).expect("the files can be read");
        let load = || files.load().map(|loaded| Tokenizer::new(loaded.vocabulary));
        let (time, tokenizer) = best(|| load().expect("files").expect("a tokenizer"));
        measure(name, time, &tokenizer, &texts);
    }
    for path in paths {
        let mut bytes = std::fs::read(&path).expect("the file can be read");
        if bytes.len() < 64 << 20 {
            bytes.resize(bytes.len().next_multiple_of(32), 0);
        }
        let file = Gguf::from_bytes(bytes).expect("a GGUF file");
        let (load, tokenizer) =
            best(|| Tokenizer::from_gguf(file.metadata()).expect("a tokenizer"));
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        measure(&name, load, &tokenizer, &texts);
    }
}

struct Sample {
    english: String,
    code: String,
    same: String,
}

fn measure(name: &str, load: Duration, tokenizer: &Tokenizer, sample: &Sample) {
    let encode = |text: &str| {
        best(|| {
            tokenizer
                .encode(text, EncodeOptions::default())
                .expect("ids")
        })
    };
    let (time, ids) = encode(&sample.english);
    let (code, _) = encode(&sample.code);
    let (run, _) = encode(&sample.same);
    let (decode, _) = best(|| tokenizer.decode(&ids, DecodeOptions::default()));
    println!(
        "{name:<44} {:>5.1} ms {:>4.1} MB/s {:>9.2} {:>4.1} MB/s {:>6.0} ms {:>4.0} MB/s",
        load.as_secs_f64() * 1e3,
        rate(sample.english.len(), time),
        sample.english.len() as f64 / ids.len() as f64,
        rate(sample.code.len(), code),
        run.as_secs_f64() * 1e3,
        rate(sample.english.len(), decode),
    );
}

fn rate(bytes: usize, time: Duration) -> f64 {
    bytes as f64 / 1e6 / time.as_secs_f64()
}

fn best<T>(mut run: impl FnMut() -> T) -> (Duration, T) {
    let mut best: Option<(Duration, T)> = None;
    for _ in 0..RUNS {
        let start = Instant::now();
        let value = run();
        let time = start.elapsed();
        if best.as_ref().is_none_or(|(t, _)| time < *t) {
            best = Some((time, value));
        }
    }
    best.expect("at least one run")
}

/// English text of about this length: sentences drawn at random, with words of three syllables put in.
fn english(len: usize) -> String {
    const SYLLABLES: [&str; 16] = [
        "an", "ber", "cor", "den", "el", "fin", "gar", "hol", "in", "ker", "lan", "mor", "na",
        "ost", "per", "tra",
    ];
    let source = include_str!("english.txt");
    let sentences: Vec<&str> = source.split_inclusive(". ").collect();
    let mut state = 0x1234_5678_9ABC_DEF1_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as usize % below
    };
    let mut text = String::with_capacity(len + 1000);
    while text.len() < len {
        for word in sentences[random(sentences.len())].split_inclusive(' ') {
            text.push_str(word);
            if random(12) == 0 {
                for _ in 0..3 {
                    text.push_str(SYLLABLES[random(SYLLABLES.len())]);
                }
                text.push(' ');
            }
        }
    }
    text
}
