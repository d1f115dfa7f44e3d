//! Vocabularies that are wrong, odd or hostile: an error that names what is wrong, or a tokenizer that works; never a panic.

use puna_gguf::{Array, Gguf, GgufWriter, Metadata, StringArray, Value};
use puna_tokenizer::{
    DecodeOptions, EncodeOptions, Model, Texts, TokenId, TokenKind, Tokenizer, TokenizerError,
    Vocabulary,
};

const SPM_TOKENS: &[&str] = &["<unk>", "<s>", "</s>", "▁", "a", "b", "▁a", "ab", "▁ab"];
const BPE_TOKENS: &[&str] = &["a", "b", "ab", "Ġ", "Ġa", "<|endoftext|>"];

fn strings(texts: &[&str]) -> Value {
    texts.iter().copied().collect::<StringArray>().into()
}

fn array(values: impl Into<Array>) -> Value {
    Value::Array(values.into())
}

/// Metadata as it comes from a file with these entries; a later entry replaces an earlier one of its key.
fn metadata(entries: &[(&str, Value)]) -> Metadata {
    let mut writer = GgufWriter::new();
    for (key, value) in entries {
        writer.set(key, value.clone()).unwrap();
    }
    let mut bytes = Vec::new();
    writer.write_to(&mut bytes).unwrap();
    Gguf::from_bytes(bytes).unwrap().metadata().clone()
}

fn spm_entries() -> Vec<(&'static str, Value)> {
    let scores: Vec<f32> = (0..SPM_TOKENS.len()).map(|i| i as f32).collect();
    vec![
        ("tokenizer.ggml.model", "llama".into()),
        ("tokenizer.ggml.tokens", strings(SPM_TOKENS)),
        ("tokenizer.ggml.scores", array(&scores[..])),
        (
            "tokenizer.ggml.token_type",
            array(&[2i32, 3, 3, 1, 1, 1, 1, 1, 1][..]),
        ),
    ]
}

fn bpe_entries() -> Vec<(&'static str, Value)> {
    vec![
        ("tokenizer.ggml.model", "gpt2".into()),
        ("tokenizer.ggml.pre", "gpt-2".into()),
        ("tokenizer.ggml.tokens", strings(BPE_TOKENS)),
        ("tokenizer.ggml.merges", strings(&["a b", "Ġ a"])),
    ]
}

fn with(
    mut entries: Vec<(&'static str, Value)>,
    key: &'static str,
    value: impl Into<Value>,
) -> Result<Tokenizer, TokenizerError> {
    entries.push((key, value.into()));
    Tokenizer::from_gguf(&metadata(&entries))
}

fn ids(tokenizer: &Tokenizer, text: &str) -> Vec<u32> {
    let ids = tokenizer.encode(text, EncodeOptions::default()).unwrap();
    ids.into_iter().map(|id| id.0).collect()
}

#[test]
fn the_smallest_vocabularies_work() {
    let spm = Tokenizer::from_gguf(&metadata(&spm_entries())).unwrap();
    assert_eq!(ids(&spm, "ab a"), [8, 6]);
    let bpe = Tokenizer::from_gguf(&metadata(&bpe_entries())).unwrap();
    assert_eq!(ids(&bpe, "ab a"), [2, 4]);
}

#[test]
fn scores_of_a_wrong_element_type_are_refused() {
    let error = with(spm_entries(), "tokenizer.ggml.scores", array(&[0u8; 9][..]))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("`tokenizer.ggml.scores`") && error.contains("u8"),
        "{error}"
    );
    // Old files have integers of 32 bits.
    let tokenizer = with(
        spm_entries(),
        "tokenizer.ggml.scores",
        array(&[0i32, 1, 2, 3, 4, 5, 6, 7, 8][..]),
    )
    .unwrap();
    assert_eq!(ids(&tokenizer, "ab a"), [8, 6]);
}

