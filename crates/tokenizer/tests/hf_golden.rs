//! Small tokenizers as files of the Hugging Face hub, and the ids that the Python packages `tokenizers`, `sentencepiece` and
//! `pyrwkv_tokenizer` give with them: see `tools/make_hf_golden.py`.

use std::path::{Path, PathBuf};

use puna_gguf::{Gguf, GgufWriter};
use puna_tokenizer::hf::{Files, Loaded};
use puna_tokenizer::{
    DecodeOptions, EncodeOptions, Model, Texts, TokenId, TokenKind, Tokenizer, Vocabulary,
};
use serde_json::Value;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data/hf")
        .join(name)
}

fn json(name: &str, file: &str) -> Value {
    serde_json::from_slice(&std::fs::read(folder(name).join(file)).unwrap()).unwrap()
}

fn load(name: &str) -> Loaded {
    let files = Files::read(&folder(name)).unwrap();
    files.load().unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// The vocabulary after a way through a file.
fn through_gguf(vocabulary: &Vocabulary) -> Vocabulary {
    let mut writer = GgufWriter::new();
    for (key, value) in vocabulary.to_gguf() {
        writer.set(key, value).unwrap();
    }
    let mut bytes = Vec::new();
    writer.write_to(&mut bytes).unwrap();
    Vocabulary::from_gguf(Gguf::from_bytes(bytes).unwrap().metadata()).unwrap()
}

/// The generator of the script.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % n
    }
}

fn check(name: &str, tokenizer: &Tokenizer) {
    let golden = json(name, "golden.json");
    let options = EncodeOptions {
        add_special: false,
        parse_special: golden["special"].as_bool().unwrap(),
    };
    let encode = |text: &str| -> Vec<u64> {
        let ids = tokenizer.encode(text, options);
        let ids = ids.unwrap_or_else(|e| panic!("{name}: {text:?}: {e}"));
        ids.into_iter().map(|id| u64::from(id.0)).collect()
    };
    for case in golden["cases"].as_array().unwrap() {
        let text = case["text"].as_str().unwrap();
        let expected: Vec<u64> = case["ids"]
            .as_array()
            .unwrap()
            .iter()
            .map(|id| id.as_u64().unwrap())
            .collect();
        assert_eq!(encode(text), expected, "{name}: {text:?}");
    }
    let atoms: Vec<&str> = golden["atoms"]
        .as_array()
        .unwrap()
        .iter()
        .map(|a| a.as_str().unwrap())
        .collect();
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let sums = golden["sums"].as_array().unwrap();
    assert_eq!(sums.len(), 100);
    for (block, expected) in sums.iter().enumerate() {
        let mut sum = 0xCBF2_9CE4_8422_2325_u64;
        for _ in 0..100 {
            let text: String = (0..random.below(12))
                .map(|_| atoms[random.below(atoms.len())])
                .collect();
            for id in encode(&text).into_iter().chain([0xFFFF_FFFF]) {
                sum = (sum ^ id).wrapping_mul(0x100_0000_01B3);
            }
        }
        assert_eq!(
            format!("{sum:016x}"),
            expected.as_str().unwrap(),
            "{name}: strings {} to {}",
            block * 100,
            block * 100 + 99
        );
    }
}

fn check_files(name: &str, model: Model, pre: Option<&str>) -> Tokenizer {
    let loaded = load(name);
    let vocabulary = loaded.vocabulary;
    assert_eq!(vocabulary.model, model, "{name}");
    assert_eq!(vocabulary.pre_tokenizer.as_deref(), pre, "{name}");
    let written = through_gguf(&vocabulary);
    check(name, &Tokenizer::new(vocabulary).unwrap());
    let tokenizer = Tokenizer::new(written).unwrap();
    check(name, &tokenizer);
    tokenizer
}

fn with_special(tokenizer: &Tokenizer, text: &str) -> Vec<u32> {
    let options = EncodeOptions {
        add_special: true,
        parse_special: false,
    };
    let ids = tokenizer.encode(text, options).unwrap();
    ids.into_iter().map(|id| id.0).collect()
}

