//! Weights times activations: panels of sixteen rows.
//!
//! The sixteen rows are the lanes. A type's file in `types` says how its blocks become bytes and scales, `block32` and `block256` how blocks of
//! its length are gone through, `dots` what 32 columns add to sums; `panel` is the frame around them, in two forms with the same results:
//! *direct* (a block is turned in registers and used at once for a few tokens) and *tiled* (256 columns are turned once into a tile that many
//! tokens are streamed over); `isa` is what they need of an instruction set.

#![allow(
    clippy::inline_always,
    reason = "only what is inlined into a function with the CPU's features may use them"
)]
#![allow(
    clippy::wildcard_imports,
    reason = "intrinsics are many, and their names are their own"
)]

use super::Set;
use puna_quant::{ElementType, Q8Row, types as spec};

mod scalar;

#[cfg(target_arch = "x86_64")]
mod ahead;
#[cfg(target_arch = "x86_64")]
mod block256;
#[cfg(target_arch = "x86_64")]
mod block32;
#[cfg(target_arch = "x86_64")]
mod dots;
#[cfg(target_arch = "x86_64")]
mod entry;
#[cfg(target_arch = "x86_64")]
mod frame;
#[cfg(target_arch = "x86_64")]
mod isa;
#[cfg(target_arch = "x86_64")]
mod isa_avx2;
#[cfg(target_arch = "x86_64")]
mod isa_avx512;
#[cfg(target_arch = "x86_64")]
mod panel;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod types;

#[cfg(target_arch = "x86_64")]
use {block32::Of32, block256::Of256};

/// Rows of a full panel: the lanes of a vector.
pub const PANEL_ROWS: usize = 16;
/// Most rows of a call: two panels, which share each broadcast of activations.
pub const MOST_ROWS: usize = 2 * PANEL_ROWS;

/// Up to 32 consecutive rows of a weight matrix in the file's layout.
#[derive(Clone, Copy, Debug)]
pub struct Panel<'a> {
    /// From the panel's first row to the end of the matrix: what follows the panel is only prefetched.
    pub bytes: &'a [u8],
    /// Bytes of one row.
    pub row_bytes: usize,
    /// Rows that exist: 1 to 32.
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
    /// Eight-bit integers in blocks.
    Q8 {
        /// The parts of all rows, one row after another.
        parts: Q8Row<'a>,
        /// Rows.
        tokens: usize,
        /// Values of one row.
        cols: usize,
    },
}

/// Multiplies a panel with every row of the activations.
///
/// `out` is `[panels, tokens, 16]`, rows 16 to 31 being the second panel; lanes beyond `panel.rows` hold unspecified values. No byte
/// outside of `panel.bytes` is read.
///
/// # Safety
/// The CPU has the features of the kernel's [`Set`]. Shapes are checked by the kernel itself, which panics when they do not
/// fit together.
pub type PanelFn = unsafe fn(panel: &Panel<'_>, x: &Activations<'_>, out: &mut [f32]);

impl<'a> Panel<'a> {
    /// The first sixteen rows, then the others.
    #[inline(always)]
    pub(super) fn halves(&self) -> [Option<Panel<'a>>; 2] {
        let first = Panel {
            rows: self.rows.min(PANEL_ROWS),
            ..*self
        };
        let second = (self.rows > PANEL_ROWS).then(|| Panel {
            bytes: &self.bytes[PANEL_ROWS * self.row_bytes..],
            rows: self.rows - PANEL_ROWS,
            ..*self
        });
        [Some(first), second]
    }

    /// Panics if the shape is not that of rows of `cols` weights.
    fn check(&self, cols: usize, block_len: usize, block_bytes: usize) {
        assert!(
            (1..=MOST_ROWS).contains(&self.rows),
            "a panel has 1 to 32 rows"
        );
        assert_eq!(self.cols, cols, "columns of weights and activations");
        assert!(
            cols.is_multiple_of(block_len),
            "columns are not whole blocks"
        );
        assert_eq!(
            self.row_bytes,
            cols / block_len * block_bytes,
            "bytes of a row"
        );
        assert!(
            self.bytes.len() / self.rows >= self.row_bytes,
            "the panel's rows go beyond the matrix"
        );
    }
}

/// The kernel of one type in one set.
macro_rules! kernel {
    ($set:ident, $spec:ident, $family:ident, $weights:ident) => {
        match $set {
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => entry::avx512::<$family<types::$weights>>,
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => entry::avx2::<$family<types::$weights>>,
            _ => kernel!($set, $spec),
        }
    };
    ($set:ident, $spec:ident) => {
        match $set {
            #[cfg(target_arch = "x86_64")]
            Set::PortableFma | Set::Avx2 | Set::Avx512 => scalar::portable_fma::<spec::$spec>,
            _ => scalar::portable::<spec::$spec>,
        }
    };
}

/// The panel kernel of a quantized type; nothing for other types.
pub fn panel_fn(set: Set, ty: ElementType) -> Option<PanelFn> {
    use ElementType as T;
    Some(match ty {
        T::Q4_0 => kernel!(set, Q4_0, Of32, Q4_0),
        T::Q4_1 => kernel!(set, Q4_1, Of32, Q4_1),
        T::Q5_0 => kernel!(set, Q5_0, Of32, Q5_0),
        T::Q5_1 => kernel!(set, Q5_1, Of32, Q5_1),
        T::Q8_0 => kernel!(set, Q8_0, Of32, Q8_0),
        T::IQ4_NL => kernel!(set, IQ4_NL, Of32, Iq4Nl),
        T::MXFP4 => kernel!(set, MXFP4, Of32, Mxfp4),
        T::Q2_K => kernel!(set, Q2_K, Of256, Q2K),
        T::Q3_K => kernel!(set, Q3_K, Of256, Q3K),
        T::Q4_K => kernel!(set, Q4_K, Of256, Q4K),
        T::Q5_K => kernel!(set, Q5_K, Of256, Q5K),
        T::Q6_K => kernel!(set, Q6_K, Of256, Q6K),
        T::IQ4_XS => kernel!(set, IQ4_XS, Of256, Iq4Xs),
        // Meant for activations; as weights they need not be fast.
        T::Q8_1 => kernel!(set, Q8_1),
        T::Q8_K => kernel!(set, Q8_K),
        _ => return None,
    })
}
