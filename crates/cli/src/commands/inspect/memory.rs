//! How much memory a model needs to run.

use super::Args;
use crate::{backend, failure, shown};
use anyhow::Result;
use puna::{EngineOptions, Gguf, MemoryNeed};
use serde_json::{Value, json};
use std::sync::Arc;

fn need(args: &Args, gguf: &Arc<Gguf>) -> Result<MemoryNeed> {
    let mut options = EngineOptions::default();
    options.context = Some(args.ctx_size).filter(|n| *n > 0);
    options.batch = args.batch_size;
    options.key_type = args.cache.keys();
    options.value_type = args.cache.values();
    Ok(MemoryNeed::of(gguf, &backend::open(Some(1))?, &options)?)
}

pub(super) fn text(args: &Args, gguf: &Arc<Gguf>) -> String {
    match need(args, gguf) {
        Ok(need) => format!(
            "memory for a context of {} (training: {}), one sequence that fills it\n  file, mapped  {:>11}\n  cache {:<7} {:>11}\n  together      {:>11}, and scratch",
            need.context,
            need.training,
            shown::bytes(need.file),
            types(args),
            shown::bytes(need.cache),
            shown::bytes(need.total()),
        ),
        Err(error) => format!(
            "memory: not known, since the model cannot be run: {}",
            failure::one_line(&error)
        ),
    }
}

fn types(args: &Args) -> String {
    let (keys, values) = (args.cache.keys().name(), args.cache.values().name());
    if keys == values {
        keys.to_owned()
    } else {
        format!("{keys}/{values}")
    }
}

pub(super) fn json(args: &Args, gguf: &Arc<Gguf>) -> Value {
    match need(args, gguf) {
        Ok(need) => json!({
            "context": need.context,
            "training_context": need.training,
            "type_k": args.cache.keys().name(),
            "type_v": args.cache.values().name(),
            "file_bytes": need.file,
            "cache_bytes": need.cache,
            "bytes": need.total(),
        }),
        Err(error) => json!({ "error": failure::one_line(&error) }),
    }
}
