//! What this machine is, and what it can do at best.

use crate::backend;
use anyhow::Result;
use puna::cpu::measure::{Bandwidth, Peak, float_peak, integer_peak, read_bandwidth};
use serde_json::{Value, json};

/// Memory that is read to measure it, at least.
const LEAST_BYTES: u64 = 256 << 20;

/// Best figures on so many threads: what the speed of a model is held against.
#[derive(Clone, Copy)]
pub(crate) struct Ceilings {
    pub(crate) threads: usize,
    pub(crate) read: Bandwidth,
    pub(crate) integer: Peak,
    pub(crate) float: Peak,
}

impl Ceilings {
    /// Measures for a second or two.
    pub(crate) fn measure(threads: usize) -> Result<Self> {
        // Refuses as many threads as nobody has.
        backend::open(Some(threads))?;
        Ok(Self {
            threads,
            read: read_bandwidth(threads, bytes_beyond_caches())?,
            integer: integer_peak(threads),
            float: float_peak(threads),
        })
    }

    /// In one line: `reads 12.3 GB/s (...), integers ...`.
    pub(crate) fn line(&self) -> String {
        format!(
            "reads {:.1} GB/s ({}; median round {:.1}), integers {:.2} TOP/s ({}), floats {:.1} GFLOP/s ({})",
            self.read.per_second / 1e9,
            self.read.pattern,
            self.read.median / 1e9,
            self.integer.per_second / 1e12,
            self.integer.instruction,
            self.float.per_second / 1e9,
            self.float.instruction,
        )
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "threads": self.threads,
            "read_bytes_per_second": self.read.per_second,
            "read_bytes_per_second_median": self.read.median,
            "read_pattern": self.read.pattern,
            "read_bytes": self.read.bytes,
            "integer_ops_per_second": self.integer.per_second,
            "integer_instruction": self.integer.instruction,
            "float_ops_per_second": self.float.per_second,
            "float_instruction": self.float.instruction,
        })
    }
}

/// `1 thread`, `2 threads`.
pub(crate) fn threads(count: usize) -> String {
    match count {
        1 => "1 thread".to_owned(),
        n => format!("{n} threads"),
    }
}

/// Twice the last cache, but not more than a quarter of the free memory.
fn bytes_beyond_caches() -> usize {
    let wanted = last_cache().map_or(LEAST_BYTES, |cache| {
        cache.saturating_mul(2).max(LEAST_BYTES)
    });
    let free = memory("MemAvailable").map_or(wanted, |free| free / 4);
    usize::try_from(wanted.min(free)).unwrap_or(usize::MAX)
}

/// Bytes of the largest cache.
pub(crate) fn last_cache() -> Option<u64> {
    let size = |index: usize| {
        let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size");
        let kib: u64 = std::fs::read_to_string(path)
            .ok()?
            .trim()
            .strip_suffix('K')?
            .parse()
            .ok()?;
        kib.checked_mul(1024)
    };
    (0..8).filter_map(size).max()
}

/// The processor's name.
pub(crate) fn cpu_model() -> Option<String> {
    let info = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Bytes of an entry of the system's memory report.
pub(crate) fn memory(entry: &str) -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = info
        .lines()
        .find_map(|line| line.strip_prefix(entry)?.strip_prefix(':'))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}
