//! Prompts of real models, with the ids that llama.cpp gave for them.
//!
//! Needs the folder `refs` of the data folder named by `PUNA_TEST_DATA` and the model files in the folder named by
//! `PUNA_TEST_MODELS`; says that it was skipped without them.

use std::path::Path;

use puna_gguf::Gguf;
use puna_tokenizer::{DecodeOptions, EncodeOptions, TokenId, Tokenizer};
use serde_json::Value;

const MODELS: [(&str, &str, &[&str]); 4] = [
    (
        "smollm2-135m",
        "SmolLM2-135M-Instruct.Q4_1.gguf",
        &["<|im_end|>", "<|endoftext|>"],
    ),
    (
        "qwen2.5-coder-0.5b",
        "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        &["<|im_end|>", "<|endoftext|>", "<|fim_pad|>"],
    ),
    (
        "qwen2.5-coder-1.5b",
        "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        &["<|im_end|>", "<|endoftext|>", "<|file_sep|>"],
    ),
    (
        "gemma3-270m",
        "gemma-3-270m-q4_k_m.gguf",
        &["<end_of_turn>", "<eos>"],
    ),
];

#[test]
fn prompts_become_the_ids_that_llama_cpp_gave() {
    let variable = |name| {
        let value = std::env::var_os(name);
        if value.is_none() {
            eprintln!("skipped: {name} is not set");
        }
        value
    };
    let Some((data, models)) = variable("PUNA_TEST_DATA").zip(variable("PUNA_TEST_MODELS")) else {
        return;
    };
    for (name, file, ends) in MODELS {
        let file = Path::new(&models).join(file);
        if !file.exists() {
            eprintln!("skipped: {} is not there", file.display());
            continue;
        }
        let reference = std::fs::read(Path::new(&data).join(format!("refs/{name}.json"))).unwrap();
        let reference: Value = serde_json::from_slice(&reference).unwrap();
        let gguf = Gguf::open(&file).unwrap();
        let tokenizer = Tokenizer::from_gguf(gguf.metadata()).unwrap();
        assert_eq!(tokenizer.warnings(), [""; 0], "{name}");
        check(&tokenizer, &reference["passage"], &reference["passage_ids"]);
        let prompts = reference["greedy_truth"].as_object().unwrap();
        assert!(!prompts.is_empty());
        for prompt in prompts.values() {
            check(&tokenizer, &prompt["prompt"], &prompt["prompt_ids"]);
        }
        for end in ends {
            let id = tokenizer.find(end).unwrap();
            assert!(tokenizer.is_end_of_generation(id), "{name}: {end}");
        }
    }
}

fn check(tokenizer: &Tokenizer, text: &Value, ids: &Value) {
    let options = EncodeOptions {
        add_special: true,
        parse_special: true,
    };
    let text = text.as_str().unwrap();
    let expected: Vec<u64> = ids
        .as_array()
        .unwrap()
        .iter()
        .map(|id| id.as_u64().unwrap())
        .collect();
    let found = tokenizer.encode(text, options).unwrap();
    let numbers: Vec<u64> = found.iter().map(|id: &TokenId| u64::from(id.0)).collect();
    // A passage may have been cut to a number of tokens.
    assert_eq!(
        numbers.get(..expected.len()),
        Some(&expected[..]),
        "{text:?}"
    );
    let shown = DecodeOptions {
        remove_special: true,
        unparse_special: true,
        ..DecodeOptions::default()
    };
    assert_eq!(tokenizer.decode(&found, shown), text);
}
