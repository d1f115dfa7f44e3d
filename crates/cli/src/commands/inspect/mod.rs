//! `puna inspect`: what a model file holds and how much memory it needs.
//!
//! The file is opened and checked, and that is nearly all: no tokenizer is built, and of the tensors only the small vectors that a
//! forward pass is made of are read, to learn what the cache must hold.

mod memory;
mod metadata;
mod tensors;

use crate::{
    args::{CacheArgs, ModelArgs, positive},
    models,
    output::Output,
    shown,
};
use anyhow::Result;
use puna::Gguf;
use serde_json::{Map, Value, json};
use std::{io::Write, path::Path, sync::Arc};

#[derive(clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Args {
    #[command(flatten)]
    model: ModelArgs,
    /// Show the metadata, and not the rest
    #[arg(long)]
    metadata: bool,
    /// Show the tensors, and not the rest
    #[arg(long)]
    tensors: bool,
    /// Show long lists and texts whole
    #[arg(long)]
    full: bool,
    /// Context to tell the memory for; 0 for that of the model's training
    #[arg(short, long, value_name = "N", default_value_t = 0)]
    ctx_size: usize,
    /// Tokens computed together, which layers with a sliding window must hold beside it
    #[arg(short = 'b', long, value_name = "N", default_value_t = 512, value_parser = positive)]
    batch_size: usize,
    #[command(flatten)]
    cache: CacheArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let path = args.model.path()?;
    let gguf = Arc::new(Gguf::open(&path)?);
    let all = !args.metadata && !args.tensors;
    let mut output = Output::new();
    if args.json {
        let mut object = Map::new();
        if all {
            object.extend(summary(&path, &gguf));
            object.insert("memory".into(), memory::json(args, &gguf));
        }
        if all || args.metadata {
            object.insert(
                "metadata".into(),
                metadata::json(gguf.metadata(), args.full),
            );
        }
        if all || args.tensors {
            object.insert("tensors".into(), tensors::json(&gguf));
        }
        return output.json(&Value::Object(object));
    }
    if all {
        print_summary(&path, &gguf, &mut output)?;
        writeln!(output, "\n{}", memory::text(args, &gguf))?;
    }
    if all || args.metadata {
        heading(&mut output, all, "metadata", gguf.metadata().len())?;
        metadata::print(gguf.metadata(), args.full, &mut output)?;
    }
    if all || args.tensors {
        heading(
            &mut output,
            all || args.metadata,
            "tensors",
            gguf.tensors().len(),
        )?;
        tensors::print(&gguf, &mut output)?;
    }
    output.flush()?;
    Ok(())
}

fn heading(output: &mut Output, wanted: bool, name: &str, n: usize) -> Result<()> {
    if wanted {
        writeln!(output, "\n{name} ({n})")?;
    }
    Ok(())
}

fn text<'a>(gguf: &'a Gguf, key: &str) -> Option<&'a str> {
    gguf.metadata().str(key).ok().flatten()
}

/// Bits that each parameter takes on average; `None` without tensors.
fn bits_per_weight(gguf: &Gguf) -> Option<f64> {
    let parameters = models::parameters(gguf);
    (parameters > 0).then(|| models::tensor_bytes(gguf) as f64 * 8.0 / parameters as f64)
}

fn summary(path: &Path, gguf: &Gguf) -> Map<String, Value> {
    let files = gguf.files().iter().map(|file| {
        json!({
            "path": file.path().map(|p| p.to_string_lossy()),
            "bytes": file.byte_len(),
        })
    });
    let value = json!({
        "model": path.to_string_lossy(),
        "files": files.collect::<Vec<_>>(),
        "gguf_version": gguf.version(),
        "alignment": gguf.alignment(),
        "architecture": text(gguf, "general.architecture"),
        "name": text(gguf, "general.name"),
        "parameters": models::parameters(gguf),
        "tensor_bytes": models::tensor_bytes(gguf),
        "bits_per_weight": bits_per_weight(gguf),
        "types": tensors::types_json(gguf),
    });
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

fn print_summary(path: &Path, gguf: &Gguf, output: &mut Output) -> Result<()> {
    let mut line = |name: &str, value: &str| writeln!(output, "{name:<13} {value}");
    line("file", &path.display().to_string())?;
    let bytes: u64 = gguf
        .files()
        .iter()
        .map(puna::gguf::SourceFile::byte_len)
        .sum();
    let parts = match gguf.files().len() {
        1 => String::new(),
        n => format!(" in {n} files"),
    };
    line(
        "size",
        &format!(
            "{}{parts}, GGUF version {}",
            shown::bytes(bytes),
            gguf.version()
        ),
    )?;
    if let Some(name) = text(gguf, "general.name") {
        line("name", name)?;
    }
    line(
        "architecture",
        text(gguf, "general.architecture").unwrap_or("not given"),
    )?;
    let bits = bits_per_weight(gguf).map_or_else(String::new, |b| format!(", {b:.2} bits each"));
    line(
        "parameters",
        &format!("{}{bits}", shown::count(models::parameters(gguf))),
    )?;
    line("types", &tensors::types_text(gguf))?;
    Ok(())
}
