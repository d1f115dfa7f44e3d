//! Taking the time of each step: one time stamp per step, by the worker that opens it.

use super::step::{LinearStep, RowOp, RowsStep, Step};
use crate::kernels::elementwise::{Combine, Map};
use puna_graph::{Graph, Profile, StepClass, StepProfile, Work};
use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// When the steps of a run began.
#[derive(Debug)]
pub(super) struct Clock {
    start: Instant,
    /// Nanoseconds from the start of the run to that of each step.
    begins: Vec<AtomicU64>,
}

impl Clock {
    /// Notes that `step` begins now. Steps begin one after the other, and the end of the run makes the stamps visible to its caller.
    pub(super) fn begins(&self, step: usize) {
        let now = self.start.elapsed().as_nanos() as u64;
        self.begins[step].store(now, Ordering::Relaxed);
    }
}

/// Sums over runs.
#[derive(Debug)]
pub(super) struct Recorder {
    clock: Clock,
    /// For each step the row of the profile that it counts for.
    rows: Vec<usize>,
    /// The run at hand, and all before it.
    run: Profile,
    sum: Profile,
}

impl Recorder {
    pub(super) fn new(steps: &[Step], graph: &Graph) -> Self {
        let mut run = Profile::default();
        let mut rows = Vec::with_capacity(steps.len());
        for (i, step) in steps.iter().enumerate() {
            // Putting the parts of an attention together is counted as attention.
            if let Some((class, name, kind)) = label(step, steps.get(i + 1), graph) {
                run.steps.push(StepProfile {
                    name,
                    kind,
                    class,
                    time: Duration::ZERO,
                    work: Work::default(),
                    fastest: Duration::ZERO,
                    fastest_work: Work::default(),
                });
            }
            rows.push(run.steps.len().saturating_sub(1));
        }
        Self {
            clock: Clock {
                start: Instant::now(),
                begins: steps.iter().map(|_| AtomicU64::new(0)).collect(),
            },
            rows,
            run,
            sum: Profile::default(),
        }
    }

    /// A run begins.
    pub(super) fn start(&mut self) {
        self.clock.start = Instant::now();
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The run is over, and its steps did this.
    pub(super) fn finish(&mut self, work: &[Work]) {
        let end = self.clock.start.elapsed();
        let run = &mut self.run;
        run.runs = 1;
        run.time = end;
        for step in &mut run.steps {
            step.time = Duration::ZERO;
            step.work = Work::default();
        }
        let begins = |step: usize| self.clock.begins[step].load(Ordering::Relaxed);
        for (i, (row, work)) in self.rows.iter().zip(work).enumerate() {
            let next = if i + 1 < self.rows.len() {
                begins(i + 1)
            } else {
                end.as_nanos() as u64
            };
            let step = &mut run.steps[*row];
            step.time += Duration::from_nanos(next.saturating_sub(begins(i)));
            step.work += *work;
        }
        for step in &mut run.steps {
            (step.fastest, step.fastest_work) = (step.time, step.work);
        }
        self.sum.add(run);
    }

    /// All runs together; the steps without times if there was none.
    pub(super) fn into_profile(self) -> Profile {
        if self.sum.runs == 0 {
            self.run
        } else {
            self.sum
        }
    }
}

/// Class, name and kind of a step; `None` for what belongs to the step before.
fn label(step: &Step, next: Option<&Step>, graph: &Graph) -> Option<(StepClass, String, String)> {
    Some(match step {
        Step::Merge => return None,
        Step::Attend(step) => (
            StepClass::Attention,
            format!("layer {}", step.layer().0),
            "attention".to_owned(),
        ),
        Step::Linear(step) => (
            StepClass::Linear,
            matrices(step, graph),
            linear_kind(step, graph),
        ),
        Step::Rows(step) => (
            StepClass::Rows,
            rows_name(step, next, graph),
            joined(step.ops.iter().map(op_name), "+"),
        ),
    })
}

/// `blk.0.attn_q,attn_k,attn_v`.
fn matrices(step: &LinearStep, graph: &Graph) -> String {
    names(step.matrices().map(|m| graph.weight(m.weight).name()))
}

/// `linear Q4_K+Q6_K`.
fn linear_kind(step: &LinearStep, graph: &Graph) -> String {
    let types = step.matrices().map(|m| graph.weight(m.weight));
    let types = joined(types.map(|w| w.element_type().name()), "+");
    format!("linear {types}")
}

/// Its own tensors; else the layer into whose cache it writes, or what it prepares.
fn rows_name(step: &RowsStep, next: Option<&Step>, graph: &Graph) -> String {
    let own = names(step.ops.iter().filter_map(|op| match op {
        RowOp::Embed { table, .. } => Some(graph.weight(*table).name()),
        RowOp::Norm { norm, .. } => norm.weight.as_ref().map(|w| w.name.as_str()),
        _ => None,
    }));
    if !own.is_empty() {
        return own;
    }
    let layer = step.ops.iter().find_map(|op| match op {
        RowOp::Store { layer, .. } => Some(format!("layer {}", layer.0)),
        _ => None,
    });
    layer.unwrap_or_else(|| match next {
        Some(Step::Linear(next)) => format!("for {}", matrices(next, graph)),
        _ => String::new(),
    })
}

fn op_name(op: &RowOp) -> &'static str {
    match op {
        RowOp::Embed { .. } => "embed",
        RowOp::Angles { .. } => "angles",
        RowOp::Norm { .. } => "norm",
        RowOp::Combine { op, .. } => match op {
            Combine::Add => "add",
            Combine::Mul => "multiply",
            Combine::Gate(_) => "gate",
        },
        RowOp::Map { op, .. } => match op {
            Map::Activation(_) => "activation",
            Map::Scale(_) => "scale",
            Map::Clamp(..) => "clamp",
            Map::Softcap(_) => "softcap",
        },
        RowOp::Rope { .. } => "rope",
        RowOp::Select { .. } => "select",
        RowOp::Quantize { .. } => "quantize",
        RowOp::Store { .. } => "store",
    }
}

/// Each text once, in order of first appearance.
fn joined<'a>(texts: impl Iterator<Item = &'a str>, separator: &str) -> String {
    let mut once: Vec<&str> = Vec::new();
    for text in texts {
        if !once.contains(&text) {
            once.push(text);
        }
    }
    once.join(separator)
}

/// Tensor names in short: without `.weight`, and what comes before the last dot only where it changes.
fn names<'a>(tensors: impl Iterator<Item = &'a str>) -> String {
    let (mut text, mut place) = (String::new(), "");
    for name in tensors {
        let name = name.strip_suffix(".weight").unwrap_or(name);
        let cut = name.rfind('.').map_or(0, |dot| dot + 1);
        let shown = if !text.is_empty() && name[..cut] == *place {
            &name[cut..]
        } else {
            name
        };
        place = &name[..cut];
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(shown);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_layer_are_shortened() {
        let all = ["blk.0.attn_q.weight", "blk.0.attn_k.weight", "output"];
        assert_eq!(names(all.into_iter()), "blk.0.attn_q,attn_k,output");
        let layers = ["blk.0.norm.weight", "blk.1.norm.weight"];
        assert_eq!(names(layers.into_iter()), "blk.0.norm,blk.1.norm");
        assert_eq!(names(std::iter::empty()), "");
        assert_eq!(joined(["a", "b", "a"].into_iter(), "+"), "a+b");
    }
}
