//! How near work comes to what the machine can do at best.

use crate::machine::Ceilings;
use puna::graph::{Profile, StepClass, Work};
use serde_json::{Value, json};
use std::time::Duration;

/// Speeds of some work.
#[derive(Clone, Copy)]
pub(super) struct Speed {
    /// Bytes of weights and cache per second.
    pub(super) bytes: f64,
    /// Multiplications and additions per second.
    pub(super) ops: f64,
    /// Parts of what the machine can do; `None` where that was not measured.
    pub(super) shares: Option<Shares>,
}

/// Parts of the machine's best, 1 being all of it.
#[derive(Clone, Copy)]
pub(super) struct Shares {
    /// Of the read bandwidth.
    pub(super) read: f64,
    /// Of the integer peak, and of the float peak for what is done in floats: the time that the operations would take at these peaks,
    /// over the time that they took.
    pub(super) arithmetic: f64,
}

impl Speed {
    pub(super) fn new(work: Work, time: Duration, ceilings: Option<&Ceilings>) -> Self {
        let seconds = time.as_secs_f64().max(1e-9);
        let bytes = work.bytes() as f64 / seconds;
        Self {
            bytes,
            ops: work.ops() as f64 / seconds,
            shares: ceilings.map(|best| Shares {
                read: bytes / best.read.per_second,
                arithmetic: (work.integer_ops as f64 / best.integer.per_second
                    + work.float_ops as f64 / best.float.per_second)
                    / seconds,
            }),
        }
    }

    /// The nearest ceiling's share.
    pub(super) fn share(&self) -> Option<f64> {
        self.shares.map(|s| s.read.max(s.arithmetic))
    }
}

/// Speeds of a whole test.
#[derive(Clone, Copy)]
pub(super) struct TestSpeeds {
    /// All work in all of the time.
    pub(super) whole: Speed,
    /// The linears in the time of their own steps.
    pub(super) linears: Speed,
    /// A step of a generation in the time of the fastest one.
    pub(super) fastest: Option<Speed>,
    /// Work of one run of the plan.
    per_run: Work,
}

impl TestSpeeds {
    /// Of a test of that much time; `fastest` is the shortest step of a generation.
    pub(super) fn new(
        profile: &Profile,
        time: Duration,
        fastest: Option<Duration>,
        ceilings: Option<&Ceilings>,
    ) -> Self {
        let work = profile.work();
        let mut linear = Work::default();
        for step in profile
            .steps
            .iter()
            .filter(|s| s.class == StepClass::Linear)
        {
            linear += step.work;
        }
        let runs = profile.runs.max(1);
        let per_run = Work {
            weight_bytes: work.weight_bytes / runs,
            cache_bytes: work.cache_bytes / runs,
            integer_ops: work.integer_ops / runs,
            float_ops: work.float_ops / runs,
        };
        Self {
            whole: Speed::new(work, time, ceilings),
            linears: Speed::new(linear, profile.time_of(StepClass::Linear), ceilings),
            fastest: fastest.map(|time| Speed::new(per_run, time, ceilings)),
            per_run,
        }
    }

    /// Two cells of a table: speed, and the share of what the machine can do. Of a prompt they are of operations, of a generation those of
    /// the nearer ceiling.
    pub(super) fn cells(&self) -> [String; 2] {
        let nearer = self.whole.shares.is_some_and(|s| s.arithmetic > s.read);
        match self.fastest {
            Some(fastest) if !nearer => [
                format!("{:.2} GB/s", self.whole.bytes / 1e9),
                shares(&[
                    ("", self.whole.shares.map(|s| s.read)),
                    ("fastest token ", fastest.shares.map(|s| s.read)),
                ]),
            ],
            _ => [
                format!("{:.1} GOP/s", self.whole.ops / 1e9),
                shares(&[
                    ("", self.whole.shares.map(|s| s.arithmetic)),
                    ("linears ", self.linears.shares.map(|s| s.arithmetic)),
                ]),
            ],
        }
    }

    pub(super) fn json(&self) -> Value {
        let share = |speed: &Speed, of: fn(&Shares) -> f64| speed.shares.as_ref().map(of);
        json!({
            "bytes_per_run": self.per_run.bytes(),
            "weight_bytes_per_run": self.per_run.weight_bytes,
            "cache_bytes_per_run": self.per_run.cache_bytes,
            "ops_per_run": self.per_run.ops(),
            "bytes_per_second": self.whole.bytes,
            "read_share": share(&self.whole, |s| s.read),
            "fastest_token_read_share": self.fastest.as_ref().and_then(|f| share(f, |s| s.read)),
            "ops_per_second": self.whole.ops,
            "arithmetic_share": share(&self.whole, |s| s.arithmetic),
            "linear_ops_per_second": self.linears.ops,
            "linear_arithmetic_share": share(&self.linears, |s| s.arithmetic),
        })
    }
}

/// `71 % (fastest token 88 %)`.
fn shares(list: &[(&str, Option<f64>)]) -> String {
    let mut known = list
        .iter()
        .filter_map(|(name, share)| Some((name, (*share)?)));
    let Some((name, first)) = known.next() else {
        return String::new();
    };
    let rest: Vec<_> = known
        .map(|(name, share)| format!("{name}{}", percent(share)))
        .collect();
    let rest = if rest.is_empty() {
        String::new()
    } else {
        format!(" ({})", rest.join(", "))
    };
    format!("{name}{}{rest}", percent(first))
}

/// A part of 1 in hundredths.
pub(super) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use puna::cpu::measure::{Bandwidth, Peak};

    #[test]
    fn shares_are_of_the_machines_best() {
        let peak = |per_second| Peak {
            per_second,
            instruction: "x",
        };
        let read = Bandwidth {
            per_second: 10e9,
            median: 9e9,
            pattern: "x",
            bytes: 1,
        };
        let ceilings = Ceilings {
            threads: 1,
            read,
            integer: peak(1000e9),
            float: peak(100e9),
        };
        let work = Work {
            weight_bytes: 3_000_000_000,
            cache_bytes: 1_000_000_000,
            integer_ops: 200_000_000_000,
            float_ops: 10_000_000_000,
        };
        let speed = Speed::new(work, Duration::from_secs(1), Some(&ceilings));
        assert_eq!((speed.bytes, speed.ops), (4e9, 210e9));
        let shares = speed.shares.unwrap();
        assert!((shares.read - 0.4).abs() < 1e-12);
        assert!((shares.arithmetic - 0.3).abs() < 1e-12);
        assert_eq!(speed.share(), Some(shares.read));
        assert!(Speed::new(work, Duration::ZERO, None).share().is_none());
    }

    #[test]
    fn what_was_not_measured_is_left_out() {
        let text = |list: &[_]| super::shares(list);
        assert_eq!(
            text(&[("", Some(0.714)), ("linears ", Some(0.9))]),
            "71 % (linears 90 %)"
        );
        assert_eq!(text(&[("", Some(0.5)), ("linears ", None)]), "50 %");
        assert_eq!(text(&[("", None), ("linears ", None)]), "");
    }
}
