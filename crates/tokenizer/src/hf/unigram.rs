//! Unigram of a `tokenizer.json`: as converted from `SentencePiece`, whose normalization it has to be.

use serde_json::Value;

use super::HfError;
use super::added::{Entry, Table};
use super::error::{bad_field, shown};
use super::tokenizer_json::{FILE, normalizer_steps, pattern, pre_tokenizer_steps, type_of};
use crate::vocabulary::Model;

pub(super) fn read(json: &Value, model: &Value) -> Result<Table, HfError> {
    let mut table = Table::new(Model::Unigram);
    table.has_scores = true;
    let vocab = &model["vocab"];
    let expected = "a list of tokens with their scores";
    let list = vocab
        .as_array()
        .ok_or_else(|| bad_field(FILE, "model.vocab", vocab, expected))?;
    let unknown = model["unk_id"].as_u64();
    let fallback = model["byte_fallback"].as_bool().unwrap_or(false);
    for (id, row) in list.iter().enumerate() {
        let (Some(text), Some(score)) = (row[0].as_str(), row[1].as_f64()) else {
            return Err(bad_field(FILE, format!("model.vocab[{id}]"), row, expected));
        };
        let unknown = unknown == Some(id as u64);
        table.insert(
            FILE,
            id,
            Entry::of_model(text, unknown, fallback, score as f32),
        )?;
    }
    let mut merge_spaces = read_normalizer(json, &mut table)?;
    let mut prefix = false;
    for step in pre_tokenizer_steps(json) {
        match type_of(step) {
            "WhitespaceSplit" => merge_spaces = true,
            "Metaspace" if step["replacement"].as_str().is_none_or(|r| r == "▁") => {
                prefix = metaspace_prefix(step);
            }
            _ => return Err(unsupported("the pre-tokenizer", step)),
        }
    }
    table.rest.add_space_prefix = Some(prefix);
    table.rest.remove_extra_whitespaces = Some(merge_spaces);
    Ok(table)
}

/// Takes over the rules for characters; tells whether runs of spaces become one.
fn read_normalizer(json: &Value, table: &mut Table) -> Result<bool, HfError> {
    let mut merge_spaces = false;
    for step in normalizer_steps(json) {
        match type_of(step) {
            "Precompiled" => {
                let rules = &step["precompiled_charsmap"];
                let bytes = rules.as_str().and_then(decode_base64);
                table.rest.precompiled_charsmap = bytes.ok_or_else(|| {
                    bad_field(FILE, "normalizer.precompiled_charsmap", rules, "base64")
                })?;
            }
            "Replace" if pattern(step) == Some(" {2,}") => merge_spaces = true,
            // Blanks at the ends go with merged spaces.
            "Strip" => {}
            _ => return Err(unsupported("the normalizer", step)),
        }
    }
    Ok(merge_spaces)
}

fn unsupported(what: &'static str, found: &Value) -> HfError {
    HfError::Unsupported {
        file: FILE,
        what,
        found: shown(found),
    }
}

/// Whether a step of type `Metaspace` puts a space before text.
pub(super) fn metaspace_prefix(step: &Value) -> bool {
    match step["prepend_scheme"].as_str() {
        Some(scheme) => scheme != "never",
        None => step["add_prefix_space"].as_bool().unwrap_or(true),
    }
}

/// The bytes that a text in base64 stands for (RFC 4648, with or without padding).
fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let mut bits = 0u32;
    let mut count = 0;
    for byte in text.trim_end_matches('=').bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    // A single character left over is no whole byte.
    (count < 6).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_decoded() {
        for (text, bytes) in [
            ("", Some(&b""[..])),
            ("QQ==", Some(b"A")),
            ("QUI=", Some(b"AB")),
            ("QUJD", Some(b"ABC")),
            ("+/8A", Some(&[0xFB, 0xFF, 0])),
            ("Q", None),
            ("QU-C", None),
        ] {
            assert_eq!(decode_base64(text).as_deref(), bytes, "{text}");
        }
    }
}
