//! Speeds of one run as a drawing: a panel for prompts and one for generations over everything that varies.

mod svg;

use super::{Setup, Test, report::Entry};
use crate::machine;
use anyhow::{Context, Result};
use std::path::Path;

/// Something that a list on the command line varies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Axis {
    Depth,
    Sequences,
    Batch,
    Threads,
    Tokens,
    Busy,
}

impl Axis {
    const ALL: [Self; 6] = [
        Self::Depth,
        Self::Sequences,
        Self::Batch,
        Self::Threads,
        Self::Tokens,
        Self::Busy,
    ];

    fn value(self, test: &Test, setup: &Setup) -> usize {
        match self {
            Self::Depth => test.depth,
            Self::Sequences => test.parallel,
            Self::Batch => setup.batch.min(setup.ubatch),
            Self::Threads => setup.threads,
            Self::Tokens => test.prompt + test.generated,
            Self::Busy => test.busy,
        }
    }

    /// Below the axis.
    fn title(self) -> &'static str {
        match self {
            Self::Depth => "depth: tokens in the cache before",
            Self::Sequences => "sequences at the same time",
            Self::Batch => "batch: tokens computed together, at most",
            Self::Threads => "threads",
            Self::Tokens => "tokens of the test",
            Self::Busy => "busy threads beside",
        }
    }

    /// In the legend.
    fn label(self, n: usize) -> String {
        match self {
            Self::Depth => format!("depth {n}"),
            Self::Sequences if n == 1 => "1 sequence".to_owned(),
            Self::Sequences => format!("{n} sequences"),
            Self::Batch => format!("batch {n}"),
            Self::Threads => machine::threads(n),
            Self::Tokens => format!("{n} tokens"),
            Self::Busy => format!("{n} busy"),
        }
    }
}

/// Speeds over one axis.
struct Panel {
    title: &'static str,
    x_title: &'static str,
    series: Vec<Series>,
}

/// Points that differ in the axis alone.
struct Series {
    label: String,
    points: Vec<Point>,
}

struct Point {
    x: f64,
    /// Tokens per second.
    y: f64,
    /// Their standard deviation.
    spread: f64,
    name: String,
}

/// Whether there is something to draw.
pub(super) fn varies(tests: &[Test], setups: &[Setup]) -> bool {
    let all: Vec<_> = tests
        .iter()
        .flat_map(|test| setups.iter().map(move |setup| (test, setup)))
        .collect();
    [true, false].iter().any(|is_prompt| {
        let kind: Vec<_> = all
            .iter()
            .filter(|(test, _)| (test.prompt > 0) == *is_prompt)
            .collect();
        Axis::ALL
            .iter()
            .any(|axis| distinct(kind.iter().map(|(test, setup)| axis.value(test, setup))) > 1)
    })
}

/// Draws the entries into a file.
pub(super) fn write(path: &Path, entries: &[Entry]) -> Result<()> {
    let panels = panels(entries);
    let title = entries.first().map_or("", |e| e.model.name.as_str());
    crate::files::write(path, svg::draw(title, &panels).as_bytes())
        .with_context(|| format!("plot `{}` cannot be written", path.display()))
}

fn distinct(values: impl Iterator<Item = usize>) -> usize {
    let mut values: Vec<_> = values.collect();
    values.sort_unstable();
    values.dedup();
    values.len()
}

fn panels(entries: &[Entry]) -> Vec<Panel> {
    let mut panels = Vec::new();
    for (is_prompt, title) in [(true, "prompt"), (false, "generation")] {
        let kind: Vec<_> = entries
            .iter()
            .filter(|e| (e.test.prompt > 0) == is_prompt)
            .collect();
        let varied = |axis: &Axis| distinct(kind.iter().map(|e| axis.value(&e.test, &e.setup))) > 1;
        let axes: Vec<_> = Axis::ALL.into_iter().filter(varied).collect();
        for axis in &axes {
            let others: Vec<_> = axes.iter().copied().filter(|a| a != axis).collect();
            panels.push(Panel {
                title,
                x_title: axis.title(),
                series: series(&kind, *axis, &others),
            });
        }
    }
    panels
}

/// One series for each combination of what else varies.
fn series(entries: &[&Entry], axis: Axis, others: &[Axis]) -> Vec<Series> {
    let mut all: Vec<(Vec<usize>, Series)> = Vec::new();
    for entry in entries {
        let key: Vec<_> = others
            .iter()
            .map(|a| a.value(&entry.test, &entry.setup))
            .collect();
        let (y, spread) = entry.speed();
        let point = Point {
            x: axis.value(&entry.test, &entry.setup) as f64,
            y,
            spread,
            name: entry.full_name(),
        };
        if let Some((_, series)) = all.iter_mut().find(|(k, _)| *k == key) {
            series.points.push(point);
            continue;
        }
        let labels: Vec<_> = others.iter().zip(&key).map(|(a, n)| a.label(*n)).collect();
        let label = labels.join(", ");
        all.push((
            key,
            Series {
                label,
                points: vec![point],
            },
        ));
    }
    let mut all: Vec<_> = all.into_iter().map(|(_, series)| series).collect();
    for series in &mut all {
        series.points.sort_by(|a, b| a.x.total_cmp(&b.x));
    }
    all
}
