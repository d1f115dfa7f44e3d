//! The tokens that are still in the race.

use crate::math::exp;

/// A token and its logit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// Token id.
    pub id: u32,
    /// Its logit, as changed by the samplers so far.
    pub logit: f32,
}

impl Candidate {
    /// Best first: higher logit, then lower id.
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "the shape that `sort_by` takes"
    )]
    pub(crate) fn rank(&self, other: &Self) -> std::cmp::Ordering {
        // No NaN gets here (`Chain::sample` refuses them), and -0.0 must tie with 0.0.
        let by_logit = other.logit.partial_cmp(&self.logit);
        by_logit
            .unwrap_or(std::cmp::Ordering::Equal)
            .then(self.id.cmp(&other.id))
    }
}

/// The tokens that a sampler may still remove or change.
///
/// At first they are the whole row of logits, `[vocabulary]`, as the model left it; the first sampler that removes tokens turns it into a short
/// list. So a vocabulary of a quarter million entries is read once or twice and never sorted.
#[derive(Debug)]
pub struct Candidates<'a> {
    row: &'a mut [f32],           // [vocabulary], by token id; stale once `listed`
    list: &'a mut Vec<Candidate>, // used once `listed`
    listed: bool,
    sorted: bool, // `list` is best first
}

impl<'a> Candidates<'a> {
    /// All tokens of a row of logits. `list` is storage that is reused from call to call.
    ///
    /// The row holds no NaN.
    pub fn new(row: &'a mut [f32], list: &'a mut Vec<Candidate>) -> Self {
        list.clear();
        Self {
            row,
            list,
            listed: false,
            sorted: false,
        }
    }

    /// How many tokens are left.
    pub fn len(&self) -> usize {
        if self.listed {
            self.list.len()
        } else {
            self.row.len()
        }
    }

    /// Whether none is left.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The tokens left, in no promised order.
    pub fn iter(&self) -> impl Iterator<Item = Candidate> + '_ {
        let row = if self.listed { &[][..] } else { &*self.row };
        let list = if self.listed { &self.list[..] } else { &[] };
        let row = row.iter().enumerate().map(|(id, &logit)| Candidate {
            id: id as u32,
            logit,
        });
        row.chain(list.iter().copied())
    }

    /// The best token: the highest logit, and of equal ones the lowest id.
    pub fn best(&self) -> Option<Candidate> {
        if self.listed {
            if self.sorted {
                return self.list.first().copied();
            }
            return self.list.iter().copied().min_by(Candidate::rank);
        }
        let max = self.max_logit();
        let id = self.row.iter().position(|&x| x == max)?;
        Some(Candidate {
            id: id as u32,
            logit: max,
        })
    }

    /// The highest logit left; minus infinity if there is none.
    pub fn max_logit(&self) -> f32 {
        if self.listed {
            return self
                .list
                .iter()
                .fold(f32::NEG_INFINITY, |m, c| m.max(c.logit));
        }
        let mut lanes = [f32::NEG_INFINITY; 16];
        let mut chunks = self.row.chunks_exact(16);
        for chunk in &mut chunks {
            for (m, &x) in lanes.iter_mut().zip(chunk) {
                *m = if x > *m { x } else { *m };
            }
        }
        let rest = chunks.remainder().iter();
        rest.chain(&lanes).fold(f32::NEG_INFINITY, |m, &x| m.max(x))
    }

    /// Changes the logit of one token, if it is left. The change must not make it NaN.
    pub fn update(&mut self, id: u32, change: impl FnOnce(f32) -> f32) {
        let logit = if self.listed {
            self.list
                .iter_mut()
                .find(|c| c.id == id)
                .map(|c| &mut c.logit)
        } else {
            self.row.get_mut(id as usize)
        };
        if let Some(logit) = logit {
            *logit = change(*logit);
            self.sorted = false;
        }
    }

    /// Divides every logit by a positive number; the order stays.
    pub fn divide(&mut self, by: f32) {
        if self.listed {
            self.list.iter_mut().for_each(|c| c.logit /= by);
        } else {
            self.row.iter_mut().for_each(|x| *x /= by);
        }
    }

    /// Keeps the `k` best tokens (all, if there are fewer), best first.
    pub fn keep_best(&mut self, k: usize) {
        if self.listed {
            if !self.sorted {
                if k < self.list.len() && k > 0 {
                    self.list.select_nth_unstable_by(k - 1, Candidate::rank);
                    self.list.truncate(k);
                }
                self.list.sort_unstable_by(Candidate::rank);
            }
            self.list.truncate(k);
        } else {
            select_best(self.row, k, self.list);
        }
        self.listed = true;
        self.sorted = true;
    }

    /// Keeps the tokens whose logit is at least `least`.
    pub fn keep_from(&mut self, least: f32) {
        if self.listed {
            self.list.retain(|c| c.logit >= least);
        } else {
            let row = self.row.iter().enumerate().filter(|&(_, &x)| x >= least);
            self.list.extend(row.map(|(id, &logit)| Candidate {
                id: id as u32,
                logit,
            }));
            self.listed = true;
        }
    }

    /// How many tokens have a logit of at least `least`.
    pub fn count_from(&self, least: f32) -> usize {
        if self.listed {
            self.list.iter().filter(|c| c.logit >= least).count()
        } else {
            self.row.iter().map(|&x| u32::from(x >= least)).sum::<u32>() as usize
        }
    }

    /// The sum of exp(logit - highest logit) over all tokens left.
    pub fn total_weight(&self) -> f64 {
        let max = self.max_logit();
        if self.listed {
            return self
                .list
                .iter()
                .map(|c| f64::from(weight(c.logit, max)))
                .sum();
        }
        // Eight lanes, then one order of adding them: quick, and the same sum everywhere.
        let mut lanes = [0.0_f64; 8];
        let mut chunks = self.row.chunks_exact(8);
        for chunk in &mut chunks {
            for (sum, &x) in lanes.iter_mut().zip(chunk) {
                *sum += f64::from(weight(x, max));
            }
        }
        let rest: f64 = chunks
            .remainder()
            .iter()
            .map(|&x| f64::from(weight(x, max)))
            .sum();
        lanes.iter().sum::<f64>() + rest
    }

    /// Keeps the tokens that rank at least as high as `last`.
    pub fn keep_through(&mut self, last: Candidate) {
        let stays = |c: &Candidate| c.rank(&last).is_le();
        if self.listed {
            self.list.retain(stays);
        } else {
            let row = self.row.iter().enumerate();
            let row = row.map(|(id, &logit)| Candidate {
                id: id as u32,
                logit,
            });
            self.list.extend(row.filter(stays));
            self.listed = true;
        }
    }

    /// Puts the tokens left into the order of their ids and gives them to `f`: the order in which the draw walks.
    pub(crate) fn by_id(&mut self) -> impl Iterator<Item = Candidate> + '_ {
        if self.listed {
            self.list.sort_unstable_by_key(|c| c.id);
            self.sorted = false;
        }
        self.iter()
    }
}

