//! Panels of plain numbers: F32, F16, BF16, and the rarely used F64 and integers.
//!
//! A product is sixteen sums, of which number `c % 16` takes column `c`, added by the fixed tree ([`puna_quant`] has the definition). A vector holds
//! the sixteen sums of one row and token; they stay in registers over all columns for few tokens (`few`), and between pieces of 256 columns in the
//! first- or second-level cache for many (`many`).

#![allow(
    clippy::inline_always,
    reason = "a kernel must end up inside the function that enables the instruction set"
)]
#![allow(
    clippy::needless_range_loop,
    reason = "blocks of registers are clearest by row and column"
)]

mod few;
mod many;

use super::Set;
use super::kv::tile::{Bf16, Element, F16};
use super::linear::{Activations, PANEL_ROWS, Panel, PanelFn};
use super::simd::{LANES, Simd, portable::Portable, simd_entries};
use puna_quant::{ActivationRow, ElementType};

/// Tokens to be taken together over many panels: of larger numbers the activations do not stay in the second-level cache from panel to panel. No
/// kernel needs it, and it has no effect on results.
pub const TOKENS: usize = 128;

/// The panel kernel of a set for a type of plain numbers; `None` for quantized types.
pub fn panel_fn(set: Set, ty: ElementType) -> Option<PanelFn> {
    macro_rules! of {
        ($ty:ident) => {{
            macro_rules! entry {
                ($entry:ident) => {{
                    /// See [`PanelFn`].
                    unsafe fn panel(panel: &Panel<'_>, x: &Activations<'_>, out: &mut [f32]) {
                        // SAFETY: the caller's.
                        unsafe { entries::$entry(ElementType::$ty, panel, x, out) };
                    }
                    panel as PanelFn
                }};
            }
            match set {
                #[cfg(target_arch = "x86_64")]
                Set::PortableFma => entry!(portable_fma),
                #[cfg(target_arch = "x86_64")]
                Set::Avx2 => entry!(avx2),
                #[cfg(target_arch = "x86_64")]
                Set::Avx512 => entry!(avx512),
                _ => entry!(portable),
            }
        }};
    }
    Some(match ty {
        ElementType::F32 => of!(F32),
        ElementType::F16 => of!(F16),
        ElementType::BF16 => of!(BF16),
        ElementType::F64 => by_codec::<{ ElementType::F64.id() }>,
        ElementType::I8 => by_codec::<{ ElementType::I8.id() }>,
        ElementType::I16 => by_codec::<{ ElementType::I16.id() }>,
        ElementType::I32 => by_codec::<{ ElementType::I32.id() }>,
        ElementType::I64 => by_codec::<{ ElementType::I64.id() }>,
        _ => return None,
    })
}

simd_entries! {
    mod entries = multiply(ty: ElementType, panel: &Panel<'_>, x: &Activations<'_>, out: &mut [f32]);
}

/// How many sums the registers of a set hold. Has no effect on results.
trait Blocks: Simd {
    /// Rows beside so many tokens (1 to 6) when weights are used where they lie: 1, 2, 4 or 8.
    fn rows(tokens: usize) -> usize;
    /// Rows and tokens when weights are widened first.
    const TILE_ROWS: usize;
    /// Tokens, at most [`MOST`].
    const TILE_TOKENS: usize;
}

/// Most tokens of a block of registers.
const MOST: usize = 6;

/// No registers are known: small blocks.
impl Blocks for Portable {
    const TILE_ROWS: usize = 2;
    const TILE_TOKENS: usize = 1;
    #[inline(always)]
    fn rows(tokens: usize) -> usize {
        if tokens == 1 { 2 } else { 1 }
    }
}

/// Sixteen registers, two per vector.
#[cfg(target_arch = "x86_64")]
impl Blocks for super::simd::avx2::Avx2 {
    const TILE_ROWS: usize = 1;
    const TILE_TOKENS: usize = 6;
    #[inline(always)]
    fn rows(tokens: usize) -> usize {
        match tokens {
            1 => 4,
            2 | 3 => 2,
            _ => 1,
        }
    }
}

/// Thirty-two registers.
#[cfg(target_arch = "x86_64")]
impl Blocks for super::simd::avx512::Avx512 {
    const TILE_ROWS: usize = 4;
    const TILE_TOKENS: usize = 6;
    #[inline(always)]
    fn rows(tokens: usize) -> usize {
        if tokens <= 2 { 8 } else { 4 }
    }
}

