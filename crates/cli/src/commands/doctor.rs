//! `puna doctor`: what this machine offers, and what is made of it.

use crate::{
    args::threads,
    backend::{self, KERNELS},
    models,
    output::Output,
    shown,
};
use anyhow::Result;
use puna::{
    cpu::{
        kernels::Set,
        measure::{float_peak, integer_peak, read_bandwidth},
    },
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

/// Best figures on so many threads.
struct Measured {
    threads: usize,
    /// Bytes per second.
    read: f64,
    /// Operations per second, and by which instruction.
    integer: (f64, &'static str),
    float: (f64, &'static str),
}

impl Measured {
    fn new(threads: usize) -> Self {
        let (integer, float) = (integer_peak(threads), float_peak(threads));
        Self {
            threads,
            read: read_bandwidth(threads),
            integer: (integer.per_second, integer.instruction),
            float: (float.per_second, float.instruction),
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let forced = backend::forced_set()?;
    let threads = args.threads.unwrap_or_else(backend::all_threads);
    let mut measured = Vec::new();
    if !args.no_measure {
        measured.push(Measured::new(1));
        if threads > 1 {
            measured.push(Measured::new(threads));
        }
    }
    let config = models::hub_config();
    let mut output = Output::new();
    if args.json {
        return output.json(&report(forced, threads, &measured, &config));
    }
    let mut line = |name: &str, value: String| writeln!(output, "{name:<14} {value}");
    line("puna", env!("CARGO_PKG_VERSION").to_owned())?;
    line("cpu", cpu_model().unwrap_or_else(|| std::env::consts::ARCH.to_owned()))?;
    line("features", features().join(" "))?;
    line("kernels", kernels(forced))?;
    line("threads", threads.to_string())?;
    if let [Some(total), Some(free)] = ["MemTotal", "MemAvailable"].map(memory) {
        line("memory", format!("{}, {} available", shown::bytes(total), shown::bytes(free)))?;
    }
    for m in &measured {
        let threads = if m.threads == 1 { "1 thread".to_owned() } else { format!("{} threads", m.threads) };
        line(
            &threads,
            format!(
                "reads {:.1} GB/s, integers {:.2} TOP/s ({}), floats {:.1} GFLOP/s ({})",
                m.read / 1e9,
                m.integer.0 / 1e12,
                m.integer.1,
                m.float.0 / 1e9,
                m.float.1
            ),
        )?;
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

fn report(forced: Option<Set>, threads: usize, measured: &[Measured], config: &HubConfig) -> Value {
    let measured = measured.iter().map(|m| {
        json!({
            "threads": m.threads,
            "read_bytes_per_second": m.read,
            "integer_ops_per_second": m.integer.0,
            "integer_instruction": m.integer.1,
            "float_ops_per_second": m.float.0,
            "float_instruction": m.float.1,
        })
    });
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

fn cpu_model() -> Option<String> {
    let info = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Bytes of an entry of the system's memory report.
fn memory(entry: &str) -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find_map(|line| line.strip_prefix(entry)?.strip_prefix(':'))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
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
    all.into_iter().filter(|(_, has)| *has).map(|(name, _)| name).collect()
}

#[cfg(target_arch = "aarch64")]
fn features() -> Vec<&'static str> {
    let all = [
        ("neon", std::arch::is_aarch64_feature_detected!("neon")),
        ("dotprod", std::arch::is_aarch64_feature_detected!("dotprod")),
        ("i8mm", std::arch::is_aarch64_feature_detected!("i8mm")),
        ("fp16", std::arch::is_aarch64_feature_detected!("fp16")),
        ("bf16", std::arch::is_aarch64_feature_detected!("bf16")),
    ];
    all.into_iter().filter(|(_, has)| *has).map(|(name, _)| name).collect()
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn features() -> Vec<&'static str> {
    Vec::new()
}
