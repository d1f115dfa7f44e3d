//! Activations in the forms that dot products take: plain f32, or 8-bit integers in blocks of 32.

use std::fmt;

use crate::QuantError;

/// The form of activations that a type's dot product takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ActivationKind {
    /// Plain f32, not quantized: for the dense types.
    F32,
    /// 8-bit in blocks of 32, see [`Q8Row`]: for all quantized types.
    Q8,
}

impl fmt::Display for ActivationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::F32 => "f32",
            Self::Q8 => "8-bit blocks",
        })
    }
}

/// Activations quantized in blocks of 32: value `c` is about `quants[c] * scales[c / 32]`. Super-blocks of weights are no reason for larger
/// ones: where one value in 256 is large, as it is behind gated activations, the others would keep only few of their bits.
#[derive(Debug, Clone, Copy)]
pub struct Q8Row<'a> {
    /// `[n]`, each in -127..=127.
    pub quants: &'a [i8],
    /// `[n / 32]`; NaN for a block that held a value of no use: an infinity, a NaN, or one of 2^100 or more.
    pub scales: &'a [f32],
    /// `[n / 32]`, scale times sum of the quants, rounded once: what minima of weights are multiplied with.
    pub sums: &'a [f32],
    /// `[n / 32]`, what dot products begin with when 128 was added to every weight to make it unsigned: -128 times the sum of the quants.
    pub offsets: &'a [i32],
    /// `[n / 16]`, the same of each half of a block.
    pub halves: &'a [i32],
}

impl Q8Row<'_> {
    /// Panics unless all parts are those of `n` values.
    pub fn check(&self, n: usize) {
        assert!(n.is_multiple_of(32), "whole blocks");
        assert_eq!(self.quants.len(), n, "quants");
        assert_eq!(self.scales.len(), n / 32, "scales");
        assert_eq!(self.sums.len(), n / 32, "sums");
        assert_eq!(self.offsets.len(), n / 32, "offsets");
        assert_eq!(self.halves.len(), n / 16, "halves");
    }
}

/// A [`Q8Row`] to be written.
#[derive(Debug)]
pub struct Q8RowMut<'a> {
    /// See [`Q8Row::quants`].
    pub quants: &'a mut [i8],
    /// See [`Q8Row::scales`].
    pub scales: &'a mut [f32],
    /// See [`Q8Row::sums`].
    pub sums: &'a mut [f32],
    /// See [`Q8Row::offsets`].
    pub offsets: &'a mut [i32],
    /// See [`Q8Row::halves`].
    pub halves: &'a mut [i32],
}

impl Q8RowMut<'_> {
    /// To be read.
    pub fn as_row(&self) -> Q8Row<'_> {
        Q8Row {
            quants: self.quants,
            scales: self.scales,
            sums: self.sums,
            offsets: self.offsets,
            halves: self.halves,
        }
    }
}

/// One row of activations, as [`Codec::dot`](crate::Codec::dot) takes it.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum ActivationRow<'a> {
    /// `[cols]`, plain.
    F32(&'a [f32]),
    /// Blocks of 32.
    Q8(Q8Row<'a>),
}

impl ActivationRow<'_> {
    /// Which form this is.
    pub const fn kind(&self) -> ActivationKind {
        match self {
            Self::F32(_) => ActivationKind::F32,
            Self::Q8(_) => ActivationKind::Q8,
        }
    }
}

/// Adding this to an f32 of magnitude up to 2^22 rounds it to an integer, ties to even, and leaves that integer in the low
/// bits: unlike `round_ties_even` it is one instruction on every CPU and vectorizes.
const ROUND: f32 = 12_582_912.0; // 1.5 * 2^23

/// Blocks whose greatest magnitude is below this become zeros. Products with the f16 scales of weights then never are subnormal, so that a
/// kernel may move a power of two from a scale to the integers, as it does where it shifts weights up, without a change of bits.
pub const SMALLEST_BLOCK: f32 = 1.0 / (1u64 << 60) as f32;
/// Blocks whose greatest magnitude is this or more count as not finite, for the same reason at the other end: 2^100.
pub const LARGEST_BLOCK: f32 = (1u128 << 100) as f32;

