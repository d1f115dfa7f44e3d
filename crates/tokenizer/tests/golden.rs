//! Small vocabularies, and the ids that the Python package `tokenizers` gives for them: see `tools/make_golden.py`.

use puna_tokenizer::{
    DecodeOptions, EncodeOptions, Model, Segment, Texts, TokenId, TokenKind, Tokenizer, Vocabulary,
};
use serde_json::Value;

const BPE: &str = include_str!("data/tiny_bpe.json");
const SPM: &str = include_str!("data/tiny_spm.json");

fn texts(data: &Value, key: &str) -> Texts {
    Texts::collect(
        data[key]
            .as_array()
            .unwrap()
            .iter()
            .map(|t| t.as_str().unwrap()),
    )
    .unwrap()
}

fn vocabulary(model: Model, data: &Value) -> Vocabulary {
    let mut vocabulary = Vocabulary::new(model, texts(data, "tokens"));
    let numbers = data["kinds"].as_array().unwrap().iter();
    vocabulary.kinds = numbers
        .map(|n| TokenKind::from_number(n.as_i64().unwrap()).unwrap())
        .collect();
    if model == Model::Bpe {
        vocabulary.merges = texts(data, "merges");
    } else {
        let scores = data["scores"].as_array().unwrap().iter();
        vocabulary.scores = scores.map(|s| s.as_f64().unwrap() as f32).collect();
    }
    vocabulary
}

fn bpe(pre: &str) -> Tokenizer {
    let mut vocabulary = vocabulary(Model::Bpe, &serde_json::from_str(BPE).unwrap());
    vocabulary.pre_tokenizer = Some(pre.to_owned());
    Tokenizer::new(vocabulary).unwrap()
}

fn spm(prefix: bool) -> Tokenizer {
    let mut vocabulary = vocabulary(Model::SentencePiece, &serde_json::from_str(SPM).unwrap());
    vocabulary.add_space_prefix = Some(prefix);
    Tokenizer::new(vocabulary).unwrap()
}

fn case(case: &Value) -> (&str, Vec<TokenId>) {
    let ids = case["ids"].as_array().unwrap().iter();
    let ids = ids
        .map(|id| TokenId(u32::try_from(id.as_u64().unwrap()).unwrap()))
        .collect();
    (case["text"].as_str().unwrap(), ids)
}

const SPECIAL_SHOWN: DecodeOptions = DecodeOptions {
    remove_special: false,
    unparse_special: true,
    strip_space_prefix: true,
};

#[test]
fn byte_level_bpe_gives_the_ids_of_the_python_package() {
    let data: Value = serde_json::from_str(BPE).unwrap();
    for pre in ["gpt-2", "llama-bpe", "qwen2"] {
        let tokenizer = bpe(pre);
        let cases = data["cases"].as_array().unwrap();
        for golden in cases.iter().filter(|c| c["pre"] == pre) {
            let (text, ids) = case(golden);
            let options = EncodeOptions {
                add_special: false,
                parse_special: golden["parse_special"].as_bool().unwrap(),
            };
            assert_eq!(tokenizer.encode(text, options).unwrap(), ids, "{golden}");
            assert_eq!(tokenizer.decode(&ids, SPECIAL_SHOWN), text);
        }
    }
}

#[test]
fn sentencepiece_gives_the_ids_of_the_python_package() {
    let data: Value = serde_json::from_str(SPM).unwrap();
    for prefix in [true, false] {
        let tokenizer = spm(prefix);
        let cases = data["cases"].as_array().unwrap();
        for golden in cases.iter().filter(|c| c["add_space_prefix"] == prefix) {
            let (text, ids) = case(golden);
            assert_eq!(
                tokenizer.encode(text, EncodeOptions::default()).unwrap(),
                ids,
                "{golden}"
            );
            assert_eq!(tokenizer.decode(&ids, DecodeOptions::default()), text);
        }
    }
}

