//! BPE of a `tokenizer.json`: over bytes; over characters with marked spaces, as converted from `SentencePiece`; or over the words
//! between spaces.

use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;

use super::added::{Entry, Table};
use super::error::{bad_field, shown};
use super::tokenizer_json::{
    FILE, normalizer_steps, pattern, pre_tokenizer_steps, steps, type_of, vocabulary,
};
use super::unigram::metaspace_prefix;
use super::{HfError, pre_tokenizer};
use crate::texts::Texts;
use crate::vocabulary::{Model, TokenKind};

pub(super) fn read(json: &Value, model: &Value, notes: &mut Vec<String>) -> Result<Table, HfError> {
    for key in ["continuing_subword_prefix", "end_of_word_suffix"] {
        if model[key].as_str().is_some_and(|text| !text.is_empty()) {
            return Err(unsupported("a mark inside of words", &model[key]));
        }
    }
    let merges = merges(model)?;
    let cuts = pre_tokenizer_steps(json);
    let decoder = steps(&json["decoder"], "decoders");
    let has = |steps: &[&Value], kind: &str| steps.iter().any(|step| type_of(step) == kind);
    if has(&cuts, "ByteLevel") || has(&decoder, "ByteLevel") {
        return byte_level(json, model, &merges, notes);
    }
    if let [step] = cuts.as_slice()
        && type_of(step) == "WhitespaceSplit"
    {
        return words(json, model, &merges);
    }
    marked_spaces(json, model, &merges)
}

fn unsupported(what: &'static str, found: &Value) -> HfError {
    HfError::Unsupported {
        file: FILE,
        what,
        found: shown(found),
    }
}

/// Left and right of each merge, best first.
fn merges(model: &Value) -> Result<Vec<(&str, &str)>, HfError> {
    let merges = &model["merges"];
    let expected = "a list of pairs of tokens";
    let list = merges
        .as_array()
        .ok_or_else(|| bad_field(FILE, "model.merges", merges, expected))?;
    let pairs = list.iter().enumerate().map(|(index, merge)| {
        let pair = match merge {
            Value::String(text) => text.split_once(' '),
            pair => pair[0].as_str().zip(pair[1].as_str()),
        };
        // Files have a space between the two.
        pair.filter(|(left, right)| {
            [left, right]
                .iter()
                .all(|text| !text.is_empty() && !text.contains(' '))
        })
        .ok_or_else(|| bad_field(FILE, format!("model.merges[{index}]"), merge, expected))
    });
    pairs.collect()
}

fn joined(merges: &[(&str, &str)]) -> Result<Texts, HfError> {
    let texts = merges.iter().map(|(left, right)| format!("{left} {right}"));
    Ok(Texts::collect(texts)?)
}

/// Fills a table with the tokens of the model. With `spelled`, `<0x00>` to `<0xFF>` are bytes.
fn fill(table: &mut Table, model: &Value, spelled: bool) -> Result<(), HfError> {
    let unknown = model["unk_token"].as_str().filter(|_| spelled);
    for (text, id) in vocabulary(model)? {
        table.insert(
            FILE,
            id,
            Entry::of_model(text, Some(text) == unknown, spelled, 0.0),
        )?;
    }
    Ok(())
}

fn byte_level(
    json: &Value,
    model: &Value,
    merges: &[(&str, &str)],
    notes: &mut Vec<String>,
) -> Result<Table, HfError> {
    for step in normalizer_steps(json) {
        if type_of(step) != "NFC" {
            return Err(unsupported("the normalizer", step));
        }
        notes.push(
            "tokenizer.json composes characters first (NFC); GGUF files cannot say so, and texts with letters and accents apart \
             get other ids"
                .to_owned(),
        );
    }
    let ignore_merges = model["ignore_merges"].as_bool().unwrap_or(false);
    let mut table = Table::new(Model::Bpe);
    table.rest.pre_tokenizer = Some(pre_tokenizer::name(json, ignore_merges)?.to_owned());
    table.rest.merges = joined(merges)?;
    fill(&mut table, model, false)?;
    Ok(table)
}