#[test]
fn wordpiece_gives_the_ids_of_the_python_package() {
    for name in ["wordpiece-uncased", "wordpiece-cased"] {
        let tokenizer = check_files(name, Model::WordPiece, None);
        assert_eq!(with_special(&tokenizer, ""), [2, 3], "[CLS] and [SEP]");
    }
    let tokenizer = check_files("wordpiece-txt", Model::WordPiece, None);
    assert_eq!(with_special(&tokenizer, ""), [2, 3], "[CLS] and [SEP]");
    let text = "the grassland of the andes";
    let ids = tokenizer.encode(text, EncodeOptions::default()).unwrap();
    assert_eq!(tokenizer.decode(&ids, DecodeOptions::default()), text);
}

#[test]
fn byte_level_bpe_of_tokenizer_json_is_recognized_by_its_pattern() {
    let tokenizer = check_files("bpe-gpt2", Model::Bpe, Some("gpt-2"));
    assert!(!tokenizer.add_bos());
    let tokenizer = check_files("bpe-llama3", Model::Bpe, Some("llama-bpe"));
    assert!(tokenizer.add_bos());
    assert_eq!(with_special(&tokenizer, ""), [0]);
    assert_eq!(tokenizer.eos(), tokenizer.find("<|im_end|>"));
    check_files("bpe-plain-files", Model::Bpe, Some("gpt-2"));
}

#[test]
fn bpe_over_characters_becomes_sentencepiece_when_its_merges_say_no_more() {
    let tokenizer = check_files("bpe-complete-merges", Model::SentencePiece, None);
    let options = EncodeOptions::default();
    let text = "  the Andes 🦙";
    let ids = tokenizer.encode(text, options).unwrap();
    assert_eq!(tokenizer.decode(&ids, DecodeOptions::default()), text);
    let tokenizer = check_files("bpe-merges", Model::Bpe, Some("sarvam-moe"));
    let ids = tokenizer.encode(text, options).unwrap();
    assert_eq!(tokenizer.decode(&ids, DecodeOptions::default()), text);
}

#[test]
fn bpe_over_words_drops_spaces() {
    check_files("bpe-words", Model::WhitespaceBpe, Some("whitespace"));
}

#[test]
fn unigram_gives_the_ids_of_the_python_packages() {
    let tokenizer = check_files("unigram", Model::Unigram, None);
    assert_eq!(with_special(&tokenizer, ""), [2], "</s>");
    check_files("sp-unigram", Model::Unigram, None);
    let tokenizer = check_files("sp-unigram-bytes", Model::Unigram, None);
    let text = "  the Andes 🦙 中";
    let ids = tokenizer.encode(text, EncodeOptions::default()).unwrap();
    assert_eq!(tokenizer.decode(&ids, DecodeOptions::default()), text);
}

#[test]
fn bpe_of_a_sentencepiece_file_gives_the_ids_of_the_python_package() {
    check_files("sp-bpe", Model::SentencePiece, None);
}

#[test]
fn rwkv_gives_the_ids_of_the_python_package() {
    let tokens = json("rwkv", "tokens.json");
    let tokens = tokens
        .as_array()
        .unwrap()
        .iter()
        .map(|t| t.as_str().unwrap());
    let mut vocabulary = Vocabulary::new(Model::Rwkv, Texts::collect(tokens).unwrap());
    vocabulary.kinds = vec![TokenKind::Normal; vocabulary.tokens.len()];
    vocabulary.kinds[0] = TokenKind::Control;
    let tokenizer = Tokenizer::new(through_gguf(&vocabulary)).unwrap();
    check("rwkv", &tokenizer);
    let text = "\t\t中文 \\x é\u{0}\u{7f}🦙";
    let ids = tokenizer.encode(text, EncodeOptions::default()).unwrap();
    assert_eq!(tokenizer.decode(&ids, DecodeOptions::default()), text);
}

