//! `WordPiece` of a `tokenizer.json`: the normalizer and pre-tokenizer have to be those of BERT.

use serde_json::Value;

use super::HfError;
use super::added::{Entry, Table};
use super::error::shown;
use super::tokenizer_json::{FILE, normalizer_steps, pre_tokenizer_steps, type_of, vocabulary};
use crate::vocabulary::{Model, TokenKind};

pub(super) fn read(json: &Value, model: &Value) -> Result<Table, HfError> {
    let unsupported = |what, found: &Value| HfError::Unsupported {
        file: FILE,
        what,
        found: shown(found),
    };
    let normalizer = match normalizer_steps(json).as_slice() {
        [step] if type_of(step) == "BertNormalizer" => *step,
        _ => return Err(unsupported("the normalizer", &json["normalizer"])),
    };
    let is_on = |key: &str| normalizer[key].as_bool();
    if is_on("clean_text") == Some(false) || is_on("handle_chinese_chars") == Some(false) {
        return Err(unsupported("the normalizer", normalizer));
    }
    if !matches!(pre_tokenizer_steps(json).as_slice(), [step] if type_of(step) == "BertPreTokenizer")
    {
        return Err(unsupported("the pre-tokenizer", &json["pre_tokenizer"]));
    }
    let prefix = &model["continuing_subword_prefix"];
    if prefix.as_str().is_some_and(|prefix| prefix != "##") {
        return Err(unsupported("the prefix of pieces inside of words", prefix));
    }
    let longest = &model["max_input_chars_per_word"];
    if longest.as_u64().is_some_and(|n| n != 100) {
        return Err(unsupported("the length of the longest word", longest));
    }
    let mut table = Table::new(Model::WordPiece);
    table.rest.lowercase = is_on("lowercase");
    table.rest.strip_accents = is_on("strip_accents");
    let unknown = model["unk_token"].as_str().unwrap_or("[UNK]");
    for (text, id) in vocabulary(model)? {
        insert(&mut table, FILE, id, text, unknown)?;
    }
    Ok(table)
}

/// Adds a piece as GGUF files write it: U+2581 before pieces that begin a word, nothing before others.
pub(super) fn insert(
    table: &mut Table,
    file: &'static str,
    id: usize,
    text: &str,
    unknown: &str,
) -> Result<(), HfError> {
    let written = if text.starts_with('[') && text.ends_with(']') {
        text.to_owned()
    } else if let Some(inside) = text.strip_prefix("##") {
        inside.to_owned()
    } else {
        format!("▁{text}")
    };
    let kind = if text == unknown {
        TokenKind::Unknown
    } else {
        TokenKind::Normal
    };
    let entry = Entry {
        text: written,
        kind,
        score: 0.0,
    };
    table.insert(file, id, entry)
}
