//! Root-mean-square and layer norm, over whole rows or per head.

use crate::{GraphError, Vector};

/// Which norm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NormKind {
    /// `x / sqrt(mean(x^2) + eps)` (Zhang and Sennrich, 2019).
    Rms,
    /// `(x - mean(x)) / sqrt(var(x) + eps)` (Ba et al., 2016).
    Layer,
}

/// Norm of each group of `weight.len()` consecutive features, times a weight, plus a bias.
#[derive(Clone, Debug)]
pub struct Norm {
    /// Which norm.
    pub kind: NormKind,
    /// Features that are normed together: a whole row, or one head.
    pub group: usize,
    /// Added under the root.
    pub eps: f32,
    /// `[group]`, the same for each group.
    pub weight: Option<Vector>,
    /// `[group]`.
    pub bias: Option<Vector>,
}

impl Norm {
    pub(crate) fn features(&self, input: usize) -> Result<usize, GraphError> {
        for v in self.weight.iter().chain(&self.bias) {
            if v.len() != self.group {
                return Err(GraphError::Features {
                    op: "norm",
                    tensor: format!("`{}`", v.name),
                    found: self.group,
                    expected: v.len(),
                });
            }
        }
        if self.group == 0 || !input.is_multiple_of(self.group) {
            return Err(GraphError::Attribute {
                op: "norm",
                reason: format!("{input} features in groups of {}", self.group),
            });
        }
        Ok(input)
    }

    pub(crate) fn reference(&self, x: &[f64]) -> Vec<f64> {
        let at = |v: &Option<Vector>, i: usize, none: f64| {
            v.as_ref().map_or(none, |v| f64::from(v.data[i]))
        };
        x.chunks_exact(self.group)
            .flat_map(|x| {
                let n = x.len() as f64;
                let mean = match self.kind {
                    NormKind::Rms => 0.0,
                    NormKind::Layer => x.iter().sum::<f64>() / n,
                };
                let var = x.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
                let scale = 1.0 / (var + f64::from(self.eps)).sqrt();
                x.iter()
                    .enumerate()
                    .map(|(i, x)| {
                        (x - mean) * scale * at(&self.weight, i, 1.0) + at(&self.bias, i, 0.0)
                    })
                    .collect::<Vec<_>>()
            })
            .collect()
    }
}