#[test]
fn the_same_ids_come_from_a_warm_cache_and_from_many_threads() {
    let tokenizer = bpe("gpt-2");
    let text = include_str!("../benches/english.txt");
    let first = tokenizer.encode(text, EncodeOptions::default()).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..20 {
                    assert_eq!(
                        tokenizer.encode(text, EncodeOptions::default()).unwrap(),
                        first
                    );
                }
            });
        }
    });
}

#[test]
fn a_word_longer_than_the_short_path_merges_the_same() {
    // With spaces between, words take the short path; joined by letters of the same merges, the long one.
    for tokenizer in [bpe("gpt-2"), spm(false)] {
        let word = "grasslandsandmeasurements";
        for repeats in [1, 2, 3, 40] {
            let text = word.repeat(repeats);
            let ids = tokenizer.encode(&text, EncodeOptions::default()).unwrap();
            assert_eq!(tokenizer.decode(&ids, DecodeOptions::default()), text);
            // No two neighbours are left that are a token together in a vocabulary where every token can be merged.
            if tokenizer.model() == Model::SentencePiece {
                for pair in ids.windows(2) {
                    let joined: String = pair
                        .iter()
                        .filter_map(|&id| tokenizer.token_text(id))
                        .collect();
                    assert_eq!(tokenizer.find(&joined), None, "{joined}");
                }
            }
        }
    }
}

#[test]
fn text_is_never_a_control_token_unless_asked() {
    let tokenizer = bpe("gpt-2");
    let end = tokenizer.find("<|im_end|>").unwrap();
    let text = "a<|im_end|>b";
    let plain = tokenizer.encode(text, EncodeOptions::default()).unwrap();
    assert!(!plain.contains(&end));
    assert_eq!(tokenizer.decode(&plain, DecodeOptions::default()), text);
    let segments = [
        Segment {
            text: "a",
            special: true,
        },
        Segment {
            text: "<|im_",
            special: true,
        },
        Segment {
            text: "end|>",
            special: false,
        },
        Segment {
            text: "<|im_end|>",
            special: true,
        },
    ];
    let found = tokenizer.encode_segments(&segments, false).unwrap();
    let positions: Vec<usize> = (0..found.len()).filter(|&i| found[i] == end).collect();
    assert_eq!(
        positions,
        [found.len() - 1],
        "the marker that reaches into the untrusted segment is text"
    );

    let spm = spm(true);
    for text in ["<s>", "</s>", "<unk>", "<0x0A>", "a</s>b"] {
        let ids = spm.encode(text, EncodeOptions::default()).unwrap();
        assert!(ids.iter().all(|&id| spm.kind(id) != TokenKind::Control && spm.kind(id) != TokenKind::Unknown), "{text}");
        assert_eq!(spm.decode(&ids, DecodeOptions::default()), text);
    }
}

#[test]
fn bos_and_eos_are_added_once() {
    let mut vocabulary = vocabulary(Model::SentencePiece, &serde_json::from_str(SPM).unwrap());
    vocabulary.add_eos = Some(true);
    let tokenizer = Tokenizer::new(vocabulary).unwrap();
    let (bos, eos) = (TokenId(1), TokenId(2));
    let count = |ids: &[TokenId], id| ids.iter().filter(|&&i| i == id).count();
    let both = EncodeOptions {
        add_special: true,
        parse_special: true,
    };
    for text in [
        "the Andes",
        "<s>the Andes",
        "the Andes</s>",
        "<s>the Andes</s>",
    ] {
        let ids = tokenizer.encode(text, both).unwrap();
        assert_eq!(
            (ids.first(), ids.last()),
            (Some(&bos), Some(&eos)),
            "{text}"
        );
        assert_eq!((count(&ids, bos), count(&ids, eos)), (1, 1), "{text}");
        let removed = DecodeOptions {
            remove_special: true,
            ..SPECIAL_SHOWN
        };
        assert_eq!(tokenizer.decode(&ids, removed), "the Andes");
        assert_eq!(tokenizer.decode(&ids, SPECIAL_SHOWN), "<s>the Andes</s>");
    }
}

