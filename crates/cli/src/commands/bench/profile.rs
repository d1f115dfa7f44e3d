//! Where the time of a test went: the steps of the plan, by their kind and by themselves.

use super::shares::{Speed, percent};
use crate::{machine::Ceilings, shown};
use clap::ValueEnum;
use puna::graph::{Profile, StepProfile, Work};
use serde_json::{Value, json};
use std::{cmp::Reverse, fmt::Write, time::Duration};

/// How finely steps are shown.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Detail {
    /// The same step of all layers together
    Layers,
    /// Every step
    Steps,
}

/// Some steps together.
#[derive(Clone, Default)]
struct Row {
    name: String,
    kind: String,
    steps: usize,
    time: Duration,
    work: Work,
    /// Their fastest runs, one after the other.
    fastest: Duration,
    fastest_work: Work,
}

impl Row {
    fn add(&mut self, step: &StepProfile) {
        self.steps += 1;
        self.time += step.time;
        self.work += step.work;
        self.fastest += step.fastest;
        self.fastest_work += step.fastest_work;
    }

    fn json(&self, whole: Duration, ceilings: Option<&Ceilings>) -> Value {
        let speed = Speed::new(self.work, self.time, ceilings);
        let fastest = Speed::new(self.fastest_work, self.fastest, ceilings);
        json!({
            "name": self.name,
            "kind": self.kind,
            "steps": self.steps,
            "ns": self.time.as_nanos() as u64,
            "time_share": ratio(self.time, whole),
            "bytes": self.work.bytes(),
            "bytes_per_second": speed.bytes,
            "read_share": speed.shares.map(|s| s.read),
            "ops": self.work.ops(),
            "ops_per_second": speed.ops,
            "arithmetic_share": speed.shares.map(|s| s.arithmetic),
            "fastest_ns": self.fastest.as_nanos() as u64,
            "fastest_share": fastest.share(),
        })
    }

    fn cells(&self, whole: Duration, ceilings: Option<&Ceilings>) -> Vec<String> {
        let speed = Speed::new(self.work, self.time, ceilings);
        let fastest = Speed::new(self.fastest_work, self.fastest, ceilings);
        let some = |n: u64, text: String| if n > 0 { text } else { "-".to_owned() };
        let share = |n: u64, share: Option<f64>| some(n, share.map_or("-".to_owned(), percent));
        let (bytes, ops) = (self.work.bytes(), self.work.ops());
        vec![
            format!("{:.2}", self.time.as_secs_f64() * 1e3),
            format!("{:.1} %", ratio(self.time, whole) * 100.0),
            some(bytes, shown::bytes(bytes)),
            some(bytes, format!("{:.2}", speed.bytes / 1e9)),
            share(bytes, speed.shares.map(|s| s.read)),
            some(ops, format!("{:.2}", ops as f64 / 1e9)),
            some(ops, format!("{:.1}", speed.ops / 1e9)),
            share(ops, speed.shares.map(|s| s.arithmetic)),
            share(bytes + ops, fastest.share()),
        ]
    }
}

const HEADS: [&str; 9] = [
    "ms",
    "time",
    "bytes",
    "GB/s",
    "of reads",
    "GOP",
    "GOP/s",
    "of peak",
    "fastest run",
];

/// Steps of the same key together, the longest first.
fn rows(profile: &Profile, key: impl Fn(&StepProfile) -> (String, String)) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for step in &profile.steps {
        let (name, kind) = key(step);
        let known = rows.iter().position(|r| r.name == name && r.kind == kind);
        let at = known.unwrap_or(rows.len());
        if known.is_none() {
            rows.push(Row {
                name,
                kind,
                ..Row::default()
            });
        }
        rows[at].add(step);
    }
    rows.sort_by_key(|row| Reverse(row.time));
    rows
}

fn by_kind(profile: &Profile) -> Vec<Row> {
    rows(profile, |step| (String::new(), step.kind.clone()))
}

fn by_step(profile: &Profile, detail: Detail) -> Vec<Row> {
    rows(profile, |step| {
        let name = match detail {
            Detail::Layers => without_numbers(&step.name),
            Detail::Steps => step.name.clone(),
        };
        (name, step.kind.clone())
    })
}

/// `blk.*.ffn_down` for `blk.12.ffn_down`.
fn without_numbers(name: &str) -> String {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut text = String::new();
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let end = rest
            .find(|c| is_word(c) != is_word(first))
            .unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        let is_number = part.chars().all(|c| c.is_ascii_digit());
        text.push_str(if is_number { "*" } else { part });
        rest = after;
    }
    text
}

