//! Arbitrary bytes as the files of a hub folder: no panic; what loads makes a tokenizer that encodes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use puna_tokenizer::hf::Files;
use puna_tokenizer::{EncodeOptions, Tokenizer};

fuzz_target!(|data: &[u8]| {
    let [which, data @ ..] = data else { return };
    let mut files = Files::default();
    let parts: Vec<Vec<u8>> = data.split(|&b| b == 0xF8).map(<[u8]>::to_vec).collect();
    let mut parts = parts.into_iter();
    let first = parts.next();
    match which % 4 {
        0 => files.tokenizer_json = first,
        1 => files.tokenizer_model = first,
        2 => files.vocab_txt = first,
        _ => {
            files.vocab_json = first;
            files.merges_txt = parts.next();
        }
    }
    files.tokenizer_config = parts.next();
    files.config = parts.next();
    let Ok(loaded) = files.load() else { return };
    if let Ok(tokenizer) = Tokenizer::new(loaded.vocabulary) {
        let options = EncodeOptions {
            add_special: true,
            parse_special: true,
        };
        let _ = tokenizer.encode("Hello, wörld 12 🦙\n", options);
    }
});