/// Quantizes one block and returns its scale.
///
/// With `amax` the greatest magnitude: scale `amax / 127`, quants `round_ties_even(x * (127 / amax))`. A block with a NaN or with a value
/// of [`LARGEST_BLOCK`] or more gets scale NaN (so that the error shows in every result it enters), one below [`SMALLEST_BLOCK`]
/// gets 0; both with all quants 0.
#[inline(always)]
fn quantize_block(x: &[f32; 32], quants: &mut [i8; 32]) -> f32 {
    // The bits of magnitudes order as integers, with infinity and NaN on top; an integer maximum vectorizes.
    let top = x
        .iter()
        .fold(0, |top, v| i32::max(top, v.abs().to_bits() as i32));
    if top >= LARGEST_BLOCK.to_bits() as i32 {
        *quants = [0; 32];
        return f32::NAN;
    }
    let amax = f32::from_bits(top as u32);
    if amax < SMALLEST_BLOCK {
        *quants = [0; 32];
        return 0.0;
    }
    let inverse = 127.0 / amax;
    for (q, v) in quants.iter_mut().zip(x) {
        // At most 127 and two roundings, so never above 127.5: the low byte is the integer.
        *q = (v * inverse + ROUND).to_bits() as i8;
    }
    amax / 127.0
}

/// Quantizes `x` in blocks of 32; see [`Q8Row`] for the outputs and their lengths, which must fit exactly.
#[inline(always)]
pub fn quantize_q8(x: &[f32], to: &mut Q8RowMut<'_>) -> Result<(), QuantError> {
    let n = x.len() / 32;
    for (what, found, expected) in [
        ("input", x.len(), n * 32),
        ("quants", to.quants.len(), n * 32),
        ("scales", to.scales.len(), n),
        ("sums", to.sums.len(), n),
        ("offsets", to.offsets.len(), n),
        ("halves", to.halves.len(), n * 2),
    ] {
        if found != expected {
            return Err(QuantError::ActivationLength {
                what,
                found,
                expected,
            });
        }
    }
    let blocks = x.as_chunks::<32>().0.iter();
    let blocks = blocks.zip(to.quants.as_chunks_mut::<32>().0);
    let scales = to.scales.iter_mut().zip(to.sums.iter_mut());
    let halves = to.halves.as_chunks_mut::<2>().0;
    let offsets = to.offsets.iter_mut().zip(halves);
    for ((x, q), ((scale, sum), (offset, halves))) in blocks.zip(scales.zip(offsets)) {
        *scale = quantize_block(x, q);
        let [low, high] =
            [&q[..16], &q[16..]].map(|q| q.iter().map(|&q| i32::from(q)).sum::<i32>());
        let total = low + high;
        *sum = *scale * (total as f32);
        *offset = -128 * total;
        *halves = [-128 * low, -128 * high];
    }
    Ok(())
}

/// A row of activations in memory of its own, in the form that a type wants. For places where one row is enough; a
/// backend keeps whole batches in its own arena and uses the function above.
#[derive(Debug, Clone)]
pub struct ActivationBuffer {
    kind: ActivationKind,
    plain: Vec<f32>,
    quants: Vec<i8>,
    scales: Vec<f32>,
    sums: Vec<f32>,
    offsets: Vec<i32>,
    halves: Vec<i32>,
}

impl ActivationBuffer {
    /// Copies or quantizes `x`; its length must be a multiple of 32 for the latter.
    pub fn new(kind: ActivationKind, x: &[f32]) -> Result<Self, QuantError> {
        let n = match kind {
            ActivationKind::F32 => 0,
            ActivationKind::Q8 => x.len(),
        };
        let mut this = Self {
            kind,
            plain: Vec::new(),
            quants: vec![0; n],
            scales: vec![0.0; n / 32],
            sums: vec![0.0; n / 32],
            offsets: vec![0; n / 32],
            halves: vec![0; n / 16],
        };
        match kind {
            ActivationKind::F32 => this.plain = x.to_vec(),
            ActivationKind::Q8 => {
                let mut to = Q8RowMut {
                    quants: &mut this.quants,
                    scales: &mut this.scales,
                    sums: &mut this.sums,
                    offsets: &mut this.offsets,
                    halves: &mut this.halves,
                };
                quantize_q8(x, &mut to)?;
            }
        }
        Ok(this)
    }

    /// The row, for a dot product.
    pub fn row(&self) -> ActivationRow<'_> {
        match self.kind {
            ActivationKind::F32 => ActivationRow::F32(&self.plain),
            ActivationKind::Q8 => ActivationRow::Q8(Q8Row {
                quants: &self.quants,
                scales: &self.scales,
                sums: &self.sums,
                offsets: &self.offsets,
                halves: &self.halves,
            }),
        }
    }
}
