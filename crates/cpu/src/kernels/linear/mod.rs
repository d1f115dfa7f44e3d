//! Weights times activations: panels of sixteen rows.

/// Rows of a full panel: the lanes of a vector.
pub const PANEL_ROWS: usize = 16;

/// Sixteen consecutive rows (fewer at the end) of a weight matrix in the file's layout.
#[derive(Clone, Copy, Debug)]
pub struct Panel<'a> {
    /// From the panel's first row to the end of the matrix: what follows the panel is only prefetched.
    pub bytes: &'a [u8],
    /// Bytes of one row.
    pub row_bytes: usize,
    /// Rows that exist: 1 to 16.
    pub rows: usize,
    /// Weights of one row; a multiple of the type's block length.
    pub cols: usize,
}

/// Activations of `tokens` rows, token-major, as the weight type wants them.
#[derive(Clone, Copy, Debug)]
pub enum Activations<'a> {
    /// Plain `f32`.
    F32 {
        /// `[tokens, cols]`
        x: &'a [f32],
        /// Rows.
        tokens: usize,
        /// Values of one row.
        cols: usize,
    },
    /// Eight-bit integers with a scale for every 32 values.
    Q8Block32 {
        /// `[tokens, cols]`
        quants: &'a [i8],
        /// `[tokens, cols / 32]`
        scales: &'a [f32],
        /// Sum of the quants of each block: `[tokens, cols / 32]`
        sums: &'a [i32],
        /// Scale times sum of each block: `[tokens, cols / 32]`
        scaled_sums: &'a [f32],
        /// Rows.
        tokens: usize,
        /// Values of one row.
        cols: usize,
    },
    /// Eight-bit integers with a scale for every 256 values.
    Q8Block256 {
        /// `[tokens, cols]`
        quants: &'a [i8],
        /// `[tokens, cols / 256]`
        scales: &'a [f32],
        /// Sum of each 16 quants: `[tokens, cols / 16]`
        sums16: &'a [i16],
        /// Sum of each 32 quants: `[tokens, cols / 32]`
        sums32: &'a [i16],
        /// Rows.
        tokens: usize,
        /// Values of one row.
        cols: usize,
    },
}

/// Multiplies a panel with every row of the activations.
///
/// `out` is `[tokens, 16]`; lanes beyond `panel.rows` are written with unspecified values. No byte outside `panel.bytes` is read.
///
/// # Safety
/// The CPU has the features of the kernel's [`Set`](super::Set). Shapes are checked by the kernel itself, which panics when they do not
/// fit together.
pub type PanelFn = unsafe fn(panel: &Panel<'_>, x: &Activations<'_>, out: &mut [f32]);
