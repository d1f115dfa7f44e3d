//! Weights: matrices in the file's own layout, and small vectors as `f32`.

use crate::GraphError;
use puna_quant::ElementType;
use std::{ops::Range, sync::Arc};

/// Bytes that somebody keeps alive, usually a mapped file.
pub type SharedBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// Index of a matrix in [`crate::Graph::weights`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WeightId(pub u32);

/// A matrix `[rows, cols]`, row after row in blocks of its element type; a linear op computes `rows` outputs from `cols` inputs.
#[derive(Clone)]
pub struct Weight {
    name: String,
    element_type: ElementType,
    rows: usize,
    cols: usize,
    owner: SharedBytes,
    range: Range<usize>,
    scale: f32,
}

impl Weight {
    /// A matrix over `range` of `owner`.
    ///
    /// # Errors
    /// [`GraphError::Bytes`] if the range is not exactly `rows` rows of `cols` elements, or lies outside of the owner.
    pub fn new(
        name: impl Into<String>,
        element_type: ElementType,
        [rows, cols]: [usize; 2],
        owner: SharedBytes,
        range: Range<usize>,
    ) -> Result<Self, GraphError> {
        let name = name.into();
        let expected = element_type
            .row_bytes(cols)
            .and_then(|row| row.checked_mul(rows));
        let inside = range.start <= range.end && range.end <= (*owner).as_ref().len();
        if !inside || expected != Some(range.len()) {
            return Err(GraphError::Bytes {
                tensor: name,
                found: if inside { range.len() } else { 0 },
                expected: expected.unwrap_or(0),
                rows,
                cols,
            });
        }
        Ok(Self {
            name,
            element_type,
            rows,
            cols,
            owner,
            range,
            scale: 1.0,
        })
    }

    /// Rows `rows` of this matrix under a new name; the bytes stay where they are.
    ///
    /// # Errors
    /// [`GraphError::Attribute`] if the rows are not all there.
    pub fn row_slice(
        &self,
        name: impl Into<String>,
        rows: Range<usize>,
    ) -> Result<Self, GraphError> {
        if rows.start > rows.end || rows.end > self.rows {
            return Err(GraphError::Attribute {
                op: "row slice",
                reason: format!(
                    "rows {rows:?} of tensor `{}`, which has {}",
                    self.name, self.rows
                ),
            });
        }
        let row = self.row_bytes();
        Ok(Self {
            name: name.into(),
            rows: rows.len(),
            range: self.range.start + rows.start * row..self.range.start + rows.end * row,
            ..self.clone()
        })
    }

    /// The same matrix with a factor on every product, as some files keep beside a tensor.
    #[must_use]
    pub fn with_scale(self, scale: f32) -> Self {
        Self { scale, ..self }
    }

    /// Factor on every product, 1 for most files.
    pub fn scale(&self) -> f32 {
        self.scale
    }
    /// Name in the model file.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Element type.
    pub fn element_type(&self) -> ElementType {
        self.element_type
    }
    /// Outputs.
    pub fn rows(&self) -> usize {
        self.rows
    }
    /// Inputs.
    pub fn cols(&self) -> usize {
        self.cols
    }
    /// Bytes of one row.
    pub fn row_bytes(&self) -> usize {
        self.range.len().checked_div(self.rows).unwrap_or(0)
    }
    /// All rows.
    pub fn bytes(&self) -> &[u8] {
        (*self.owner)
            .as_ref()
            .get(self.range.clone())
            .unwrap_or_default()
    }
}

impl std::fmt::Debug for Weight {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} {} [{}, {}]",
            self.name,
            self.element_type.name(),
            self.rows,
            self.cols
        )
    }
}

/// A vector of `f32`: the weight of a norm, a bias, frequency factors.
#[derive(Clone, Debug)]
pub struct Vector {
    /// Name in the model file.
    pub name: String,
    /// The elements.
    pub data: Arc<[f32]>,
}

impl Vector {
    /// A vector with its name.
    pub fn new(name: impl Into<String>, data: impl Into<Arc<[f32]>>) -> Self {
        Self {
            name: name.into(),
            data: data.into(),
        }
    }
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.data.len()
    }
    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }
}