/// The weight of a logit in the softmax, before division by the sum: exp(logit - max), and 1 for the maximum itself even if that is infinite.
pub(crate) fn weight(logit: f32, max: f32) -> f32 {
    if logit == max { 1.0 } else { exp(logit - max) }
}

/// Puts the `k` best entries of a row into `list`, best first, without sorting the rest.
///
/// Only entries above a rising threshold are collected; whenever twice `k` are together, the worse half goes and the threshold rises. On logits in
/// no particular order nearly every entry costs one comparison.
fn select_best(row: &[f32], k: usize, list: &mut Vec<Candidate>) {
    const STEP: usize = 64;
    list.clear();
    if k == 0 {
        return;
    }
    let room = k.saturating_mul(2).max(k.saturating_add(256));
    // An entry equal to the threshold has a higher id than those already kept, so it loses the tie.
    let mut threshold = None;
    for (step, chunk) in row.chunks(STEP).enumerate() {
        if let Some(t) = threshold {
            // No early exit inside a chunk, so that the comparison runs in SIMD lanes.
            if chunk.iter().map(|&x| u32::from(x > t)).sum::<u32>() == 0 {
                continue;
            }
        }
        for (i, &logit) in chunk.iter().enumerate() {
            if threshold.is_none_or(|t| logit > t) {
                list.push(Candidate {
                    id: (step * STEP + i) as u32,
                    logit,
                });
            }
        }
        if list.len() + STEP > room {
            threshold = Some(drop_worse(list, k));
        }
    }
    if list.len() > k {
        drop_worse(list, k);
    }
    list.sort_unstable_by(Candidate::rank);
}

/// Keeps the `k` best (k >= 1) and returns the logit of the worst of them.
fn drop_worse(list: &mut Vec<Candidate>, k: usize) -> f32 {
    if list.len() < k {
        return f32::NEG_INFINITY;
    }
    let (_, worst, _) = list.select_nth_unstable_by(k - 1, Candidate::rank);
    let worst = worst.logit;
    list.truncate(k);
    worst
}
