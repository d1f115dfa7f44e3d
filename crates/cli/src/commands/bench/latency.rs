//! How long single tokens take.

use std::time::Duration;

/// Times of the steps of a generation; a step gives one token to each sequence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Latency {
    pub(super) min: Duration,
    pub(super) median: Duration,
    /// 95 of 100 steps are not slower.
    pub(super) p95: Duration,
    pub(super) max: Duration,
}

impl Latency {
    /// `None` of no steps.
    pub(super) fn new(steps: &[Duration]) -> Option<Self> {
        let mut sorted = steps.to_vec();
        sorted.sort_unstable();
        // The nearest rank: the smallest value that at least this share does not exceed.
        let at = |percent: usize| {
            let rank = (sorted.len() * percent).div_ceil(100).max(1);
            sorted.get(rank - 1).copied()
        };
        Some(Self {
            min: *sorted.first()?,
            median: at(50)?,
            p95: at(95)?,
            max: *sorted.last()?,
        })
    }

    /// The slowest step in medians.
    pub(super) fn worst(&self) -> f64 {
        self.max.as_secs_f64() / self.median.as_secs_f64().max(1e-9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let ms = Duration::from_millis;
        let steps: Vec<_> = (1..=100).rev().map(ms).collect();
        let latency = Latency::new(&steps).unwrap();
        assert_eq!(
            [latency.min, latency.median, latency.p95, latency.max],
            [1, 50, 95, 100].map(ms)
        );
        assert_eq!(latency.worst(), 2.0);
        let one = Latency::new(&[ms(3)]).unwrap();
        assert_eq!([one.min, one.median, one.p95, one.max], [3; 4].map(ms));
        assert_eq!(Latency::new(&[]), None);
    }
}
