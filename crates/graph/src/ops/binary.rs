//! Element by element: sum and product.

/// `a + b`
#[derive(Clone, Copy, Debug)]
pub struct Add;

/// `a * b`
#[derive(Clone, Copy, Debug)]
pub struct Mul;

impl Add {
    pub(crate) fn reference(a: &[f64], b: &[f64]) -> Vec<f64> {
        a.iter().zip(b).map(|(a, b)| a + b).collect()
    }
}

impl Mul {
    pub(crate) fn reference(a: &[f64], b: &[f64]) -> Vec<f64> {
        a.iter().zip(b).map(|(a, b)| a * b).collect()
    }
}
