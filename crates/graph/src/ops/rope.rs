//! Rotary position embedding (Su et al., 2021) with the scalings in use.

use crate::{GraphError, Vector};

/// Which elements of a head form a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RopeOrder {
    /// Neighbours: `(0, 1), (2, 3), ...`
    Normal,
    /// Halves: `(0, n/2), (1, n/2 + 1), ...`
    Neox,
}

/// How positions beyond the trained context are brought back into range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RopeScaling {
    /// Not at all.
    None,
    /// Positions are divided by `factor`.
    Linear {
        /// At least 1.
        factor: f32,
    },
    /// `YaRN` (Peng et al., 2023): low frequencies are interpolated, high ones kept, in between a ramp.
    Yarn {
        /// Context extension.
        factor: f32,
        /// Context of the training before extension.
        original_context: u32,
        /// Share of the ramp, normally 1.
        ext_factor: f32,
        /// Factor on the result's magnitude.
        attn_factor: f32,
        /// Rotations above which a frequency is kept.
        beta_fast: f32,
        /// Rotations below which a frequency is interpolated.
        beta_slow: f32,
    },
}

impl RopeScaling {
    /// Whether all of its numbers can be divided by, and their logarithms taken.
    fn is_sound(&self) -> bool {
        let positive = |x: f32| x.is_finite() && x > 0.0;
        match *self {
            Self::None => true,
            Self::Linear { factor } => positive(factor),
            Self::Yarn {
                factor,
                original_context,
                ext_factor,
                attn_factor,
                beta_fast,
                beta_slow,
            } => {
                let all = [factor, original_context as f32, beta_fast, beta_slow];
                all.into_iter().all(positive) && ext_factor.is_finite() && attn_factor.is_finite()
            }
        }
    }
}

/// Rotates the first `dims` elements of each head by angles proportional to the position.
#[derive(Clone, Debug)]
pub struct Rope {
    /// Elements of a head.
    pub head_dim: usize,
    /// Elements that are rotated; even.
    pub dims: usize,
    /// Pairing.
    pub order: RopeOrder,
    /// Base frequency ("theta").
    pub base: f32,
    /// Scaling.
    pub scaling: RopeScaling,
    /// `[dims / 2]`: each frequency is divided by its factor.
    pub factors: Option<Vector>,
    /// Factor on the rotated elements, beside that of [`RopeScaling::Yarn`]; normally 1.
    pub magnitude: f32,
}

impl Rope {
    pub(crate) fn features(&self, input: usize) -> Result<usize, GraphError> {
        let fail = |reason| Err(GraphError::Attribute { op: "rope", reason });
        if self.head_dim == 0 || !input.is_multiple_of(self.head_dim) {
            return fail(format!("{input} features in heads of {}", self.head_dim));
        }
        if self.dims > self.head_dim || !self.dims.is_multiple_of(2) {
            return fail(format!(
                "{} rotated dimensions of a head of {}",
                self.dims, self.head_dim
            ));
        }
        if !(self.base.is_finite() && self.base > 0.0) {
            return fail(format!("base frequency {}", self.base));
        }
        if !self.magnitude.is_finite() {
            return fail(format!("magnitude {}", self.magnitude));
        }
        if !self.scaling.is_sound() {
            return fail(format!("scaling {:?}", self.scaling));
        }
        match &self.factors {
            Some(f) if f.len() < self.dims / 2 => Err(GraphError::Features {
                op: "rope",
                tensor: format!("`{}`", f.name),
                found: f.len(),
                expected: self.dims / 2,
            }),
            _ => Ok(input),
        }
    }

    /// Angle of pair `i` at `position`, and the scaling's factor on the rotated pair.
    pub(crate) fn angle(&self, i: usize, position: u32) -> (f64, f64) {
        let n = self.dims as f64;
        let base = f64::from(self.base);
        let factor = self.factors.as_ref().map_or(1.0, |f| f64::from(f.data[i]));
        let extrapolated = f64::from(position) * base.powf(-2.0 * i as f64 / n) / factor;
        match self.scaling {
            RopeScaling::None => (extrapolated, 1.0),
            RopeScaling::Linear { factor } => (extrapolated / f64::from(factor), 1.0),
            RopeScaling::Yarn {
                factor,
                original_context,
                ext_factor,
                attn_factor,
                beta_fast,
                beta_slow,
            } => {
                let factor = f64::from(factor);
                let interpolated = extrapolated / factor;
                if ext_factor == 0.0 {
                    return (interpolated, f64::from(attn_factor));
                }
                let dim = |rotations: f32| {
                    let turns = f64::from(original_context)
                        / (f64::from(rotations) * 2.0 * std::f64::consts::PI);
                    n * turns.ln() / (2.0 * base.ln())
                };
                let low = dim(beta_fast).floor().max(0.0);
                let high = dim(beta_slow).ceil().min(n - 1.0);
                let y = (i as f64 - low) / (high - low).max(0.001);
                let mix = (1.0 - y.clamp(0.0, 1.0)) * f64::from(ext_factor);
                let magnitude = f64::from(attn_factor) * (1.0 + 0.1 * factor.ln());
                (interpolated * (1.0 - mix) + extrapolated * mix, magnitude)
            }
        }
    }

    pub(crate) fn reference(&self, x: &[f64], position: u32) -> Vec<f64> {
        let mut out = x.to_vec();
        for head in out.chunks_exact_mut(self.head_dim) {
            for i in 0..self.dims / 2 {
                let (a, b) = match self.order {
                    RopeOrder::Normal => (2 * i, 2 * i + 1),
                    RopeOrder::Neox => (i, i + self.dims / 2),
                };
                let (angle, magnitude) = self.angle(i, position);
                let magnitude = magnitude * f64::from(self.magnitude);
                let (sin, cos) = angle.sin_cos();
                let (x0, x1) = (head[a], head[b]);
                head[a] = (x0 * cos - x1 * sin) * magnitude;
                head[b] = (x0 * sin + x1 * cos) * magnitude;
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalings_that_divide_by_nothing_are_refused() {
        let rope = |scaling| Rope {
            head_dim: 8,
            dims: 8,
            order: RopeOrder::Neox,
            base: 10_000.0,
            scaling,
            factors: None,
            magnitude: 1.0,
        };
        let yarn = |factor, original_context, beta_fast| RopeScaling::Yarn {
            factor,
            original_context,
            ext_factor: 1.0,
            attn_factor: 1.0,
            beta_fast,
            beta_slow: 1.0,
        };
        for (scaling, fits) in [
            (RopeScaling::None, true),
            (RopeScaling::Linear { factor: 4.0 }, true),
            (RopeScaling::Linear { factor: 0.0 }, false),
            (RopeScaling::Linear { factor: f32::NAN }, false),
            (yarn(4.0, 4096, 32.0), true),
            (yarn(-4.0, 4096, 32.0), false),
            (yarn(4.0, 0, 32.0), false),
            (yarn(4.0, 4096, -32.0), false),
        ] {
            assert_eq!(rope(scaling).features(16).is_ok(), fits, "{scaling:?}");
        }
    }
}
