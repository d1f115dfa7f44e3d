//! Rows of an embedding table, one per token.

use crate::WeightId;

/// `out[t] = table[tokens[t]] * scale`
#[derive(Clone, Debug)]
pub struct Embed {
    /// Table `[vocabulary, features]`.
    pub table: WeightId,
    /// Factor, 1 for most models.
    pub scale: f32,
}

impl Embed {
    pub(crate) fn reference(&self, row: &[f32]) -> Vec<f64> {
        row.iter()
            .map(|x| f64::from(*x) * f64::from(self.scale))
            .collect()
    }
}
