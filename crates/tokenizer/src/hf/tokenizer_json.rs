//! `tokenizer.json`: everything in one file, as the package `tokenizers` writes it.

use serde_json::Value;

use super::added::{Names, Table};
use super::error::{bad_field, shown};
use super::{HfError, bpe, unigram, wordpiece};

pub(super) const FILE: &str = "tokenizer.json";

/// Reads the vocabulary and the added tokens.
pub(super) fn read(json: &Value, notes: &mut Vec<String>) -> Result<Table, HfError> {
    let model = json
        .get("model")
        .filter(|model| model.is_object())
        .ok_or_else(|| bad_field(FILE, "model", &json["model"], "an object"))?;
    let mut table = match kind(model) {
        "BPE" => bpe::read(json, model, notes)?,
        "WordPiece" => wordpiece::read(json, model)?,
        "Unigram" => unigram::read(json, model)?,
        _ => {
            return Err(HfError::Unsupported {
                file: FILE,
                what: "the model",
                found: shown(&model["type"]),
            });
        }
    };
    table.add_from_json(json, Names::Keep)?;
    Ok(table)
}

/// The kind of the model; files of old do not name it.
fn kind(model: &Value) -> &str {
    match model.get("type").and_then(Value::as_str) {
        Some(kind) => kind,
        None if model.get("merges").is_some() => "BPE",
        None if model["vocab"].is_array() => "Unigram",
        None if model.get("continuing_subword_prefix").is_some() => "WordPiece",
        None => "",
    }
}

/// Token texts with their ids, from an object.
pub(super) fn vocabulary(model: &Value) -> Result<Vec<(&str, usize)>, HfError> {
    let vocab = &model["vocab"];
    let object = vocab
        .as_object()
        .ok_or_else(|| bad_field(FILE, "model.vocab", vocab, "an object of tokens and ids"))?;
    let pairs = object.iter().map(|(text, id)| {
        let id = id.as_u64().and_then(|id| usize::try_from(id).ok());
        let id = id.ok_or_else(|| bad_field(FILE, "model.vocab", &object[text], "an id"))?;
        Ok((text.as_str(), id))
    });
    pairs.collect()
}

/// The steps of a normalizer, pre-tokenizer or decoder, whether it is a sequence, one step or nothing.
pub(super) fn steps<'j>(part: &'j Value, list: &str) -> Vec<&'j Value> {
    let mut steps = Vec::new();
    let mut open = vec![part];
    while let Some(part) = open.pop() {
        match part.get(list).and_then(Value::as_array) {
            Some(inner) => open.extend(inner.iter().rev()),
            None if part.is_null() => {}
            None => steps.push(part),
        }
    }
    steps
}

/// The type of a step.
pub(super) fn type_of(step: &Value) -> &str {
    step.get("type").and_then(Value::as_str).unwrap_or_default()
}

/// The regular expression or text of a step.
pub(super) fn pattern(step: &Value) -> Option<&str> {
    let pattern = step.get("pattern")?;
    let text = pattern.get("Regex").or_else(|| pattern.get("String"))?;
    text.as_str()
}

pub(super) fn normalizer_steps(json: &Value) -> Vec<&Value> {
    steps(&json["normalizer"], "normalizers")
}

pub(super) fn pre_tokenizer_steps(json: &Value) -> Vec<&Value> {
    steps(&json["pre_tokenizer"], "pretokenizers")
}