#[test]
fn plamo2_takes_the_cheapest_of_all_ways() {
    let data = json("plamo2", "tokens.json");
    let tokens = data["tokens"].as_array().unwrap().iter();
    let tokens = tokens.map(|t| t.as_str().unwrap());
    let mut vocabulary = Vocabulary::new(Model::Plamo2, Texts::collect(tokens).unwrap());
    let scores = data["scores"].as_array().unwrap().iter();
    vocabulary.scores = scores.map(|s| s.as_f64().unwrap() as f32).collect();
    let kind = |id: usize| match id {
        0 => TokenKind::Unknown,
        1..=3 => TokenKind::Control,
        4..260 => TokenKind::Byte,
        _ => TokenKind::Normal,
    };
    vocabulary.kinds = (0..vocabulary.tokens.len()).map(kind).collect();
    let tokenizer = Tokenizer::new(through_gguf(&vocabulary)).unwrap();
    check("plamo2", &tokenizer);
    let text = " 中 the Andes\n\n🦙 \u{0}é";
    let ids = tokenizer.encode(text, EncodeOptions::default()).unwrap();
    assert_eq!(tokenizer.decode(&ids, DecodeOptions::default()), text);
}

#[test]
fn long_runs_of_one_character_are_encoded_in_linear_time() {
    let mut tokenizers = Vec::new();
    for name in [
        "wordpiece-uncased",
        "bpe-llama3",
        "bpe-complete-merges",
        "bpe-merges",
        "bpe-words",
        "unigram",
        "sp-unigram-bytes",
        "sp-bpe",
    ] {
        tokenizers.push((name, Tokenizer::new(load(name).vocabulary).unwrap()));
    }
    let rwkv = json("rwkv", "tokens.json");
    let tokens = rwkv.as_array().unwrap().iter().map(|t| t.as_str().unwrap());
    let vocabulary = Vocabulary::new(Model::Rwkv, Texts::collect(tokens).unwrap());
    tokenizers.push(("rwkv", Tokenizer::new(vocabulary).unwrap()));
    let start = std::time::Instant::now();
    for (name, tokenizer) in &tokenizers {
        for unit in [
            "a", "e", " ", ".", "7", "\n", "é", "中", "\u{301}", "🦙", "▁", "\u{0}",
        ] {
            let text = unit.repeat(100_000);
            tokenizer
                .encode(&text, EncodeOptions::default())
                .unwrap_or_else(|e| panic!("{name}: {unit:?}: {e}"));
        }
    }
    // Quadratic time would be minutes; the machine may be busy.
    let seconds = start.elapsed().as_secs();
    assert!(seconds < 60, "{seconds} s");
}

#[test]
fn a_vocabulary_without_texts_has_ids_alone() {
    let mut writer = GgufWriter::new();
    writer.set("general.architecture", "llama").unwrap();
    writer.set("llama.vocab_size", 100u32).unwrap();
    writer.set("tokenizer.ggml.model", "no_vocab").unwrap();
    let mut bytes = Vec::new();
    writer.write_to(&mut bytes).unwrap();
    let file = Gguf::from_bytes(bytes).unwrap();
    let tokenizer = Tokenizer::from_gguf(file.metadata()).unwrap();
    assert_eq!((tokenizer.len(), tokenizer.model()), (100, Model::None));
    assert_eq!(
        tokenizer.decode(&[TokenId(5)], DecodeOptions::default()),
        ""
    );
    assert!(
        tokenizer
            .encode("", EncodeOptions::default())
            .unwrap()
            .is_empty()
    );
    let error = tokenizer.encode("a", EncodeOptions::default()).unwrap_err();
    assert!(error.to_string().contains("no vocabulary"), "{error}");
}

