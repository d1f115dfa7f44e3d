//! How much memory a model needs to run.

use super::Args;
use crate::{backend, failure, shown};
use anyhow::Result;
use puna::{
    Gguf,
    graph::{Backend, CacheLayout, PAGE_POSITIONS, Reach},
    model::{LoadOptions, Model},
};
use serde_json::{Value, json};
use std::sync::Arc;

/// What runs of a context need beside scratch.
struct Need {
    context: usize,
    training: usize,
    file: u64,
    cache: u64,
}

fn need(args: &Args, gguf: &Arc<Gguf>) -> Result<Need> {
    let mut load = LoadOptions::default();
    load.context = Some(args.ctx_size).filter(|n| *n > 0);
    let model = Model::load(gguf, &load)?;
    let training = model.hyper.context_length;
    let context = load.context.unwrap_or(training);
    let layout = CacheLayout::new(model.graph.cache_layers(), args.cache.keys(), args.cache.values());
    // One page of each group tells the size of all.
    let memory = backend::open(Some(1))?.cache(&layout, &vec![1; layout.groups.len()])?;
    let mut cache = 0u64;
    for (i, group) in layout.groups.iter().enumerate() {
        let positions = match group.reach {
            Reach::Full => context,
            Reach::Window(n) => context.min(n as usize + args.batch_size + PAGE_POSITIONS),
        };
        let pages = positions.div_ceil(PAGE_POSITIONS) as u64;
        cache = cache.saturating_add(pages.saturating_mul(memory.page_bytes(i) as u64));
    }
    Ok(Need {
        context,
        training,
        file: gguf.files().iter().map(puna::gguf::SourceFile::byte_len).sum(),
        cache,
    })
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
            shown::bytes(need.file + need.cache),
        ),
        Err(error) => format!("memory: not known, since the model cannot be run: {}", failure::one_line(&error)),
    }
}

fn types(args: &Args) -> String {
    let (keys, values) = (args.cache.keys().name(), args.cache.values().name());
    if keys == values { keys.to_owned() } else { format!("{keys}/{values}") }
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
            "bytes": need.file + need.cache,
        }),
        Err(error) => json!({ "error": failure::one_line(&error) }),
    }
}
