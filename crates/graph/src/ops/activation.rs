//! Nonlinear functions of one value.

/// Which function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ActivationKind {
    /// `x * sigmoid(x)`
    Silu,
    /// `x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))`
    GeluTanh,
    /// `max(x, 0)`
    Relu,
}

impl ActivationKind {
    pub(crate) fn reference(self, x: f64) -> f64 {
        match self {
            Self::Silu => x / (1.0 + (-x).exp()),
            Self::GeluTanh => {
                let u = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x * x * x);
                0.5 * x * (1.0 + u.tanh())
            }
            Self::Relu => x.max(0.0),
        }
    }
}

/// The function on every element.
#[derive(Clone, Copy, Debug)]
pub struct Activation {
    /// Which function.
    pub kind: ActivationKind,
}

impl Activation {
    pub(crate) fn reference(self, x: &[f64]) -> Vec<f64> {
        x.iter().map(|x| self.kind.reference(*x)).collect()
    }
}
