//! How the model is loaded and computed.

use crate::backend;
use anyhow::Result;
use clap::{Args, ValueEnum};
use puna::{CacheType, CpuBackend, EngineOptions, cpu::MAX_THREADS};

/// On how many threads.
#[derive(Args)]
pub(crate) struct ThreadArgs {
    /// Threads to compute with; all that the machine has by default, as for 0 and -1
    #[arg(short, long, value_name = "N", allow_negative_numbers = true, value_parser = threads)]
    threads: Option<usize>,
}

impl ThreadArgs {
    /// The backend with these threads.
    pub(crate) fn backend(&self) -> Result<CpuBackend> {
        backend::open(self.threads)
    }
}

/// How the model is loaded and computed.
#[derive(Args)]
#[command(next_help_heading = "Computing")]
pub(crate) struct EngineArgs {
    /// Context in tokens; 0 for that of the model's training
    #[arg(short, long, value_name = "N", default_value_t = 0)]
    pub(crate) ctx_size: usize,
    #[command(flatten)]
    pub(crate) threads: ThreadArgs,
    #[command(flatten)]
    pub(crate) batch: BatchArgs,
    #[command(flatten)]
    pub(crate) cache: CacheArgs,
    /// Flash attention, which is the only kind here; also -fa
    #[arg(long, value_name = "MODE", num_args = 0..=1, require_equals = true, default_missing_value = "on", value_enum)]
    flash_attn: Option<FlashAttention>,
    /// Check every tensor for block scales that are not finite; reads the whole file
    #[arg(long)]
    check_tensors: bool,
}

/// How many tokens at once.
#[derive(Args)]
pub(crate) struct BatchArgs {
    /// Tokens of a prompt that are computed together, at most; the smaller of this and -ub counts
    #[arg(short, long, value_name = "N", default_value_t = 2048, value_parser = positive)]
    pub(crate) batch_size: usize,
    /// The same, from llama.cpp; also -ub
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = positive)]
    pub(crate) ubatch_size: usize,
}

/// Element types of the cache.
#[derive(Args)]
pub(crate) struct CacheArgs {
    /// Type of cached keys: `f32`, `f16` (the default), `bf16`, `q8_0`, `q4_0`; also -ctk
    #[arg(long, value_name = "TYPE", value_parser = cache_type)]
    cache_type_k: Option<CacheType>,
    /// Type of cached values, likewise; also -ctv
    #[arg(long, value_name = "TYPE", value_parser = cache_type)]
    cache_type_v: Option<CacheType>,
    /// Type of cached keys and values
    #[arg(long, value_name = "TYPE", value_parser = cache_type, conflicts_with_all = ["cache_type_k", "cache_type_v"])]
    kv_type: Option<CacheType>,
}

impl CacheArgs {
    /// Type of keys.
    pub(crate) fn keys(&self) -> CacheType {
        self.kv_type.or(self.cache_type_k).unwrap_or_default()
    }

    /// Type of values.
    pub(crate) fn values(&self) -> CacheType {
        self.kv_type.or(self.cache_type_v).unwrap_or_default()
    }
}

impl BatchArgs {
    /// Most tokens that are computed together.
    pub(crate) fn tokens(&self) -> usize {
        self.batch_size.min(self.ubatch_size)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FlashAttention {
    #[value(alias = "1")]
    On,
    #[value(alias = "0")]
    Off,
    Auto,
}

impl EngineArgs {
    /// The engine's options.
    pub(crate) fn options(&self) -> EngineOptions {
        if self.flash_attn == Some(FlashAttention::Off) {
            tell!("note: -fa off changes nothing: there is no other attention here");
        }
        let mut options = EngineOptions::default();
        options.context = Some(self.ctx_size).filter(|n| *n > 0);
        options.batch = self.batch.tokens();
        options.key_type = self.cache.keys();
        options.value_type = self.cache.values();
        options.check_tensors = self.check_tensors;
        options
    }
}

fn cache_type(name: &str) -> Result<CacheType, String> {
    CacheType::from_name(name).ok_or_else(|| {
        let names: Vec<_> = CacheType::ALL.iter().map(|t| t.name()).collect();
        format!("expected one of {}", names.join(", "))
    })
}

/// A number of threads. Zero and less mean all, as in llama.cpp.
pub(crate) fn threads(text: &str) -> Result<usize, String> {
    match text.parse::<i64>() {
        Ok(n) if n > MAX_THREADS as i64 => Err(format!("expected at most {MAX_THREADS} threads")),
        Ok(n) if n > 0 => usize::try_from(n).map_err(|error| error.to_string()),
        Ok(_) => Ok(backend::all_threads()),
        Err(_) => Err("expected a number, 0 for all threads of the machine".to_owned()),
    }
}

pub(crate) fn positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n) if n > 0 => Ok(n),
        _ => Err("expected a number from 1 up".to_owned()),
    }
}
