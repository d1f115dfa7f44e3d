//! Keys and values.

use crate::{output::Output, shown};
use anyhow::Result;
use puna::gguf::{Array, Metadata, Value as Meta};
use serde_json::{Value, json};
use std::io::Write;

/// Elements of a list that are shown where not all are.
const FIRST: usize = 8;
/// Longest list that is a list in JSON even where long ones are shortened.
const LONG: usize = 64;
/// Characters of a text that are shown where not all are.
const CHARACTERS: usize = 100;

pub(super) fn print(metadata: &Metadata, full: bool, output: &mut Output) -> Result<()> {
    let width = metadata.iter().map(|(key, _)| key.len()).max().unwrap_or(0);
    for (key, value) in metadata.iter() {
        writeln!(output, "  {key:<width$}  {}", text(value, full))?;
    }
    Ok(())
}

fn text(value: &Meta, full: bool) -> String {
    match value {
        Meta::String(text) => {
            shown::quoted(text.as_bytes(), if full { usize::MAX } else { CHARACTERS })
        }
        Meta::Array(array) => array_text(array, full),
        Meta::F32(x) => x.to_string(),
        Meta::F64(x) => x.to_string(),
        Meta::Bool(x) => x.to_string(),
        other => other.integer().map_or_else(String::new, |n| n.to_string()),
    }
}

fn array_text(array: &Array, full: bool) -> String {
    let shown = if full { array.len() } else { FIRST };
    let mut items: Vec<_> = array
        .iter()
        .take(shown)
        .map(|item| text(&item, full))
        .collect();
    let mut more = String::new();
    if array.len() > shown {
        items.push("...".to_owned());
        more = format!(" ({} {} values)", array.len(), array.element_type());
    }
    format!("[{}]{more}", items.join(", "))
}

pub(super) fn json(metadata: &Metadata, full: bool) -> Value {
    let entries = metadata
        .iter()
        .map(|(key, value)| (key.to_owned(), value_json(value, full)));
    Value::Object(entries.collect())
}

/// The value; a list that is too long as an object with its type, length and first elements.
fn value_json(value: &Meta, full: bool) -> Value {
    match value {
        Meta::String(text) => json!(text.to_string()),
        Meta::F32(x) => json!(x),
        Meta::F64(x) => json!(x),
        Meta::Bool(x) => json!(x),
        Meta::Array(array) if full || array.len() <= LONG => {
            array.iter().map(|item| value_json(&item, full)).collect()
        }
        Meta::Array(array) => json!({
            "array": array.element_type().name(),
            "len": array.len(),
            "first": array.iter().take(FIRST).map(|item| value_json(&item, full)).collect::<Value>(),
        }),
        other => {
            let n = other.integer().unwrap_or_default();
            i64::try_from(n).map_or_else(
                |_| json!(u64::try_from(n).unwrap_or_default()),
                |n| json!(n),
            )
        }
    }
}
