//! Multiplication by a constant.

/// `x * factor`
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// The constant.
    pub factor: f32,
}

impl Scale {
    pub(crate) fn reference(self, x: &[f64]) -> Vec<f64> {
        x.iter().map(|x| x * f64::from(self.factor)).collect()
    }
}
