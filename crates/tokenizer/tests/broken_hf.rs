//! Files of a hub folder that are wrong, odd or hostile: an error that names what is wrong, or a tokenizer that works; never a panic.

use std::path::Path;

use puna_tokenizer::hf::{Files, HfError};
use puna_tokenizer::{EncodeOptions, Model, Texts, Tokenizer, Vocabulary};
use serde_json::{Value, json};

const TEXT: &str = "Hello, wörld 12 ½ 🦙\n the Andes\u{301} ㍿";

fn file(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/hf");
    std::fs::read(folder.join(name)).unwrap()
}

/// Loads files and encodes with them; the error, if there is one.
fn attempt(files: &Files) -> Option<String> {
    let loaded = match files.load() {
        Ok(loaded) => loaded,
        Err(error) => return Some(error.to_string()),
    };
    let tokenizer = match Tokenizer::new(loaded.vocabulary) {
        Ok(tokenizer) => tokenizer,
        Err(error) => return Some(error.to_string()),
    };
    let options = EncodeOptions {
        add_special: true,
        parse_special: true,
    };
    let error = tokenizer.encode(TEXT, options).err()?;
    Some(error.to_string())
}

fn with_model(bytes: Vec<u8>) -> Files {
    let mut files = Files::default();
    files.tokenizer_model = Some(bytes);
    files
}

fn with_json(json: &Value) -> Files {
    let mut files = Files::default();
    files.tokenizer_json = Some(serde_json::to_vec(json).unwrap());
    files
}

#[test]
fn every_prefix_and_every_flipped_bit_of_a_sentencepiece_file_is_survived() {
    for name in ["sp-unigram/tokenizer.model", "sp-bpe/tokenizer.model"] {
        let whole = file(name);
        assert_eq!(attempt(&with_model(whole.clone())), None, "{name}");
        let mut errors = 0;
        for len in 0..whole.len() {
            errors += usize::from(attempt(&with_model(whole[..len].to_vec())).is_some());
        }
        assert!(errors > whole.len() / 2, "{name}: {errors} errors");
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            attempt(&with_model(bytes));
        }
    }
}

#[test]
fn prefixes_and_flipped_bits_of_json_are_survived() {
    for name in [
        "unigram",
        "wordpiece-uncased",
        "bpe-llama3",
        "bpe-complete-merges",
    ] {
        let whole = file(&format!("{name}/tokenizer.json"));
        let load = |bytes: &[u8]| {
            let mut files = Files::default();
            files.tokenizer_json = Some(bytes.to_vec());
            attempt(&files)
        };
        assert_eq!(load(&whole), None, "{name}");
        for len in (0..whole.trim_ascii_end().len()).step_by(23) {
            assert!(load(&whole[..len]).is_some(), "{name}: {len} bytes");
        }
        for at in (0..whole.len()).step_by(17) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            load(&bytes);
        }
    }
}

#[test]
fn every_flipped_bit_of_a_charsmap_is_survived() {
    let loaded = with_model(file("sp-unigram/tokenizer.model"))
        .load()
        .unwrap();
    let rules = loaded.vocabulary.precompiled_charsmap.clone();
    assert!(rules.len() > 1000);
    let attempt = |rules: Vec<u8>| {
        let mut vocabulary = loaded.vocabulary.clone();
        vocabulary.precompiled_charsmap = rules;
        match Tokenizer::new(vocabulary) {
            Ok(tokenizer) => tokenizer.encode(TEXT, EncodeOptions::default()).err(),
            Err(error) => Some(error),
        }
    };
    assert!(attempt(rules.clone()).is_none());
    for len in 1..rules.len() {
        attempt(rules[..len].to_vec());
    }
    for at in 0..rules.len() {
        let mut bytes = rules.clone();
        bytes[at] ^= 1 << (at % 8);
        attempt(bytes);
    }
    for (bad, problem) in [
        (vec![0; 3], "shorter than its size"),
        (vec![8, 0, 0, 0, 1], "longer than the data"),
        (vec![255; 40], "longer than the data"),
        (vec![3, 0, 0, 0, 1, 2, 3, 0], "whole units"),
        (vec![0; 8], "whole units"),
        (vec![4, 0, 0, 0, 1, 2, 3, 4, b'a'], "does not end"),
    ] {
        let error = attempt(bad.clone())
            .map(|e| e.to_string())
            .unwrap_or_default();
        assert!(
            error.starts_with("metadata key `tokenizer.ggml.precompiled_charsmap`: ")
                && error.contains(problem),
            "{bad:?}: {error}"
        );
    }
}

fn tiny_bpe() -> Value {
    json!({
        "added_tokens": [{"id": 2, "content": "<|end|>", "special": true}],
        "normalizer": null,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
        "decoder": {"type": "ByteLevel"},
        "model": {"type": "BPE", "unk_token": null, "vocab": {"a": 0, "b": 1, "ab": 3}, "merges": [["a", "b"]]},
    })
}

