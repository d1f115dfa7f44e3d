//! What was measured, as a table for people or JSON for programs.

use super::{
    Args, Bench, Samples, Setup, Test,
    latency::Latency,
    model_type::model_type,
    profile::{self, Detail},
    shares::{TestSpeeds, percent},
};
use crate::{
    machine::{self, Ceilings, cpu_model},
    models, shown,
};
use puna::graph::Profile;
use serde_json::{Value, json};
use std::{fmt::Write, time::Duration};

/// The model, as every line names it.
#[derive(Clone)]
pub(super) struct Model {
    filename: String,
    pub(super) name: String,
    size: u64,
    parameters: u64,
}

impl Model {
    pub(super) fn new(bench: &Bench) -> Self {
        let gguf = bench.engine.gguf();
        Self {
            filename: bench.path.to_string_lossy().into_owned(),
            name: model_type(gguf),
            size: models::tensor_bytes(gguf),
            parameters: models::parameters(gguf),
        }
    }
}

/// One test with its results.
pub(super) struct Entry {
    pub(super) model: Model,
    pub(super) test: Test,
    pub(super) setup: Setup,
    kernels: &'static str,
    type_k: &'static str,
    type_v: &'static str,
    test_time: String,
    /// Nanoseconds of each repetition.
    times: Vec<f64>,
    /// Tokens per second of each repetition.
    speeds: Vec<f64>,
    latency: Option<Latency>,
    profile: Option<Profile>,
    ceilings: Option<Ceilings>,
    work: Option<TestSpeeds>,
    /// Tokens per second and latency of the same test on its own.
    undisturbed: Option<(f64, Option<Latency>)>,
}

impl Entry {
    pub(super) fn new(
        args: &Args,
        bench: &Bench,
        model: &Model,
        test: Test,
        samples: Samples,
        ceilings: Option<Ceilings>,
        undisturbed: Option<&Self>,
    ) -> Self {
        let times: Vec<_> = samples
            .times
            .iter()
            .map(|t| t.as_secs_f64() * 1e9)
            .collect();
        let tokens = test.tokens() as f64;
        let latency = Latency::new(&samples.steps);
        let time = samples.times.iter().sum();
        let fastest = latency.map(|l| l.min);
        let work = samples.profile.as_ref().filter(|_| !args.no_ceilings);
        Self {
            work: work.map(|p| TestSpeeds::new(p, time, fastest, ceilings.as_ref())),
            model: model.clone(),
            test,
            setup: bench.setup,
            kernels: bench.backend.kernel_set().name(),
            type_k: args.cache.keys().name(),
            type_v: args.cache.values().name(),
            test_time: jiff::Timestamp::now()
                .strftime("%Y-%m-%dT%H:%M:%SZ")
                .to_string(),
            speeds: times.iter().map(|ns| tokens * 1e9 / ns.max(1.0)).collect(),
            times,
            latency,
            profile: samples.profile,
            ceilings,
            undisturbed: undisturbed.map(|e| (e.speed().0, e.latency)),
        }
    }

    /// Tokens per second and their standard deviation.
    pub(super) fn speed(&self) -> (f64, f64) {
        mean_and_spread(&self.speeds)
    }

    /// `pp512`, `tg128`, `tg128 x8 @ d1024 + 1 busy`.
    pub(super) fn test_name(&self) -> String {
        let test = &self.test;
        let mut name = if test.prompt > 0 {
            format!("pp{}", test.prompt)
        } else {
            format!("tg{}", test.generated)
        };
        if test.parallel > 1 {
            let _ = write!(name, " x{}", test.parallel);
        }
        if test.depth > 0 {
            let _ = write!(name, " @ d{}", test.depth);
        }
        if test.busy > 0 {
            let _ = write!(name, " + {} busy", test.busy);
        }
        name
    }

    /// With its threads.
    pub(super) fn full_name(&self) -> String {
        let threads = machine::threads(self.setup.threads);
        format!("{}, {threads}", self.test_name())
    }

    /// Cells with their widths; a negative one is of text, which begins at the left.
    fn cells(&self) -> Vec<(&'static str, isize, String)> {
        let (mean, spread) = self.speed();
        let mut cells = vec![
            (
                "model",
                -(self.model.name.chars().count().max(24) as isize),
                self.model.name.clone(),
            ),
            ("size", 10, shown::bytes(self.model.size)),
            ("params", 9, shown::count(self.model.parameters)),
            ("kernels", -12, self.kernels.to_owned()),
            ("threads", 7, self.setup.threads.to_string()),
            (
                "batch",
                5,
                self.setup.batch.min(self.setup.ubatch).to_string(),
            ),
            ("K", 4, self.type_k.to_owned()),
            ("V", 4, self.type_v.to_owned()),
            ("test", 18, self.test_name()),
            ("t/s", 18, format!("{mean:.2} \u{b1} {spread:.2}")),
        ];
        if let Some(work) = &self.work {
            let [speed, share] = work.cells();
            cells.push(("work", 12, speed));
            cells.push(("of the machine's best", -26, share));
        }
        cells
    }