#[test]
fn token_types_of_any_integer_width_are_read() {
    let wide = [
        array(&[2u32, 3, 3, 1, 1, 1, 1, 1, 1][..]),
        array(&[2i64, 3, 3, 1, 1, 1, 1, 1, 1][..]),
        array(&[2u8, 3, 3, 1, 1, 1, 1, 1, 1][..]),
    ];
    for value in wide {
        let tokenizer = with(spm_entries(), "tokenizer.ggml.token_type", value).unwrap();
        assert_eq!(tokenizer.kind(TokenId(1)), TokenKind::Control);
    }
    let error = with(
        spm_entries(),
        "tokenizer.ggml.token_type",
        array(&[2i64, 3, 3, 1, 1, 1, 1, 1, 1 << 40][..]),
    )
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "metadata key `tokenizer.ggml.token_type`: entry 8 is 1099511627776, expected 0 to 6"
    );
}

#[test]
fn per_token_arrays_have_one_entry_for_each_token() {
    let cases = [
        ("tokenizer.ggml.scores", array(&[0f32; 8][..])),
        ("tokenizer.ggml.token_type", array(&[1i32; 10][..])),
    ];
    for (key, value) in cases {
        let error = with(spm_entries(), key, value).unwrap_err().to_string();
        assert!(
            error.contains(key) && error.contains("expected 9"),
            "{error}"
        );
    }
}

#[test]
fn a_merge_without_a_space_is_refused() {
    for bad in ["ab", "", " ", "a ", " ab", "a"] {
        let error = with(
            bpe_entries(),
            "tokenizer.ggml.merges",
            strings(&["a b", bad]),
        )
        .unwrap_err();
        let start = format!("metadata key `tokenizer.ggml.merges`: entry 1 is \"{bad}\"");
        assert!(error.to_string().starts_with(&start), "{error}");
    }
}

#[test]
fn special_ids_outside_of_the_vocabulary_are_refused() {
    let keys = [
        "bos_token_id",
        "eos_token_id",
        "eot_token_id",
        "eom_token_id",
        "unknown_token_id",
        "seperator_token_id",
        "padding_token_id",
        "mask_token_id",
        "fim_pre_token_id",
        "fim_suf_token_id",
        "fim_mid_token_id",
        "fim_pad_token_id",
        "fim_rep_token_id",
        "fim_sep_token_id",
        "prefix_token_id",
        "suffix_token_id",
        "middle_token_id",
    ];
    let values = [
        (Value::U32(u32::MAX), "4294967295"),
        (Value::U32(9), "9"),
        (Value::I32(-1), "-1"),
        (Value::U64(1 << 40), "1099511627776"),
    ];
    for key in keys {
        for (value, shown) in &values {
            let mut entries = spm_entries();
            let key = format!("tokenizer.ggml.{key}");
            entries.push((&key, value.clone()));
            let error = Tokenizer::from_gguf(&metadata(&entries))
                .unwrap_err()
                .to_string();
            assert_eq!(
                error,
                format!(
                    "metadata key `{key}`: token id {shown} is outside of the vocabulary, expected less than 9"
                )
            );
        }
    }
    let mut one_token = Vocabulary::new(Model::Bpe, Texts::collect(["a"]).unwrap());
    one_token.special.eos = Some(TokenId(u32::MAX));
    let error = Tokenizer::new(one_token).unwrap_err().to_string();
    assert!(
        error.contains("`tokenizer.ggml.eos_token_id`: token id 4294967295"),
        "{error}"
    );
}

