//! Soft limit of large values (Gemma 2, section 2).

/// `cap * tanh(x / cap)`
#[derive(Clone, Copy, Debug)]
pub struct Softcap {
    /// The limit; positive.
    pub cap: f32,
}

impl Softcap {
    pub(crate) fn reference(self, x: &[f64]) -> Vec<f64> {
        let cap = f64::from(self.cap);
        x.iter().map(|x| cap * (x / cap).tanh()).collect()
    }
}
