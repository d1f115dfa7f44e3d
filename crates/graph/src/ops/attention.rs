//! Causal attention over the cache (Vaswani et al., 2017), with grouped heads and sliding windows.

use crate::{CacheLayer, GraphError, LayerId, Reach};

/// Appends keys and values to the cache of `layer` and attends over what the layer sees of the sequence. Inputs: queries `[tokens,
/// heads * key_dim]`, keys `[tokens, kv_heads * key_dim]`, values `[tokens, kv_heads * value_dim]`; result `[tokens, heads * value_dim]`.
/// Query head `h` reads KV head `h / (heads / kv_heads)`.
#[derive(Clone, Debug)]
pub struct Attention {
    /// Where keys and values are kept.
    pub layer: LayerId,
    /// Query heads.
    pub heads: usize,
    /// What the layer keeps.
    pub cache: CacheLayer,
    /// Factor on the scores.
    pub scale: f32,
    /// `cap * tanh(score / cap)` where set.
    pub softcap: Option<f32>,
}

impl Attention {
    pub(crate) fn features(&self, q: usize, k: usize, v: usize) -> Result<usize, GraphError> {
        let c = &self.cache;
        if c.kv_heads == 0 || !self.heads.is_multiple_of(c.kv_heads) {
            return Err(GraphError::Attribute {
                op: "attention",
                reason: format!("{} heads over {} KV heads", self.heads, c.kv_heads),
            });
        }
        if c.reach == Reach::Window(0) {
            return Err(GraphError::Attribute {
                op: "attention",
                reason: "a window of 0 positions".to_owned(),
            });
        }
        for (name, found, expected) in [
            ("queries", q, self.heads * c.key_dim),
            ("keys", k, c.kv_heads * c.key_dim),
            ("values", v, c.kv_heads * c.value_dim),
        ] {
            if found != expected {
                return Err(GraphError::Features {
                    op: "attention",
                    tensor: name.to_owned(),
                    found,
                    expected,
                });
            }
        }
        Ok(self.heads * c.value_dim)
    }

    /// One query at `position` over all keys and values so far, each a row per position.
    pub(crate) fn reference(
        &self,
        q: &[f64],
        keys: &[Vec<f64>],
        values: &[Vec<f64>],
        position: usize,
    ) -> Vec<f64> {
        let c = &self.cache;
        let first = match c.reach {
            Reach::Full => 0,
            Reach::Window(n) => (position + 1).saturating_sub(n as usize),
        };
        let group = self.heads / c.kv_heads;
        let mut out = Vec::with_capacity(self.heads * c.value_dim);
        for h in 0..self.heads {
            let q = &q[h * c.key_dim..][..c.key_dim];
            let kv = h / group;
            let scores: Vec<f64> = keys[first..=position]
                .iter()
                .map(|k| {
                    let k = &k[kv * c.key_dim..][..c.key_dim];
                    let s: f64 =
                        q.iter().zip(k).map(|(q, k)| q * k).sum::<f64>() * f64::from(self.scale);
                    self.softcap.map_or(s, |cap| {
                        let cap = f64::from(cap);
                        cap * (s / cap).tanh()
                    })
                })
                .collect();
            let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let weights: Vec<f64> = scores.iter().map(|s| (s - top).exp()).collect();
            let sum: f64 = weights.iter().sum();
            for d in 0..c.value_dim {
                let dot: f64 = weights
                    .iter()
                    .zip(&values[first..=position])
                    .map(|(w, v)| w * v[kv * c.value_dim + d])
                    .sum();
                out.push(dot / sum);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_sees_nothing_and_heads_that_do_not_share_evenly_are_refused() {
        let op = |heads, kv_heads, reach| Attention {
            layer: LayerId(0),
            heads,
            cache: CacheLayer {
                kv_heads,
                key_dim: 4,
                value_dim: 2,
                reach,
            },
            scale: 1.0,
            softcap: None,
        };
        assert_eq!(op(6, 2, Reach::Full).features(24, 8, 4), Ok(12));
        assert_eq!(op(6, 2, Reach::Window(1)).features(24, 8, 4), Ok(12));
        for (op, expected) in [
            (op(6, 2, Reach::Window(0)), "a window of 0 positions"),
            (op(6, 4, Reach::Full), "6 heads over 4 KV heads"),
            (op(6, 0, Reach::Full), "6 heads over 0 KV heads"),
        ] {
            let error = op.features(24, op.cache.kv_heads * 4, op.cache.kv_heads * 2);
            let error = error.unwrap_err().to_string();
            assert_eq!(error, format!("attention: {expected}"));
        }
    }
}
