//! `puna list`: the models in the cache folder.

use crate::{models, output::Output, shown};
use anyhow::{Context, Result};
use puna::gguf::SplitName;
use serde_json::{Value, json};
use std::{
    ffi::OsStr,
    io::{self, Write},
    path::{Path, PathBuf},
};

/// Deepest folder that is looked into; hub repositories may have folders of their own.
const DEPTH: usize = 8;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print a JSON list
    #[arg(long)]
    json: bool,
}

/// A model file in the cache.
struct Cached {
    /// Where it came from, as `-m` takes it.
    name: String,
    path: PathBuf,
    bytes: u64,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let mut found = Vec::new();
    let config = models::hub_config();
    if let Some(cache) = &config.cache {
        walk(cache, DEPTH, &mut |path, bytes| {
            found.push(Cached {
                name: name(cache, path),
                path: path.to_owned(),
                bytes,
            });
        })
        .with_context(|| format!("cannot read the cache folder `{}`", cache.display()))?;
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    let mut output = Output::new();
    if args.json {
        let list = found
            .iter()
            .map(|m| json!({ "name": m.name, "path": m.path.to_string_lossy(), "bytes": m.bytes }));
        return output.json(&Value::Array(list.collect()));
    }
    let width = found
        .iter()
        .map(|m| m.name.chars().count())
        .max()
        .unwrap_or(0);
    if !found.is_empty() {
        writeln!(output, "{:<width$}  {:>10}  PATH", "NAME", "SIZE")?;
    }
    for model in &found {
        let bytes = shown::bytes(model.bytes);
        writeln!(
            output,
            "{:<width$}  {bytes:>10}  {}",
            model.name,
            model.path.display()
        )?;
    }
    if found.is_empty() {
        let place = config
            .cache
            .map_or_else(String::new, |c| format!(" in `{}`", c.display()));
        writeln!(
            output,
            "no models{place}; `puna pull` fetches the default one"
        )?;
    }
    output.flush()?;
    Ok(())
}

/// `hf:owner/repo/file.gguf` for what came from a hub, else the path.
fn name(cache: &Path, path: &Path) -> String {
    let in_hub = path
        .strip_prefix(cache.join("hub"))
        .ok()
        .and_then(Path::to_str);
    match in_hub {
        Some(rest) => format!("hf:{}", rest.replace('\\', "/")),
        None => path.display().to_string(),
    }
}

/// Visits all model files; a split model by its first part.
fn walk(folder: &Path, depth: usize, visit: &mut dyn FnMut(&Path, u64)) -> io::Result<()> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let path = entry?.path();
        let file = std::fs::metadata(&path)?;
        if file.is_dir() && depth > 0 {
            walk(&path, depth - 1, visit)?;
        } else if file.is_file()
            && path
                .extension()
                .is_some_and(|e| e.eq_ignore_ascii_case("gguf"))
        {
            let name = path.file_name().and_then(OsStr::to_str);
            match name.and_then(SplitName::parse) {
                None => visit(&path, file.len()),
                Some(part) if part.number() == 1 => visit(&path, bytes_of_all(&part, folder)),
                Some(_) => {}
            }
        }
    }
    Ok(())
}

/// Bytes of the parts that are there.
fn bytes_of_all(part: &SplitName, folder: &Path) -> u64 {
    let files = part.all().map(|part| folder.join(part.file_name()));
    files
        .map(|file| std::fs::metadata(file).map_or(0, |file| file.len()))
        .sum()
}
