//! What was measured, as a table for people or JSON for programs.

use super::{
    Args,
    measure::{Bench, Test},
};
use crate::{models, shown};
use serde_json::{Value, json};
use std::time::Duration;

/// One test with its results.
pub(super) struct Entry {
    model_filename: String,
    model_type: String,
    model_size: u64,
    model_n_params: u64,
    kernels: &'static str,
    n_batch: usize,
    n_ubatch: usize,
    n_threads: usize,
    type_k: &'static str,
    type_v: &'static str,
    n_prompt: usize,
    n_gen: usize,
    n_depth: usize,
    n_parallel: usize,
    test_time: String,
    /// Nanoseconds of each repetition.
    times: Vec<f64>,
    /// Tokens per second of each repetition.
    speeds: Vec<f64>,
}

impl Entry {
    pub(super) fn new(args: &Args, bench: &Bench, test: &Test, samples: &[Duration]) -> Self {
        let gguf = bench.engine.gguf();
        let times: Vec<_> = samples.iter().map(|t| t.as_secs_f64() * 1e9).collect();
        let tokens = test.tokens() as f64;
        Self {
            model_filename: bench.path.to_string_lossy().into_owned(),
            model_type: models::describe(gguf),
            model_size: models::tensor_bytes(gguf),
            model_n_params: models::parameters(gguf),
            kernels: bench.backend.kernel_set().name(),
            n_batch: args.batch.batch_size,
            n_ubatch: args.batch.ubatch_size,
            n_threads: bench.backend.threads(),
            type_k: args.cache.keys().name(),
            type_v: args.cache.values().name(),
            n_prompt: test.prompt,
            n_gen: test.generated,
            n_depth: test.depth,
            n_parallel: test.parallel,
            test_time: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            speeds: times.iter().map(|ns| tokens * 1e9 / ns.max(1.0)).collect(),
            times,
        }
    }

    /// `pp512`, `tg128`, `tg128 x8 @ d1024`.
    fn test_name(&self) -> String {
        let mut name = if self.n_prompt > 0 {
            format!("pp{}", self.n_prompt)
        } else {
            format!("tg{}", self.n_gen)
        };
        if self.n_parallel > 1 {
            name.push_str(" x");
            name.push_str(&self.n_parallel.to_string());
        }
        if self.n_depth > 0 {
            name.push_str(" @ d");
            name.push_str(&self.n_depth.to_string());
        }
        name
    }

    pub(super) fn table_head(&self) -> String {
        let width = self.model_type.len().max(24);
        format!(
            "| {:<width$} | {:>10} | {:>9} | {:<12} | {:>7} | {:>4} | {:>4} | {:>18} | {:>20} |\n| {:-<width$} | {:->9}: | {:->8}: | {:-<12} | {:->6}: | {:->3}: | {:->3}: | {:->17}: | {:->19}: |\n",
            "model", "size", "params", "kernels", "threads", "K", "V", "test", "t/s", "", "", "", "", "", "", "", "", "",
        )
    }

    pub(super) fn table_row(&self) -> String {
        let width = self.model_type.len().max(24);
        let (mean, spread) = mean_and_spread(&self.speeds);
        format!(
            "| {:<width$} | {:>10} | {:>9} | {:<12} | {:>7} | {:>4} | {:>4} | {:>18} | {:>20} |\n",
            self.model_type,
            shown::bytes(self.model_size),
            shown::count(self.model_n_params),
            self.kernels,
            self.n_threads,
            self.type_k,
            self.type_v,
            self.test_name(),
            format!("{mean:.2} \u{b1} {spread:.2}"),
        )
    }

    pub(super) fn json(&self) -> Value {
        let (avg_ns, stddev_ns) = mean_and_spread(&self.times);
        let (avg_ts, stddev_ts) = mean_and_spread(&self.speeds);
        json!({
            "model_filename": self.model_filename,
            "model_type": self.model_type,
            "model_size": self.model_size,
            "model_n_params": self.model_n_params,
            "backends": "CPU",
            "kernels": self.kernels,
            "n_batch": self.n_batch,
            "n_ubatch": self.n_ubatch,
            "n_threads": self.n_threads,
            "type_k": self.type_k,
            "type_v": self.type_v,
            "n_prompt": self.n_prompt,
            "n_gen": self.n_gen,
            "n_depth": self.n_depth,
            "n_parallel": self.n_parallel,
            "test_time": self.test_time,
            "avg_ns": avg_ns.round() as u64,
            "stddev_ns": stddev_ns.round() as u64,
            "avg_ts": avg_ts,
            "stddev_ts": stddev_ts,
            "samples_ns": self.times.iter().map(|t| t.round() as u64).collect::<Vec<_>>(),
            "samples_ts": self.speeds,
        })
    }
}

/// Mean and sample standard deviation; no deviation for a single value.
fn mean_and_spread(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n.max(1.0);
    if values.len() < 2 {
        return (mean, 0.0);
    }
    let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
    (mean, (squares / (n - 1.0)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::mean_and_spread;

    #[test]
    fn the_spread_is_the_sample_standard_deviation() {
        assert_eq!(mean_and_spread(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).0, 5.0);
        let (_, spread) = mean_and_spread(&[1.0, 3.0]);
        assert!((spread - 2f64.sqrt()).abs() < 1e-12);
        assert_eq!(mean_and_spread(&[3.0]), (3.0, 0.0));
    }
}
