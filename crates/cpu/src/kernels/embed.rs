//! Rows of an embedding table as `f32`.

use puna_quant::{Codec, ElementType, QuantError};

/// Why a row cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EmbedError {
    /// The table has fewer rows, or its bytes are no whole number of rows.
    #[error("embedding row {row} is asked of a table of {bytes} bytes with {row_bytes} a row")]
    NoSuchRow {
        /// The row that was asked for.
        row: usize,
        /// Bytes of the table.
        bytes: usize,
        /// Bytes of one row.
        row_bytes: usize,
    },
    /// The element type does not allow rows of this length, or none at all.
    #[error("an embedding table of {element_type} cannot have rows of {cols} values")]
    RowLength {
        /// Type of the table.
        element_type: ElementType,
        /// Values of a row.
        cols: usize,
    },
    /// The row could not be decoded.
    #[error(transparent)]
    Quant(#[from] QuantError),
}

/// A table `[rows, cols]` in its file's layout.
#[derive(Clone, Copy)]
pub struct Embedding<'a> {
    table: &'a [u8],
    row_bytes: usize,
    codec: &'static dyn Codec,
}

impl std::fmt::Debug for Embedding<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Embedding")
            .field("element_type", &self.codec.element_type())
            .field("rows", &self.rows())
            .field("row_bytes", &self.row_bytes)
            .finish()
    }
}

impl<'a> Embedding<'a> {
    /// A table of rows of `cols` values.
    ///
    /// # Errors
    /// The type is not supported, or has no rows of this length.
    pub fn new(
        element_type: ElementType,
        cols: usize,
        table: &'a [u8],
    ) -> Result<Self, EmbedError> {
        let codec = element_type
            .codec()
            .ok_or(QuantError::NotSupported(element_type))?;
        let row_bytes = element_type.row_bytes(cols).filter(|&n| n > 0);
        let row_bytes = row_bytes.ok_or(EmbedError::RowLength { element_type, cols })?;
        Ok(Self {
            table,
            row_bytes,
            codec,
        })
    }

    /// Whole rows in the table.
    pub fn rows(&self) -> usize {
        self.table.len() / self.row_bytes
    }

    /// Writes a row, times `scale` if there is one (one rounding), to `out`: `[cols]`.
    ///
    /// # Errors
    /// There is no such row, or `out` has another length.
    pub fn row(&self, row: usize, scale: Option<f32>, out: &mut [f32]) -> Result<(), EmbedError> {
        let bytes = row
            .checked_mul(self.row_bytes)
            .and_then(|start| self.table.get(start..)?.get(..self.row_bytes))
            .ok_or(EmbedError::NoSuchRow {
                row,
                bytes: self.table.len(),
                row_bytes: self.row_bytes,
            })?;
        self.codec.dequantize(bytes, out)?;
        if let Some(scale) = scale {
            for x in out {
                *x *= scale;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_decoded_and_scaled() {
        let values: Vec<f32> = (0..96).map(|i| i as f32 - 40.0).collect();
        for element_type in [ElementType::F32, ElementType::F16, ElementType::Q8_0] {
            let mut table = vec![0; element_type.row_bytes(96).unwrap()];
            puna_quant::quantize(element_type, &values, &mut table).unwrap();
            let embedding = Embedding::new(element_type, 32, &table).unwrap();
            assert_eq!(embedding.rows(), 3);
            let mut all = vec![0.0; 96];
            puna_quant::dequantize(element_type, &table, &mut all).unwrap();
            for (row, want) in all.chunks(32).enumerate() {
                let mut out = [0.0; 32];
                embedding.row(row, None, &mut out).unwrap();
                assert_eq!(out, want);
                embedding.row(row, Some(0.3), &mut out).unwrap();
                assert!(out.iter().zip(want).all(|(out, want)| *out == want * 0.3));
            }
        }
    }

    #[test]
    fn what_does_not_exist_is_an_error() {
        let table = [0u8; 34 * 2 + 5];
        let embedding = Embedding::new(ElementType::Q8_0, 32, &table).unwrap();
        let mut out = [0.0; 32];
        assert!(embedding.row(1, None, &mut out).is_ok());
        for row in [2, 3, usize::MAX / 34 + 1, usize::MAX] {
            let error = embedding.row(row, None, &mut out).unwrap_err();
            assert!(matches!(error, EmbedError::NoSuchRow { .. }), "{error}");
        }
        assert!(matches!(
            embedding.row(0, None, &mut out[1..]),
            Err(EmbedError::Quant(_))
        ));
        for cols in [0, 31, usize::MAX] {
            assert!(matches!(
                Embedding::new(ElementType::Q8_0, cols, &table),
                Err(EmbedError::RowLength { .. })
            ));
        }
        assert!(matches!(
            Embedding::new(ElementType::IQ1_S, 256, &table),
            Err(EmbedError::Quant(QuantError::NotSupported(_)))
        ));
    }
}