fn words(json: &Value, model: &Value, merges: &[(&str, &str)]) -> Result<Table, HfError> {
    let mut table = Table::new(Model::WhitespaceBpe);
    for step in normalizer_steps(json) {
        match type_of(step) {
            "Lowercase" => table.rest.lowercase = Some(true),
            _ => return Err(unsupported("the normalizer", step)),
        }
    }
    table.rest.pre_tokenizer = Some("whitespace".to_owned());
    table.rest.merges = joined(merges)?;
    fill(&mut table, model, true)?;
    Ok(table)
}

/// As converted from `SentencePiece`. The merges of such a file are every way to make a token of two, so that they say no more than
/// the order of the tokens.
fn marked_spaces(json: &Value, model: &Value, merges: &[(&str, &str)]) -> Result<Table, HfError> {
    let prefix = space_prefix(json)?;
    let mut table = Table::new(Model::SentencePiece);
    fill(&mut table, model, true)?;
    let mut order: FxHashMap<String, usize> = FxHashMap::default();
    let mut pairs: FxHashSet<(&str, &str)> = FxHashSet::default();
    for &(left, right) in merges {
        let next = order.len();
        order.entry(format!("{left}{right}")).or_insert(next);
        pairs.insert((left, right));
    }
    let incomplete = order.keys().find(|text| {
        let splits = text
            .char_indices()
            .skip(1)
            .filter_map(|(at, _)| text.split_at_checked(at));
        let is_token = |text: &str| {
            let id = table.id(text).and_then(|id| table.entry(id));
            id.is_some_and(|entry| entry.kind == TokenKind::Normal)
        };
        splits
            .filter(|(left, right)| is_token(left) && is_token(right))
            .any(|pair| !pairs.contains(&pair))
    });
    if incomplete.is_none() {
        table.has_scores = true;
        table.rest.add_space_prefix = Some(prefix);
        let last = order.len();
        for entry in table.entries_mut() {
            if entry.kind == TokenKind::Normal {
                let rank = order.get(&entry.text).copied().unwrap_or(last);
                entry.score = -(rank as f32);
            }
        }
        return Ok(table);
    }
    // Merges that leave something out can be kept as they are, but not with a space before text.
    let crosses = order
        .keys()
        .any(|text| text.contains('\n') && !text.chars().all(|c| c == '\n'));
    if prefix || crosses {
        return Err(unsupported(
            "merges that leave out ways to make a token, with a space before text or over newlines",
            &Value::from(incomplete.map_or("", String::as_str)),
        ));
    }
    table.rest.model = Model::Bpe;
    table.rest.pre_tokenizer = Some("sarvam-moe".to_owned());
    table.rest.merges = joined(merges)?;
    Ok(table)
}

/// Whether a space is put before text. Spaces have to be marked, by the normalizer or the pre-tokenizer.
fn space_prefix(json: &Value) -> Result<bool, HfError> {
    let mut marked = false;
    let mut prefix = false;
    for step in normalizer_steps(json) {
        match type_of(step) {
            "Prepend" if step["prepend"].as_str() == Some("▁") => prefix = true,
            "Replace" if pattern(step) == Some(" ") && step["content"].as_str() == Some("▁") => {
                marked = true;
            }
            _ => return Err(unsupported("the normalizer", step)),
        }
    }
    for step in pre_tokenizer_steps(json) {
        match type_of(step) {
            "Metaspace" => {
                marked = true;
                prefix = metaspace_prefix(step);
            }
            // No space is left to split at.
            "Split" if marked && pattern(step) == Some(" ") => {}
            _ => return Err(unsupported("the pre-tokenizer", step)),
        }
    }
    if marked {
        Ok(prefix)
    } else {
        let found = serde_json::json!([json["normalizer"], json["pre_tokenizer"]]);
        Err(unsupported("BPE without bytes or marked spaces", &found))
    }
}