#[test]
fn what_contradicts_itself_or_is_not_known_is_named() {
    assert!(with_json(&tiny_bpe()).load().is_ok());
    let cases: [(&str, Value, &str); 12] = [
        ("/model/vocab/b", json!(0), "has id 0, but so has \"a\""),
        (
            "/model/vocab/b",
            json!(-1),
            "`model.vocab` is -1, expected an id",
        ),
        (
            "/model/vocab/b",
            json!(4_000_000_000_u64),
            "expected at most 2097151",
        ),
        (
            "/model/vocab",
            json!([1]),
            "expected an object of tokens and ids",
        ),
        (
            "/model/merges/0",
            json!("ab"),
            "`model.merges[0]` is \"ab\"",
        ),
        ("/model/merges", json!(null), "`model.merges` is null"),
        (
            "/model/type",
            json!("WordLevel"),
            "the model is not supported: \"WordLevel\"",
        ),
        (
            "/normalizer",
            json!({"type": "Lowercase"}),
            "the normalizer is not supported",
        ),
        (
            "/pre_tokenizer",
            json!({"type": "Whitespace"}),
            "no known pre-tokenizer",
        ),
        (
            "/pre_tokenizer/add_prefix_space",
            json!(true),
            "a space before text is not supported",
        ),
        (
            "/added_tokens/0/id",
            json!(1),
            "token \"<|end|>\" has id 1, but so has \"b\"",
        ),
        (
            "/added_tokens/0/content",
            json!("a"),
            "token \"a\" has id 2, but 0 in the vocabulary",
        ),
    ];
    for (pointer, value, expected) in cases {
        let mut json = tiny_bpe();
        *json.pointer_mut(pointer).unwrap() = value;
        let error = with_json(&json).load().unwrap_err().to_string();
        assert!(error.contains(expected), "{pointer}: {error}");
        assert!(
            error.starts_with("tokenizer.json") || error.contains("tokenizer.json"),
            "{error}"
        );
    }
}

#[test]
fn an_unknown_pre_tokenizer_shows_its_steps() {
    let mut json = tiny_bpe();
    json["pre_tokenizer"] = json!({"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": r"\d+(?=x)"}, "behavior": "Isolated", "invert": false},
        {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false},
    ]});
    let error = with_json(&json).load().unwrap_err();
    assert!(matches!(error, HfError::UnknownPreTokenizer { .. }));
    assert!(error.to_string().ends_with("\n\\d+(?=x)"), "{error}");
}

#[test]
fn roles_come_from_the_configuration_and_ids_without_a_token_are_unused() {
    let mut files = with_json(&tiny_bpe());
    files.tokenizer_config = Some(
        br#"{"eos_token": {"content": "<|end|>"}, "add_bos_token": false, "chat_template": "{{ messages }}"}"#.to_vec(),
    );
    files.config = Some(br#"{"vocab_size": 6, "pad_token_id": 1}"#.to_vec());
    let loaded = files.load().unwrap();
    let vocabulary = &loaded.vocabulary;
    assert_eq!(vocabulary.tokens.len(), 6);
    assert_eq!(vocabulary.tokens.get(4), Some(&b"[PAD4]"[..]));
    assert_eq!(vocabulary.special.eos.map(|id| id.0), Some(2));
    assert_eq!(vocabulary.special.pad.map(|id| id.0), Some(1));
    assert_eq!(vocabulary.add_bos, Some(false));
    assert_eq!(loaded.chat_template.as_deref(), Some("{{ messages }}"));
    files.config = Some(br#"{"vocab_size": 99999999999}"#.to_vec());
    let error = files.load().unwrap_err().to_string();
    assert!(error.contains("`vocab_size`"), "{error}");
    files.config = Some(b"{".to_vec());
    let error = files.load().unwrap_err().to_string();
    assert!(error.starts_with("config.json: "), "{error}");
}

#[test]
fn a_tokenizer_model_of_another_kind_gives_way_to_tokenizer_json() {
    let mut files = with_json(&tiny_bpe());
    files.tokenizer_model = Some(b"IQ== 0\nIg== 1\n".to_vec());
    let loaded = files.load().unwrap();
    assert_eq!(loaded.vocabulary.model, Model::Bpe);
    assert!(
        loaded.notes[0].contains("tokenizer.json is read instead"),
        "{:?}",
        loaded.notes
    );
    files.tokenizer_json = None;
    assert!(matches!(files.load(), Err(HfError::SentencePiece { .. })));
}

#[test]
fn a_folder_without_a_tokenizer_says_what_was_looked_for() {
    let error = Files::default().load().unwrap_err().to_string();
    for name in [
        "tokenizer.json",
        "tokenizer.model",
        "merges.txt",
        "vocab.txt",
    ] {
        assert!(error.contains(name), "{error}");
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    assert!(Files::read(&folder).unwrap().load().is_err());
}

#[test]
fn vocabularies_of_the_new_models_need_what_they_need() {
    let error = |vocabulary| Tokenizer::new(vocabulary).unwrap_err().to_string();
    let plamo = Vocabulary::new(Model::Plamo2, Texts::collect(["a", "<0x00>"]).unwrap());
    assert!(error(plamo).contains("the token `<0x01>` is missing"));
    let rwkv = Vocabulary::new(Model::Rwkv, Texts::collect(["a", r"\x4"]).unwrap());
    assert!(error(rwkv).contains(r#"entry 1 is "\\x4""#));
    let mut gemma = Vocabulary::new(Model::Bpe, Texts::collect(["a"]).unwrap());
    gemma.pre_tokenizer = Some("gemma4".to_owned());
    assert!(error(gemma).starts_with("`tokenizer.ggml.bos_token_id` is missing"));
    let mut bert = Vocabulary::new(Model::WordPiece, Texts::collect(["▁a", "b"]).unwrap());
    bert.add_bos = Some(false);
    let tokenizer = Tokenizer::new(bert).unwrap();
    let ids = tokenizer.encode("ab", EncodeOptions::default()).unwrap();
    assert_eq!(ids.len(), 2);
    assert!(tokenizer.encode("c", EncodeOptions::default()).is_err());
}
