//! The tensors and their types.

use crate::{output::Output, shown};
use anyhow::Result;
use puna::{Gguf, gguf::ElementType};
use serde_json::{Value, json};
use std::io::Write;

/// Number and bytes of the tensors of each type, the largest first.
fn types(gguf: &Gguf) -> Vec<(ElementType, usize, u64)> {
    let mut types: Vec<(ElementType, usize, u64)> = Vec::new();
    for tensor in gguf.tensors() {
        let bytes = tensor.byte_len as u64;
        match types.iter_mut().find(|(t, _, _)| *t == tensor.element_type) {
            Some((_, count, sum)) => {
                *count += 1;
                *sum += bytes;
            }
            None => types.push((tensor.element_type, 1, bytes)),
        }
    }
    types.sort_by_key(|(_, _, bytes)| std::cmp::Reverse(*bytes));
    types
}

pub(super) fn types_json(gguf: &Gguf) -> Value {
    let types = types(gguf).into_iter().map(
        |(t, count, bytes)| json!({ "type": t.name(), "tensors": count, "bytes": bytes, "supported": t.codec().is_some() }),
    );
    types.collect()
}

pub(super) fn types_text(gguf: &Gguf) -> String {
    let types = types(gguf).into_iter().map(|(t, count, bytes)| {
        let missing = if t.codec().is_some() {
            ""
        } else {
            ", not supported yet"
        };
        format!(
            "{} ({count} tensors, {}{missing})",
            t.name(),
            shown::bytes(bytes)
        )
    });
    types.collect::<Vec<_>>().join(", ")
}

/// Shapes are as in the file, the row length first.
pub(super) fn json(gguf: &Gguf) -> Value {
    let tensors = gguf.tensors().iter().map(|t| {
        json!({
            "name": t.name,
            "shape": t.dims,
            "type": t.element_type.name(),
            "bytes": t.byte_len,
            "file": t.file_index(),
            "offset": t.file_offset(),
        })
    });
    tensors.collect()
}

pub(super) fn print(gguf: &Gguf, output: &mut Output) -> Result<()> {
    let width = gguf
        .tensors()
        .iter()
        .map(|t| t.name.len())
        .max()
        .unwrap_or(0);
    for t in gguf.tensors() {
        let (name, ty) = (&t.name, t.element_type.name());
        let dims: Vec<_> = t.dims.iter().map(ToString::to_string).collect();
        let (shape, bytes) = (
            format!("[{}]", dims.join(", ")),
            shown::bytes(t.byte_len as u64),
        );
        writeln!(output, "  {name:<width$}  {ty:<8} {shape:<16} {bytes:>11}")?;
    }
    Ok(())
}