#[test]
fn dna_between_tags_is_cut_into_sixes() {
    let tokens = [
        "A",
        "C",
        "G",
        "T",
        "<dna>",
        "</dna>",
        "<oov>",
        "ACGTAC\u{E000}",
        "GGAAAA\u{E000}",
        "GG",
    ];
    let mut vocabulary = Vocabulary::new(Model::HybridDna, Texts::collect(tokens).unwrap());
    vocabulary.pre_tokenizer = Some("gpt-2".to_owned());
    vocabulary.merges = Texts::collect(["G G"]).unwrap();
    let tokenizer = Tokenizer::new(vocabulary).unwrap();
    let encode = |text: &str| -> Vec<u32> {
        let ids = tokenizer.encode(text, EncodeOptions::default()).unwrap();
        ids.into_iter().map(|id| id.0).collect()
    };
    assert_eq!(encode("GG<dna>acgtacGG</dna>GG"), [9, 4, 7, 8, 5, 9]);
    assert_eq!(encode("<dna>ACGTACNNNNNN"), [4, 7, 6]);
    assert_eq!(tokenizer.piece(TokenId(7)), Some(&b"ACGTAC"[..]));
}

#[test]
fn gemma4_takes_runs_of_newlines_whole_and_always_begins_with_bos() {
    let tokens = [
        "<bos>", "▁", "a", "b", "▁a", "\n", "\n\n\n", "<0xC3>", "<0xA9>", "<unk>",
    ];
    let mut vocabulary = Vocabulary::new(Model::Bpe, Texts::collect(tokens).unwrap());
    vocabulary.pre_tokenizer = Some("gemma4".to_owned());
    vocabulary.merges = Texts::collect(["▁ a"]).unwrap();
    vocabulary.special.bos = Some(TokenId(0));
    vocabulary.special.unk = Some(TokenId(9));
    vocabulary.kinds = vec![TokenKind::Normal; tokens.len()];
    vocabulary.kinds[0] = TokenKind::Control;
    vocabulary.kinds[7] = TokenKind::Byte;
    vocabulary.kinds[8] = TokenKind::Byte;
    vocabulary.add_bos = Some(false);
    let tokenizer = Tokenizer::new(through_gguf(&vocabulary)).unwrap();
    assert_eq!(
        with_special(&tokenizer, "b a\n\n\na\n\né中"),
        [0, 3, 4, 6, 2, 5, 5, 7, 8, 9]
    );
    let text = "b a\n\n\na\n\né";
    let ids = tokenizer.encode(text, EncodeOptions::default()).unwrap();
    assert_eq!(tokenizer.decode(&ids, DecodeOptions::default()), text);
}

/// The tokenizer of a real model, when it is there.
#[test]
fn a_real_wordpiece_tokenizer_equals_its_gguf_vocabulary() {
    let (Some(models), Some(data)) = (
        std::env::var_os("PUNA_TEST_MODELS"),
        std::env::var_os("PUNA_TEST_DATA"),
    ) else {
        eprintln!("skipped: PUNA_TEST_MODELS or PUNA_TEST_DATA is not set");
        return;
    };
    let folder = Path::new(&models).join("all-minilm-l6-v2");
    if !folder.exists() {
        eprintln!("skipped: {} is not there", folder.display());
        return;
    }
    let loaded = Files::read(&folder).unwrap().load().unwrap();
    let path = Path::new(&data).join("tokenizers/ggml-vocab-bert-bge.gguf");
    let mut bytes = std::fs::read(path).unwrap();
    bytes.resize(bytes.len().next_multiple_of(32), 0);
    // Both are the vocabulary of BERT in small letters.
    let file = Gguf::from_bytes(bytes).unwrap();
    let expected = Vocabulary::from_gguf(file.metadata()).unwrap();
    assert_eq!(loaded.vocabulary.tokens, expected.tokens);
    let kinds = |v: &Vocabulary| -> Vec<bool> {
        let special = |k: &TokenKind| matches!(k, TokenKind::Control | TokenKind::Unknown);
        v.kinds.iter().map(special).collect()
    };
    assert_eq!(kinds(&loaded.vocabulary), kinds(&expected));
    let special = loaded.vocabulary.special;
    assert_eq!(
        (
            special.bos,
            special.sep,
            special.pad,
            special.mask,
            special.unk
        ),
        (
            Some(TokenId(101)),
            Some(TokenId(102)),
            Some(TokenId(0)),
            Some(TokenId(103)),
            Some(TokenId(100))
        )
    );
}
