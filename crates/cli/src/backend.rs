//! The backend that this program runs on.

use anyhow::{Result, bail};
use puna::{CpuBackend, cpu::kernels::Set};

/// The environment variable that forces a kernel set.
pub(crate) const KERNELS: &str = "PUNA_KERNELS";

/// The set that the environment asks for; `None` where it asks for none.
pub(crate) fn forced_set() -> Result<Option<Set>> {
    let Some(name) = std::env::var_os(KERNELS).filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    let name = name.to_string_lossy();
    let available = Set::available();
    match Set::from_name(&name) {
        Some(set) if available.contains(&set) => Ok(Some(set)),
        found => {
            let names: Vec<_> = available.iter().map(|set| set.name()).collect();
            let problem = match found {
                Some(_) => "this CPU cannot run it",
                None => "there is no such kernel set",
            };
            bail!(
                "{KERNELS}={name}: {problem}, expected one of {}",
                names.join(", ")
            )
        }
    }
}

/// The CPU backend with so many threads, or as many as the machine has.
pub(crate) fn open(threads: Option<usize>) -> Result<CpuBackend> {
    Ok(CpuBackend::new(
        threads.unwrap_or_else(all_threads),
        forced_set()?,
    )?)
}

/// Threads that the machine can run at once.
pub(crate) fn all_threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