/// The tables of one test that took `time`.
pub(super) fn tables(
    test: &str,
    profile: &Profile,
    time: Duration,
    detail: Detail,
    ceilings: Option<&Ceilings>,
) -> String {
    let mut text = format!(
        "\n{test}: {} runs, {:.1} ms, {} of it in the plan\n\n",
        profile.runs,
        time.as_secs_f64() * 1e3,
        percent(ratio(profile.time, time)),
    );
    text.push_str(&table("kind", &by_kind(profile), time, ceilings));
    text.push('\n');
    text.push_str(&table("step", &by_step(profile, detail), time, ceilings));
    text
}

fn table(first: &str, rows: &[Row], time: Duration, ceilings: Option<&Ceilings>) -> String {
    let name = |row: &Row| {
        let count = if row.steps > 1 {
            format!(" x{}", row.steps)
        } else {
            String::new()
        };
        match row.name.as_str() {
            "" => format!("{}{count}", row.kind),
            name => format!("{name}{count}: {}", row.kind),
        }
    };
    let lines: Vec<(String, Vec<String>)> = rows
        .iter()
        .map(|row| (name(row), row.cells(time, ceilings)))
        .collect();
    let width = lines
        .iter()
        .map(|(name, _)| name.chars().count())
        .max()
        .unwrap_or(0)
        .max(first.len());
    let widths: Vec<usize> = HEADS
        .iter()
        .enumerate()
        .map(|(i, head)| {
            lines
                .iter()
                .map(|(_, cells)| cells[i].len())
                .max()
                .unwrap_or(0)
                .max(head.len())
        })
        .collect();
    let mut text = String::new();
    let mut line = |name: &str, cells: &mut dyn Iterator<Item = String>| {
        let _ = write!(text, "| {name:<width$} |");
        for (cell, width) in cells.zip(&widths) {
            let _ = write!(text, " {cell:>width$} |");
        }
        text.push('\n');
    };
    line(first, &mut HEADS.iter().map(|head| (*head).to_owned()));
    line(
        &"-".repeat(width),
        &mut widths
            .iter()
            .map(|width| format!("{}:", "-".repeat(width - 1))),
    );
    for (name, cells) in lines {
        line(&name, &mut cells.into_iter());
    }
    text
}

pub(super) fn json(profile: &Profile, time: Duration, ceilings: Option<&Ceilings>) -> Value {
    let list = |rows: Vec<Row>| {
        rows.iter()
            .map(|row| row.json(time, ceilings))
            .collect::<Vec<_>>()
    };
    json!({
        "runs": profile.runs,
        "ns": time.as_nanos() as u64,
        "plan_ns": profile.time.as_nanos() as u64,
        "kinds": list(by_kind(profile)),
        "layers": list(by_step(profile, Detail::Layers)),
        "steps": list(by_step(profile, Detail::Steps)),
    })
}

fn ratio(part: Duration, whole: Duration) -> f64 {
    part.as_secs_f64() / whole.as_secs_f64().max(1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use puna::graph::StepClass;

    #[test]
    fn steps_of_all_layers_are_one_row_and_the_longest_comes_first() {
        let step = |name: &str, kind: &str, millis| {
            let (time, work) = (
                Duration::from_millis(millis),
                Work {
                    weight_bytes: 1 << 20,
                    ..Work::default()
                },
            );
            StepProfile {
                name: name.to_owned(),
                kind: kind.to_owned(),
                class: StepClass::Linear,
                time,
                work,
                fastest: time,
                fastest_work: work,
            }
        };
        let profile = Profile {
            runs: 1,
            time: Duration::from_millis(10),
            steps: vec![
                step("blk.0.up", "linear A", 1),
                step("layer 0", "attention", 2),
                step("blk.10.up", "linear A", 3),
                step("blk.11.up", "linear B", 4),
            ],
        };
        let names = |rows: Vec<Row>| {
            rows.into_iter()
                .map(|r| (r.name, r.steps))
                .collect::<Vec<_>>()
        };
        let row = |name: &str, steps| (name.to_owned(), steps);
        let layers = names(by_step(&profile, Detail::Layers));
        assert_eq!(
            layers,
            [row("blk.*.up", 2), row("blk.*.up", 1), row("layer *", 1)]
        );
        assert_eq!(by_step(&profile, Detail::Steps).len(), 4);
        let kinds = by_kind(&profile);
        assert_eq!(kinds[0].kind, "linear A");
        assert_eq!(kinds[0].work.bytes(), 2 << 20);
        let text = tables("pp8", &profile, profile.time, Detail::Layers, None);
        assert!(
            text.contains("| blk.*.up x2: linear A | 4.00 | 40.0 % | 2.00 MiB |"),
            "{text}"
        );
        assert!(
            text.lines().filter(|l| l.starts_with('|')).count() == 10,
            "{text}"
        );
    }

    #[test]
    fn only_whole_numbers_are_replaced() {
        assert_eq!(
            without_numbers("for blk.12.attn_q2,k"),
            "for blk.*.attn_q2,k"
        );
        assert_eq!(without_numbers("output"), "output");
    }
}
