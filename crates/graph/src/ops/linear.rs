//! Matrix times vector for every row.

use crate::{GraphError, Vector, Weight, WeightId};

/// `out[r] = (sum over c of weight[r, c] * x[c]) * weight.scale + bias[r]`
#[derive(Clone, Debug)]
pub struct Linear {
    /// `[out features, in features]`.
    pub weight: WeightId,
    /// `[out features]`.
    pub bias: Option<Vector>,
}

impl Linear {
    pub(crate) fn features(
        weight: &Weight,
        bias: Option<&Vector>,
        input: usize,
    ) -> Result<usize, GraphError> {
        let mismatch = |tensor: &str, found, expected| GraphError::Features {
            op: "linear",
            tensor: format!("`{tensor}`"),
            found,
            expected,
        };
        if weight.cols() != input {
            return Err(mismatch(weight.name(), input, weight.cols()));
        }
        match bias {
            Some(b) if b.len() != weight.rows() => Err(mismatch(&b.name, b.len(), weight.rows())),
            _ => Ok(weight.rows()),
        }
    }

    /// `weight` is dequantized, row-major.
    pub(crate) fn reference(&self, weight: &[f32], scale: f32, x: &[f64]) -> Vec<f64> {
        weight
            .chunks_exact(x.len())
            .enumerate()
            .map(|(r, row)| {
                let dot: f64 = row.iter().zip(x).map(|(w, x)| f64::from(*w) * x).sum();
                dot * f64::from(scale) + self.bias.as_ref().map_or(0.0, |b| f64::from(b.data[r]))
            })
            .collect()
    }
}