    pub(super) fn table_head(&self) -> String {
        let cells = self.cells();
        let rule = |(_, width, _): &(&str, isize, String)| {
            let dashes = "-".repeat(width.unsigned_abs() - usize::from(*width > 0));
            let end = if *width > 0 { ":" } else { "" };
            ("", *width, dashes + end)
        };
        let rules: Vec<_> = cells.iter().map(rule).collect();
        let heads: Vec<_> = cells
            .into_iter()
            .map(|(head, width, _)| ("", width, head.to_owned()))
            .collect();
        row(&heads) + &row(&rules)
    }

    pub(super) fn table_row(&self) -> String {
        row(&self.cells())
    }

    pub(super) fn json(&self, with_profile: bool) -> Value {
        let (avg_ns, stddev_ns) = mean_and_spread(&self.times);
        let (avg_ts, stddev_ts) = self.speed();
        let ns = |pick: fn(&Latency) -> Duration| {
            self.latency.as_ref().map(|l| pick(l).as_nanos() as u64)
        };
        let mut value = json!({
            "build_version": env!("CARGO_PKG_VERSION"),
            "cpu_info": cpu_model(),
            "gpu_info": "",
            "backends": "CPU",
            "model_filename": self.model.filename,
            "model_type": self.model.name,
            "model_size": self.model.size,
            "model_n_params": self.model.parameters,
            "kernels": self.kernels,
            "n_batch": self.setup.batch,
            "n_ubatch": self.setup.ubatch,
            "n_threads": self.setup.threads,
            "type_k": self.type_k,
            "type_v": self.type_v,
            "n_gpu_layers": 0,
            "n_prompt": self.test.prompt,
            "n_gen": self.test.generated,
            "n_depth": self.test.depth,
            "n_parallel": self.test.parallel,
            "n_busy": self.test.busy,
            "test_time": self.test_time,
            "avg_ns": avg_ns.round() as u64,
            "stddev_ns": stddev_ns.round() as u64,
            "avg_ts": avg_ts,
            "stddev_ts": stddev_ts,
            "samples_ns": self.times.iter().map(|t| t.round() as u64).collect::<Vec<_>>(),
            "samples_ts": self.speeds,
            "token_ns_min": ns(|l| l.min),
            "token_ns_median": ns(|l| l.median),
            "token_ns_p95": ns(|l| l.p95),
            "token_ns_max": ns(|l| l.max),
            "token_max_over_median": self.latency.map(|l| l.worst()),
        });
        if let Some((speed, _)) = self.undisturbed {
            value["of_undisturbed"] = json!(avg_ts / speed);
        }
        if let Some(work) = &self.work {
            value["work"] = work.json();
            value["ceilings"] = self.ceilings.as_ref().map(Ceilings::json).into();
        }
        if let Some(profile) = self.profile.as_ref().filter(|_| with_profile) {
            value["profile"] = profile::json(profile, self.time(), self.ceilings.as_ref());
        }
        value
    }

    /// Time of all repetitions.
    fn time(&self) -> Duration {
        Duration::from_nanos(self.times.iter().sum::<f64>() as u64)
    }

    /// How a busy core changed a test.
    fn steadiness(&self) -> Option<String> {
        let (alone, latency_alone) = self.undisturbed?;
        let mut text = format!(
            "{}: {} of the undisturbed speed",
            self.full_name(),
            percent(self.speed().0 / alone)
        );
        if let (Some(with), Some(without)) = (self.latency, latency_alone) {
            let ms = |time: Duration| time.as_secs_f64() * 1e3;
            let _ = write!(
                text,
                "; slowest token {:.1} ms, {:.1} times the median of {:.1} ms (undisturbed {:.1} ms, {:.1} times {:.1} ms)",
                ms(with.max),
                with.worst(),
                ms(with.median),
                ms(without.max),
                without.worst(),
                ms(without.median),
            );
        }
        Some(text + "\n")
    }
}

fn row(cells: &[(&str, isize, String)]) -> String {
    let mut text = String::from("|");
    for (_, width, cell) in cells {
        let columns = width.unsigned_abs();
        if *width > 0 {
            let _ = write!(text, " {cell:>columns$} |");
        } else {
            let _ = write!(text, " {cell:<columns$} |");
        }
    }
    text + "\n"
}

/// What stands below the table: the machine's best, steadiness, profiles.
pub(super) fn notes(measured: &[Ceilings], entries: &[Entry], detail: Option<Detail>) -> String {
    let mut text = String::new();
    for ceilings in measured {
        let _ = write!(
            text,
            "\nthe machine's best, {}: {}\n",
            machine::threads(ceilings.threads),
            ceilings.line()
        );
    }
    if entries.iter().any(|e| e.undisturbed.is_some()) {
        text.push('\n');
    }
    text.extend(entries.iter().filter_map(Entry::steadiness));
    let Some(detail) = detail else {
        return text;
    };
    for entry in entries {
        if let Some(profile) = &entry.profile {
            let name = entry.full_name();
            text.push_str(&profile::tables(
                &name,
                profile,
                entry.time(),
                detail,
                entry.ceilings.as_ref(),
            ));
        }
    }
    text
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
        assert_eq!(
            mean_and_spread(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).0,
            5.0
        );
        let (_, spread) = mean_and_spread(&[1.0, 3.0]);
        assert!((spread - 2f64.sqrt()).abs() < 1e-12);
        assert_eq!(mean_and_spread(&[3.0]), (3.0, 0.0));
    }
}
