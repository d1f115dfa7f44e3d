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
    /// `[group]`; layer norm only.
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
        if let (NormKind::Rms, Some(bias)) = (self.kind, &self.bias) {
            return Err(GraphError::Attribute {
                op: "norm",
                reason: format!("RMS norm with bias `{}`, expected none", bias.name),
            });
        }
        if !(self.eps.is_finite() && self.eps >= 0.0) {
            return Err(GraphError::Attribute {
                op: "norm",
                reason: format!("epsilon {}, expected 0 or a positive number", self.eps),
            });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_layer_norm_has_a_bias() {
        let norm = |kind, bias: bool| Norm {
            kind,
            group: 2,
            eps: 1e-5,
            weight: None,
            bias: bias.then(|| Vector::new("b", vec![1.0, 2.0])),
        };
        assert_eq!(norm(NormKind::Layer, true).features(4), Ok(4));
        assert_eq!(norm(NormKind::Rms, false).features(4), Ok(4));
        let error = norm(NormKind::Rms, true).features(4).unwrap_err();
        assert!(error.to_string().contains("`b`"), "{error}");
    }

    #[test]
    fn an_epsilon_under_which_no_root_can_be_taken_is_refused() {
        for (eps, fits) in [
            (0.0, true),
            (1e-6, true),
            (-1e-6, false),
            (f32::NAN, false),
            (f32::INFINITY, false),
        ] {
            let norm = Norm {
                kind: NormKind::Rms,
                group: 2,
                eps,
                weight: None,
                bias: None,
            };
            assert_eq!(norm.features(4).is_ok(), fits, "{eps}");
        }
    }
}