/// The rows of a panel, checked.
#[derive(Clone, Copy)]
struct Weights<E> {
    /// First row; `rows * cols` elements.
    at: *const E,
    rows: usize,
    cols: usize,
}

impl<E> Weights<E> {
    fn new(panel: &Panel<'_>) -> Self {
        Self {
            at: panel.bytes.as_ptr().cast(),
            rows: panel.rows,
            cols: panel.cols,
        }
    }
}

/// The rows of activations, or a panic if the arguments do not fit together.
fn check<'a>(panel: &Panel<'_>, x: &Activations<'a>, out: &[f32]) -> (&'a [f32], usize) {
    let Activations::F32 { x, tokens, cols } = *x else {
        panic!("plain weights take f32 activations");
    };
    assert!(
        (1..=PANEL_ROWS).contains(&panel.rows) && panel.bytes.len() / panel.rows >= panel.row_bytes,
        "the panel's rows are in its bytes"
    );
    assert!(
        cols == panel.cols && x.len() == tokens * cols,
        "activations are [tokens, cols]"
    );
    assert!(out.len() >= tokens * PANEL_ROWS, "output is [tokens, 16]");
    (x, tokens)
}

/// See [`PanelFn`]. One kernel for three types, since most of it is the same.
#[inline(always)]
fn multiply<S: Blocks>(
    s: S,
    ty: ElementType,
    panel: &Panel<'_>,
    x: &Activations<'_>,
    out: &mut [f32],
) {
    let (x, tokens) = check(panel, x, out);
    assert!(
        panel.row_bytes == panel.cols * ty.block_bytes(),
        "rows are without padding"
    );
    if panel.bytes.as_ptr().align_offset(ty.block_bytes()) != 0 {
        // A file may say that its alignment is one byte.
        return multiply_by_codec(ty, panel, x, out);
    }
    if tokens > MOST || panel.rows < PANEL_ROWS {
        return many::multiply(s, ty, panel, x, tokens, out);
    }
    match ty {
        ElementType::F16 => few::multiply(s, Weights::<F16>::new(panel), x, tokens, out),
        ElementType::BF16 => few::multiply(s, Weights::<Bf16>::new(panel), x, tokens, out),
        _ => few::multiply(s, Weights::<f32>::new(panel), x, tokens, out),
    }
}

/// A panel by the type's own dot product.
fn multiply_by_codec(ty: ElementType, panel: &Panel<'_>, x: &[f32], out: &mut [f32]) {
    let codec = ty.codec().expect("plain types have one");
    for (x, out) in x
        .chunks_exact(panel.cols.max(1))
        .zip(out.chunks_exact_mut(PANEL_ROWS))
    {
        for (row, out) in panel
            .bytes
            .chunks_exact(panel.row_bytes)
            .zip(&mut out[..panel.rows])
        {
            *out = codec
                .dot(row, ActivationRow::F32(x))
                .expect("the row's length was checked");
        }
    }
}

/// The panel kernel of the types that are not worth their own.
unsafe fn by_codec<const ID: u32>(panel: &Panel<'_>, x: &Activations<'_>, out: &mut [f32]) {
    let ty = ElementType::from_id(ID).expect("an id of the table");
    let (x, _) = check(panel, x, out);
    assert!(
        Some(panel.row_bytes) == ty.row_bytes(panel.cols),
        "rows are without padding"
    );
    multiply_by_codec(ty, panel, x, out);
}

/// Lanes `0, 1, ... 15`.
#[inline(always)]
fn iota<S: Simd>(s: S) -> S::F {
    let mut lanes = [0.0; LANES];
    for (i, l) in lanes.iter_mut().enumerate() {
        *l = i as f32;
    }
    s.load(&lanes)
}

/// The last, incomplete vector of a row; lanes beyond are zero.
///
/// # Safety
/// `rest` elements lie at `at`.
#[inline(always)]
unsafe fn load_rest<S: Simd, E: Element>(s: S, at: *const E, rest: usize) -> S::F {
    // SAFETY: elements are plain numbers, for which zero bytes are a value; the rest is the caller's.
    unsafe {
        let mut last: [E; LANES] = std::mem::zeroed();
        std::ptr::copy_nonoverlapping(at, last.as_mut_ptr(), rest);
        E::load(s, &last)
    }
}

#[cfg(test)]
mod tests;