#[test]
fn byte_tokens_that_are_no_bytes_are_text() {
    let tokens = [
        "<unk>", "<s>", "</s>", "<0x-1>", "<0xZZ>", "<0x61>", "▁", "b", "<0x62",
    ];
    let mut entries = spm_entries();
    entries.push(("tokenizer.ggml.tokens", strings(&tokens)));
    entries.push((
        "tokenizer.ggml.token_type",
        array(&[2i32, 3, 3, 6, 6, 6, 1, 1, 6][..]),
    ));
    let tokenizer = Tokenizer::from_gguf(&metadata(&entries)).unwrap();
    assert_eq!(tokenizer.warnings().len(), 1);
    assert_eq!(ids(&tokenizer, "ab"), [6, 5, 7]);
    assert_eq!(tokenizer.piece(TokenId(3)), Some(&b"<0x-1>"[..]));
    assert_eq!(tokenizer.piece(TokenId(4)), Some(&b"<0xZZ>"[..]));
    // No byte tokens for this character: the unknown token, once.
    assert_eq!(ids(&tokenizer, "é"), [6, 0]);
}

#[test]
fn unknown_models_and_pre_tokenizers_are_named() {
    let error = |key, value: &str| with(bpe_entries(), key, value).unwrap_err().to_string();
    assert!(error("tokenizer.ggml.model", "gpt3").starts_with("tokenizer model `gpt3` is unknown"));
    for name in ["llama", "gpt2", "gemma4", "bert", "t5", "rwkv", "plamo2"] {
        assert!(
            error("tokenizer.ggml.model", "gpt3").contains(name),
            "{name} is in the list"
        );
    }
    let unknown = error("tokenizer.ggml.pre", "gpt-17");
    assert!(
        unknown.starts_with("pre-tokenizer `gpt-17` is unknown"),
        "{unknown}"
    );
    for name in ["default", "llama-bpe", "qwen2", "smollm", "deepseek-v3"] {
        assert!(unknown.contains(name), "{name} is in the list");
    }
    let missing: Vec<_> = bpe_entries()
        .into_iter()
        .filter(|(key, _)| *key != "tokenizer.ggml.pre")
        .collect();
    let tokenizer = Tokenizer::from_gguf(&metadata(&missing)).unwrap();
    assert!(tokenizer.warnings()[0].contains("`tokenizer.ggml.pre` is missing"));
}

#[test]
fn what_a_model_needs_is_asked_for_by_key() {
    for (entries, key) in [
        (spm_entries(), "tokenizer.ggml.tokens"),
        (bpe_entries(), "tokenizer.ggml.tokens"),
        (bpe_entries(), "tokenizer.ggml.merges"),
        (bpe_entries(), "tokenizer.ggml.model"),
    ] {
        let without: Vec<_> = entries.into_iter().filter(|(k, _)| *k != key).collect();
        let error = Tokenizer::from_gguf(&metadata(&without))
            .unwrap_err()
            .to_string();
        assert!(error.contains(key) && error.contains("missing"), "{error}");
    }
    let error = with(bpe_entries(), "tokenizer.ggml.add_bos_token", true)
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("`tokenizer.ggml.bos_token_id` is missing"),
        "{error}"
    );
}

#[test]
fn doubled_and_empty_tokens_do_no_harm() {
    let tokens = ["<unk>", "<s>", "</s>", "▁", "a", "a", "", "", "▁a"];
    let tokenizer = with(spm_entries(), "tokenizer.ggml.tokens", strings(&tokens)).unwrap();
    assert_eq!(ids(&tokenizer, "aa"), [8, 4], "the first of equal tokens");
    assert_eq!(
        tokenizer.decode(
            &[TokenId(5), TokenId(6), TokenId(4)],
            DecodeOptions::default()
        ),
        "aa"
    );
    // Empty special tokens match nowhere.
    let kinds = array(&[2i32, 3, 3, 1, 1, 4, 4, 3, 1][..]);
    let mut entries = spm_entries();
    entries.push(("tokenizer.ggml.tokens", strings(&tokens)));
    entries.push(("tokenizer.ggml.token_type", kinds));
    let tokenizer = Tokenizer::from_gguf(&metadata(&entries)).unwrap();
    let special = EncodeOptions {
        add_special: false,
        parse_special: true,
    };
    assert_eq!(
        tokenizer.encode("aa", special).unwrap(),
        [TokenId(5), TokenId(5)],
        "user-defined tokens come first"
    );
}

