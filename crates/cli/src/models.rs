//! From what the user typed after `-m` to a file, with progress on the terminal.

use crate::shown;
use anyhow::Result;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use puna::{
    Gguf,
    gguf::ElementType,
    hub::{Freshness, HubConfig, ModelSpec, Progress, resolve},
};
use std::{
    ffi::OsStr,
    io::{IsTerminal, stderr},
    path::PathBuf,
    time::Duration,
};

/// Where downloads go and how, from the environment.
pub(crate) fn hub_config() -> HubConfig {
    HubConfig::from_env(|name| std::env::var(name).ok())
}

/// The file that `name` stands for, fetched if need be; the default model for the empty name.
pub(crate) fn find(name: &OsStr, freshness: Option<Freshness>) -> Result<PathBuf> {
    let mut config = hub_config();
    if let Some(freshness) = freshness {
        config.freshness = freshness;
    }
    let spec = ModelSpec::parse(name)?;
    Ok(resolve(&spec, &config, &mut Bar::new())?)
}

/// A progress bar on the standard error; a line per file where that is not a terminal.
struct Bar {
    shown: Option<ProgressBar>,
    terminal: bool,
    name: String,
}

impl Bar {
    fn new() -> Self {
        Self {
            shown: None,
            terminal: stderr().is_terminal(),
            name: String::new(),
        }
    }
}

impl Progress for Bar {
    fn total(&mut self, name: &str, bytes: Option<u64>) {
        if let Some(bar) = self.shown.take() {
            bar.finish_and_clear();
        }
        if !self.terminal {
            if self.name != name {
                tell!("fetching {name}");
            }
            name.clone_into(&mut self.name);
            return;
        }
        let bar = ProgressBar::with_draw_target(bytes, ProgressDrawTarget::stderr());
        let template = if bytes.is_some() {
            "{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}"
        } else {
            "{msg} {spinner} {bytes} {bytes_per_sec}"
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(name.to_owned());
        bar.enable_steady_tick(Duration::from_millis(200));
        self.shown = Some(bar);
    }

    fn advanced(&mut self, position: u64) {
        if let Some(bar) = &self.shown {
            bar.set_position(position);
        }
    }

    fn finished(&mut self) {
        if let Some(bar) = self.shown.take() {
            bar.finish_and_clear();
        }
    }

    fn note(&mut self, text: &str) {
        match &self.shown {
            Some(bar) => bar.suspend(|| tell!("note: {text}")),
            None => tell!("note: {text}"),
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.finished();
    }
}

/// Number of parameters: elements of all tensors.
pub(crate) fn parameters(gguf: &Gguf) -> u64 {
    gguf.tensors()
        .iter()
        .fold(0, |n, t| n.saturating_add(t.elements()))
}

/// Architecture, size and main element type, as in `llama 134.52 M Q4_1`.
pub(crate) fn describe(gguf: &Gguf) -> String {
    let architecture = gguf.metadata().str("general.architecture");
    let architecture = architecture.ok().flatten().unwrap_or("unknown");
    let mut by_type: Vec<(ElementType, u64)> = Vec::new();
    for tensor in gguf.tensors() {
        match by_type.iter_mut().find(|(t, _)| *t == tensor.element_type) {
            Some((_, elements)) => *elements = elements.saturating_add(tensor.elements()),
            None => by_type.push((tensor.element_type, tensor.elements())),
        }
    }
    let main = by_type.iter().max_by_key(|(_, elements)| *elements);
    let main = main.map_or("without tensors", |(t, _)| t.name());
    format!("{architecture} {} {main}", shown::count(parameters(gguf)))
}

/// Bytes of all tensors.
pub(crate) fn tensor_bytes(gguf: &Gguf) -> u64 {
    gguf.tensors().iter().map(|t| t.byte_len as u64).sum()
}
