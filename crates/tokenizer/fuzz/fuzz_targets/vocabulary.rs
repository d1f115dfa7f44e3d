//! A vocabulary and a text from arbitrary bytes: no panic, and what is encoded without loss comes back.

#![no_main]

use libfuzzer_sys::fuzz_target;
use puna_tokenizer::{
    DecodeOptions, EncodeOptions, Model, Texts, TokenId, TokenKind, Tokenizer, Vocabulary,
};

const PRE: [&str; 16] = [
    "default",
    "gpt-2",
    "llama-bpe",
    "qwen2",
    "deepseek-v3",
    "gpt-4o",
    "deepseek-llm",
    "bloom",
    "afmoe",
    "gemma4",
    "sarvam-moe",
    "kimi-k2",
    "superbpe",
    "tiny_aya",
    "whitespace",
    "youtu",
];
const MODELS: [Model; 8] = [
    Model::SentencePiece,
    Model::Bpe,
    Model::WhitespaceBpe,
    Model::HybridDna,
    Model::WordPiece,
    Model::Unigram,
    Model::Rwkv,
    Model::Plamo2,
];

fuzz_target!(|data: &[u8]| {
    let [options, choice, data @ ..] = data else {
        return;
    };
    let parts: Vec<&[u8]> = data.split(|&b| b == 0xF8).collect();
    let [text, kinds, merges, tokens @ ..] = parts.as_slice() else {
        return;
    };
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    let model = MODELS[usize::from(choice & 7)];
    let mut vocabulary = Vocabulary::new(model, Texts::collect(tokens).expect("small"));
    let cycle = |i: usize| kinds.get(i % kinds.len().max(1)).copied().unwrap_or(1);
    vocabulary.kinds = (0..tokens.len())
        .map(|i| TokenKind::from_number(i64::from(cycle(i) % 7)).expect("in range"))
        .collect();
    vocabulary.scores = (0..tokens.len()).map(|i| f32::from(cycle(i))).collect();
    vocabulary.merges = Texts::collect(merges.split(|&b| b == b'\n')).expect("small");
    vocabulary.pre_tokenizer = PRE
        .get(usize::from(choice >> 4))
        .map(|&name| name.to_owned());
    vocabulary.special.bos = (options & 16 != 0).then_some(TokenId(u32::from(cycle(0))));
    let Ok(tokenizer) = Tokenizer::new(vocabulary) else {
        return;
    };
    let encode = EncodeOptions {
        add_special: options & 32 != 0,
        parse_special: options & 64 != 0,
    };
    if let Ok(ids) = tokenizer.encode(text, encode) {
        let options = DecodeOptions {
            unparse_special: true,
            ..DecodeOptions::default()
        };
        let whole = tokenizer.decode(&ids, options);
        let mut decoder = tokenizer.decoder_with(options);
        let mut streamed: String = ids.iter().map(|&id| decoder.push(id)).collect();
        streamed.push_str(&decoder.finish());
        assert_eq!(streamed, whole);
    }
});