#[test]
fn tokens_that_are_not_utf8_are_kept_as_bytes() {
    for model in [Model::SentencePiece, Model::Bpe] {
        let texts: [&[u8]; 5] = [b"<unk>", b"\xFF\xFE", b"a", b"\xE2\x96", b"\xF0\x9F"];
        let mut vocabulary = Vocabulary::new(model, Texts::collect(texts).unwrap());
        vocabulary.kinds = vec![
            TokenKind::Unknown,
            TokenKind::UserDefined,
            TokenKind::Normal,
            TokenKind::Control,
            TokenKind::Normal,
        ];
        vocabulary.special.unk = Some(TokenId(0));
        vocabulary.add_bos = Some(false);
        let tokenizer = Tokenizer::new(vocabulary).unwrap();
        assert_eq!(tokenizer.piece(TokenId(1)), Some(&b"\xFF\xFE"[..]));
        assert_eq!(tokenizer.token_text(TokenId(1)), None);
        let options = EncodeOptions {
            add_special: true,
            parse_special: true,
        };
        let found = tokenizer.encode("a🦙a", options).unwrap();
        assert!(
            found.contains(&TokenId(2)) && found.contains(&TokenId(0)),
            "{model:?}: {found:?}"
        );
        assert_eq!(
            tokenizer.decode(&[TokenId(4)], DecodeOptions::default()),
            "\u{FFFD}"
        );
        assert_eq!(
            tokenizer.decode(&[TokenId(99)], DecodeOptions::default()),
            ""
        );
    }
}

#[test]
fn text_without_tokens_is_an_error_when_there_is_no_unknown_token() {
    let tokenizer = Tokenizer::from_gguf(&metadata(&bpe_entries())).unwrap();
    let error = tokenizer
        .encode("a!", EncodeOptions::default())
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("byte 0x21 of the text has no token"),
        "{error}"
    );
    let empty = Tokenizer::new(Vocabulary::new(Model::SentencePiece, Texts::default())).unwrap();
    assert!(empty.is_empty());
    assert!(empty.encode("a", EncodeOptions::default()).is_err());
    assert_eq!(empty.encode("", EncodeOptions::default()).unwrap(), []);
}

#[test]
fn merges_of_texts_that_are_no_tokens_are_followed_and_spelled() {
    // `bb` is no token, but a step on the way to `abb`; left alone it is spelled.
    let mut entries = bpe_entries();
    entries.push(("tokenizer.ggml.tokens", strings(&["a", "b", "abb"])));
    entries.push(("tokenizer.ggml.merges", strings(&["b b", "a bb"])));
    let tokenizer = Tokenizer::from_gguf(&metadata(&entries)).unwrap();
    assert_eq!(ids(&tokenizer, "abb"), [2]);
    assert_eq!(ids(&tokenizer, "bb"), [1, 1]);
}

#[test]
fn scores_that_are_no_numbers_are_refused() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut scores = [0.0; 9];
        scores[6] = bad;
        let error = with(spm_entries(), "tokenizer.ggml.scores", array(&scores[..])).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "metadata key `tokenizer.ggml.scores`: entry 6 (token \"▁a\") is {bad}, expected a finite number"
            )
        );
    }
    let scores = [
        -0.0,
        0.0,
        f32::MAX,
        f32::MIN,
        f32::MIN_POSITIVE,
        -1.0,
        0.0,
        0.0,
        f32::MAX,
    ];
    let tokenizer = with(spm_entries(), "tokenizer.ggml.scores", array(&scores[..])).unwrap();
    let found = ids(&tokenizer, &"ab a".repeat(50));
    let found: Vec<TokenId> = found.into_iter().map(TokenId).collect();
    assert_eq!(
        tokenizer.decode(&found, DecodeOptions::default()),
        "ab a".repeat(50)
    );
}
