//! What the steps of a plan cost: measured times beside the work that had to be done.

use std::{ops::AddAssign, time::Duration};

/// The least work that a result needs, however it is computed. Small change (norms, activations, norm weights) is left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Bytes of weights, each counted once per run.
    pub weight_bytes: u64,
    /// Bytes of keys and values read from the cache and written to it; what several queries of a sequence see is counted once.
    pub cache_bytes: u64,
    /// Multiplications and additions of integers: linears whose input is quantized.
    pub integer_ops: u64,
    /// Multiplications and additions of floats: attention, and linears whose input is not quantized.
    pub float_ops: u64,
}

impl Work {
    /// All bytes.
    pub fn bytes(&self) -> u64 {
        self.weight_bytes + self.cache_bytes
    }

    /// All multiplications and additions.
    pub fn ops(&self) -> u64 {
        self.integer_ops + self.float_ops
    }
}

impl AddAssign for Work {
    fn add_assign(&mut self, other: Self) {
        self.weight_bytes += other.weight_bytes;
        self.cache_bytes += other.cache_bytes;
        self.integer_ops += other.integer_ops;
        self.float_ops += other.float_ops;
    }
}

/// What the greater part of a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StepClass {
    /// Products with matrices, and what is applied to them.
    Linear,
    /// Attention over the cache.
    Attention,
    /// A pass over rows: norms, rotary positions, quantization, what is stored into the cache.
    Rows,
}

/// One step of a plan, summed over runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepProfile {
    /// Its tensors, or the layer or tensor that it works for.
    pub name: String,
    /// What it does, in the backend's words: `linear Q4_K`, `norm+quantize`.
    pub kind: String,
    /// Which class that is.
    pub class: StepClass,
    /// From the end of the step before to its own.
    pub time: Duration,
    /// What it did in that time.
    pub work: Work,
    /// The shortest run, of those that had work for it if any had.
    pub fastest: Duration,
    /// What it did in that one.
    pub fastest_work: Work,
}

impl StepProfile {
    /// Adds one run, or several.
    fn add(&mut self, other: &Self) {
        let idle = |step: &Self| step.fastest_work == Work::default();
        if (idle(other), other.fastest) < (idle(self), self.fastest) {
            (self.fastest, self.fastest_work) = (other.fastest, other.fastest_work);
        }
        self.time += other.time;
        self.work += other.work;
    }
}

/// What the runs of a plan cost, step by step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Runs of the plan.
    pub runs: u64,
    /// Their time, of which the steps are the greater part.
    pub time: Duration,
    /// The steps in the order in which they run.
    pub steps: Vec<StepProfile>,
}

impl Profile {
    /// Adds further runs of the same plan.
    pub fn add(&mut self, other: &Self) {
        if self.steps.is_empty() {
            self.steps.clone_from(&other.steps);
        } else {
            for (step, more) in self.steps.iter_mut().zip(&other.steps) {
                step.add(more);
            }
        }
        self.runs += other.runs;
        self.time += other.time;
    }

    /// Work of all steps.
    pub fn work(&self) -> Work {
        let mut sum = Work::default();
        for step in &self.steps {
            sum += step.work;
        }
        sum
    }

    /// Time of the steps of a class.
    pub fn time_of(&self, class: StepClass) -> Duration {
        let steps = self.steps.iter().filter(|s| s.class == class);
        steps.map(|s| s.time).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(millis: u64, bytes: u64) -> Profile {
        let (time, work) = (
            Duration::from_millis(millis),
            Work {
                weight_bytes: bytes,
                ..Work::default()
            },
        );
        Profile {
            runs: 1,
            time,
            steps: vec![StepProfile {
                name: "x".to_owned(),
                kind: "linear Q8_0".to_owned(),
                class: StepClass::Linear,
                time,
                work,
                fastest: time,
                fastest_work: work,
            }],
        }
    }

    #[test]
    fn a_sum_of_profiles_keeps_the_fastest_run_and_its_work() {
        let mut sum = Profile::default();
        for (millis, bytes) in [(5, 10), (3, 20), (0, 0), (4, 30)] {
            sum.add(&profile(millis, bytes));
        }
        assert_eq!((sum.runs, sum.time), (4, Duration::from_millis(12)));
        assert_eq!(sum.work().bytes(), 60);
        assert_eq!(sum.time_of(StepClass::Linear), sum.time);
        assert_eq!(sum.time_of(StepClass::Attention), Duration::ZERO);
        let step = &sum.steps[0];
        assert_eq!(step.fastest, Duration::from_millis(3));
        assert_eq!(step.fastest_work.weight_bytes, 20);
    }
}
