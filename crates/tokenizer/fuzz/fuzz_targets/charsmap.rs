//! Arbitrary bytes as the rules that rewrite characters: no panic, and no way out of the data.

#![no_main]

use libfuzzer_sys::fuzz_target;
use puna_tokenizer::{EncodeOptions, Model, Texts, Tokenizer, Vocabulary};

fuzz_target!(|data: &[u8]| {
    let [flags, length, data @ ..] = data else {
        return;
    };
    let Some((text, rules)) = data.split_at_checked(usize::from(*length)) else {
        return;
    };
    let mut vocabulary = Vocabulary::new(
        Model::Unigram,
        Texts::collect(["<pad>", "</s>", "<unk>", "a", "▁"]).expect("small"),
    );
    vocabulary.precompiled_charsmap = rules.to_vec();
    vocabulary.add_space_prefix = Some(flags & 1 != 0);
    vocabulary.remove_extra_whitespaces = Some(flags & 2 != 0);
    if let Ok(tokenizer) = Tokenizer::new(vocabulary) {
        let _ = tokenizer.encode(&String::from_utf8_lossy(text), EncodeOptions::default());
    }
});
