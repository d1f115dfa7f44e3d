//! `puna doctor`: what this machine offers, and what is made of it.

use crate::{
    args::threads,
    backend::{self, KERNELS},
    machine::{self, Ceilings, cpu_model, last_cache, memory},
    models,
    output::Output,
    shown,
};
use anyhow::Result;
use puna::{
    cpu::kernels::Set,
    hub::{DEFAULT_MODEL, Freshness, HubConfig, ModelSpec, NoProgress, resolve},
};
use serde_json::{Value, json};
use std::{io::Write, path::PathBuf};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Threads to measure with, beside one; all that the machine has by default, as for 0
    #[arg(short, long, value_name = "N", allow_negative_numbers = true, value_parser = threads)]
    threads: Option<usize>,
    /// Measure nothing
    #[arg(long)]
    no_measure: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let forced = backend::forced_set()?;
    let threads = args.threads.unwrap_or_else(backend::all_threads);
    let mut measured = Vec::new();
    if !args.no_measure {
        measured.push(Ceilings::measure(1)?);
        if threads > 1 {
            measured.push(Ceilings::measure(threads)?);
        }
    }
    let config = models::hub_config();
    let mut output = Output::new();
    if args.json {
        return output.json(&report(forced, threads, &measured, &config));
    }
    let mut line = |name: &str, value: String| writeln!(output, "{name:<14} {value}");
    line("puna", env!("CARGO_PKG_VERSION").to_owned())?;
    line(
        "cpu",
        cpu_model().unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
    )?;
    line("features", features().join(" "))?;
    line("kernels", kernels(forced))?;
    line("threads", threads.to_string())?;
    if let [Some(total), Some(free)] = ["MemTotal", "MemAvailable"].map(memory) {
        line(
            "memory",
            format!("{}, {} available", shown::bytes(total), shown::bytes(free)),
        )?;
    }
    if let Some(cache) = last_cache() {
        line("largest cache", shown::bytes(cache))?;
    }
    for ceilings in &measured {
        let [name, best, means] = lines(ceilings);
        line(&name, best)?;
        line("", means)?;
    }
    let cache = config.cache.as_ref().map_or_else(
        || "none: no home folder is known; set HF_HOME".to_owned(),
        |path| path.display().to_string(),
    );
    line("cache folder", cache)?;
    let model = default_model(&config).map_or_else(
        || format!("{}, not fetched yet: `puna pull` does", DEFAULT_MODEL.name),
        |path| format!("{}, in `{}`", DEFAULT_MODEL.name, path.display()),
    );
    line("default model", model)?;
    output.flush()?;
    Ok(())
}

/// The figures of one number of threads, and what they mean for a model.
fn lines(ceilings: &Ceilings) -> [String; 3] {
    // A token reads all weights, and each of them is a multiplication and an addition.
    let means = format!(
        "so at most {:.1} generated tokens per second from 1 GB of weights, {:.0} prompt tokens of 1 B weights",
        ceilings.read.per_second / 1e9,
        ceilings.integer.per_second / 2e9,
    );
    [machine::threads(ceilings.threads), ceilings.line(), means]
}

fn report(forced: Option<Set>, threads: usize, measured: &[Ceilings], config: &HubConfig) -> Value {
    let measured = measured.iter().map(Ceilings::json);
    let path = default_model(config);
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "cpu": cpu_model(),
        "architecture": std::env::consts::ARCH,
        "features": features(),
        "kernels": {
            "chosen": forced.unwrap_or_else(Set::best).name(),
            "forced": forced.is_some(),
            "available": Set::available().iter().map(|set| set.name()).collect::<Vec<_>>(),
        },
        "threads": threads,
        "memory": { "total": memory("MemTotal"), "available": memory("MemAvailable") },
        "measured": measured.collect::<Value>(),
        "cache": config.cache.as_ref().map(|path| path.to_string_lossy()),
        "default_model": {
            "name": DEFAULT_MODEL.name,
            "present": path.is_some(),
            "path": path.as_ref().map(|path| path.to_string_lossy()),
        },
    })
}

/// The set in use, and why.
fn kernels(forced: Option<Set>) -> String {
    let available: Vec<_> = Set::available().iter().map(|set| set.name()).collect();
    let why = match forced {
        Some(_) => format!("forced by {KERNELS}"),
        None => "the best that this CPU can run".to_owned(),
    };
    let chosen = forced.unwrap_or_else(Set::best).name();
    format!("{chosen}: {why}, of {}", available.join(", "))
}

/// Where the default model is, if it is here.
fn default_model(config: &HubConfig) -> Option<PathBuf> {
    let mut config = config.clone();
    config.freshness = Freshness::Offline;
    resolve(&ModelSpec::Default, &config, &mut NoProgress).ok()
}

/// Features that kernels use or may use one day.
#[cfg(target_arch = "x86_64")]
fn features() -> Vec<&'static str> {
    macro_rules! detected {
        ($($name:tt)*) => {
            [$(($name, std::is_x86_feature_detected!($name))),*]
        };
    }
    let all = detected!(
        "sse4.1" "avx" "avx2" "fma" "f16c" "avxvnni" "avx512f" "avx512bw" "avx512vl" "avx512dq" "avx512vnni" "avx512vbmi"
        "avx512bf16" "avx512fp16"
    );
    all.into_iter()
        .filter(|(_, has)| *has)
        .map(|(name, _)| name)
        .collect()
}

#[cfg(target_arch = "aarch64")]
fn features() -> Vec<&'static str> {
    let all = [
        ("neon", std::arch::is_aarch64_feature_detected!("neon")),
        (
            "dotprod",
            std::arch::is_aarch64_feature_detected!("dotprod"),
        ),
        ("i8mm", std::arch::is_aarch64_feature_detected!("i8mm")),
        ("fp16", std::arch::is_aarch64_feature_detected!("fp16")),
        ("bf16", std::arch::is_aarch64_feature_detected!("bf16")),
    ];
    all.into_iter()
        .filter(|(_, has)| *has)
        .map(|(name, _)| name)
        .collect()
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn features() -> Vec<&'static str> {
    Vec::new()
}