#[test]
fn the_decoder_holds_back_half_characters_and_loses_nothing() {
    let tokenizer = spm(true);
    let text = "🦙 é中";
    let ids = tokenizer.encode(text, EncodeOptions::default()).unwrap();
    assert!(ids.len() > text.chars().count(), "spelled in bytes");
    let mut decoder = tokenizer.decoder_with(DecodeOptions::default());
    let mut streamed = String::new();
    for &id in &ids {
        let part = decoder.push(id);
        assert!(!part.contains('\u{FFFD}'), "{part:?}");
        streamed.push_str(&part);
    }
    assert_eq!(streamed, text);
    assert_eq!(decoder.finish(), "");
}

#[test]
fn bytes_that_are_no_text_become_replacement_characters_as_soon_as_that_is_certain() {
    let tokenizer = spm(true);
    let byte = |b: u8| tokenizer.find(&format!("<0x{b:02X}>")).unwrap();
    let a = byte(b'a');
    let cases: [(&[u8], &[&str], &str); 5] = [
        (&[0xF0, 0x9F, 0xA6, 0x99], &["", "", "", "🦙"], ""),
        (&[0xFF, b'a'], &["\u{FFFD}", "a"], ""),
        (&[0xF0, 0x9F, b'a'], &["", "", "\u{FFFD}a"], ""),
        (&[0xC3, 0xC3, 0xA9], &["", "\u{FFFD}", "é"], ""),
        (&[b'a', 0xE4, 0xB8], &["a", "", ""], "\u{FFFD}"),
    ];
    for (bytes, parts, rest) in cases {
        let ids: Vec<TokenId> = bytes.iter().map(|&b| byte(b)).collect();
        let mut decoder = tokenizer.decoder();
        let found: Vec<String> = ids.iter().map(|&id| decoder.push(id)).collect();
        assert_eq!(found, parts, "{bytes:x?}");
        assert_eq!(decoder.finish(), rest, "{bytes:x?}");
        assert_eq!(
            tokenizer.decode_bytes(&ids, DecodeOptions::continuation()),
            bytes
        );
        let mut raw = tokenizer.decoder();
        let pushed: Vec<u8> = ids
            .iter()
            .flat_map(|&id| raw.push_bytes(id).to_vec())
            .collect();
        assert_eq!(pushed, bytes);
    }
    assert_eq!(tokenizer.piece(a), Some(&b"a"[..]));
}

#[test]
fn a_continuation_keeps_its_leading_space() {
    let tokenizer = spm(true);
    let ids = tokenizer
        .encode("the Andes", EncodeOptions::default())
        .unwrap();
    let continued: String = {
        let mut decoder = tokenizer.decoder();
        ids.iter().map(|&id| decoder.push(id)).collect()
    };
    assert_eq!(continued, " the Andes");
    assert_eq!(
        tokenizer.decode(&ids, DecodeOptions::default()),
        "the Andes"
    );
}

#[test]
fn leading_blanks_come_back_exactly() {
    for tokenizer in [bpe("gpt-2"), bpe("llama-bpe"), spm(true), spm(false)] {
        for blank in [" ", "\t", "\n", "\r\n"] {
            for count in 0..=8 {
                let text = format!("{}text{0} end{0}", blank.repeat(count));
                let ids = tokenizer.encode(&text, EncodeOptions::default()).unwrap();
                assert_eq!(tokenizer.decode(&ids, DecodeOptions::default()), text);
            }
        }
    }
}

#[test]
fn a_megabyte_of_one_character_is_encoded() {
    for tokenizer in [bpe("gpt-2"), bpe("llama-bpe"), bpe("qwen2"), spm(true)] {
        for unit in ["A", "e", " ", ".", "7", "\n", "é"] {
            let text = unit.repeat((1 << 20) / unit.len());
            let ids = tokenizer.encode(&text, EncodeOptions::default()).unwrap();
            assert!(
                tokenizer.decode(&ids, DecodeOptions::default()) == text,
                "{unit:?}"
            );
        }
    }
}
