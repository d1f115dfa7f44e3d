//! Activations in the forms that dot products take: plain f32, or 8-bit integers in blocks of 32 or 256.

use std::fmt;

use crate::QuantError;

/// The form of activations that a type's dot product takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ActivationKind {
    /// Plain f32, not quantized: for the dense types.
    F32,
    /// 8-bit in blocks of 32: for the types with blocks of 32.
    Q8Block32,
    /// 8-bit in blocks of 256: for the types with super-blocks of 256.
    Q8Block256,
}

impl ActivationKind {
    /// Values per block: 1, 32 or 256.
    pub const fn block_len(self) -> usize {
        match self {
            Self::F32 => 1,
            Self::Q8Block32 => 32,
            Self::Q8Block256 => 256,
        }
    }

    /// Values per element of [`Q8Row::offsets`].
    pub const fn offset_len(self) -> usize {
        match self {
            Self::Q8Block256 => 16,
            _ => 32,
        }
    }
}

impl fmt::Display for ActivationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::F32 => "f32",
            Self::Q8Block32 => "8-bit blocks of 32",
            Self::Q8Block256 => "8-bit blocks of 256",
        })
    }
}

/// Activations quantized in blocks of `b` = 32 or 256 values: value `c` is about `quants[c] * scales[c / b]`. For `n` values:
#[derive(Debug, Clone, Copy)]
pub struct Q8Row<'a> {
    /// `[n]`, each in -127..=127.
    pub quants: &'a [i8],
    /// `[n / b]`; NaN for a block that held a value of no use: an infinity, a NaN, or one of 2^100 or more.
    pub scales: &'a [f32],
    /// What dot products begin with when 128 was added to every weight to make it unsigned: -128 times the sum of the quants, for
    /// each block of 32 `[n / 32]`, or for each 16 quants `[n / 16]` where blocks are of 256.
    pub offsets: &'a [i32],
    /// `[n / 32]`, what minima of weights are multiplied with: the sum of 32 quants, times their scale (rounded once) where blocks
    /// are of 32.
    pub sums: &'a [f32],
}

impl Q8Row<'_> {
    /// Panics unless all parts are those of `n` values.
    pub fn check(&self, kind: ActivationKind, n: usize) {
        assert_eq!(self.quants.len(), n, "quants");
        assert_eq!(self.scales.len(), n / kind.block_len(), "scales");
        assert_eq!(self.offsets.len(), n / kind.offset_len(), "offsets");
        assert_eq!(self.sums.len(), n / 32, "sums");
    }
}

/// A [`Q8Row`] to be written.
#[derive(Debug)]
pub struct Q8RowMut<'a> {
    /// See [`Q8Row::quants`].
    pub quants: &'a mut [i8],
    /// See [`Q8Row::scales`].
    pub scales: &'a mut [f32],
    /// See [`Q8Row::offsets`].
    pub offsets: &'a mut [i32],
    /// See [`Q8Row::sums`].
    pub sums: &'a mut [f32],
}

/// One row of activations, as [`Codec::dot`](crate::Codec::dot) takes it.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum ActivationRow<'a> {
    /// `[cols]`, plain.
    F32(&'a [f32]),
    /// Blocks of 32.
    Q8Block32(Q8Row<'a>),
    /// Blocks of 256.
    Q8Block256(Q8Row<'a>),
}

impl ActivationRow<'_> {
    /// Which form this is.
    pub const fn kind(&self) -> ActivationKind {
        match self {
            Self::F32(_) => ActivationKind::F32,
            Self::Q8Block32(_) => ActivationKind::Q8Block32,
            Self::Q8Block256(_) => ActivationKind::Q8Block256,
        }
    }
}

/// Adding this to an f32 of magnitude up to 2^22 rounds it to an integer, ties to even, and leaves that integer in the low
/// bits: unlike `round_ties_even` it is one instruction on every CPU and vectorizes.
const ROUND: f32 = 12_582_912.0; // 1.5 * 2^23

/// Blocks whose greatest magnitude is below this become zeros. Products of scales then never are subnormal, so that a power of two may be
/// moved from one factor to another without a change of bits.
pub const SMALLEST_BLOCK: f32 = 1.0 / (1u64 << 60) as f32;
/// Blocks whose greatest magnitude is this or more count as not finite, for the same reason at the other end: 2^100.
pub const LARGEST_BLOCK: f32 = (1u128 << 100) as f32;

/// Quantizes one block and returns its scale.
///
/// With `amax` the greatest magnitude: scale `amax / 127`, quants `round_ties_even(x * (127 / amax))`. A block with a NaN or with a value
/// of [`LARGEST_BLOCK`] or more gets scale NaN (so that the error shows in every result it enters), one below [`SMALLEST_BLOCK`]
/// gets 0; both with all quants 0.
#[inline(always)]
fn quantize_block<const N: usize>(x: &[f32; N], quants: &mut [i8; N]) -> f32 {
    // The bits of magnitudes order as integers, with infinity and NaN on top; an integer maximum vectorizes.
    let top = x
        .iter()
        .fold(0, |top, v| i32::max(top, v.abs().to_bits() as i32));
    if top >= LARGEST_BLOCK.to_bits() as i32 {
        *quants = [0; N];
        return f32::NAN;
    }
    let amax = f32::from_bits(top as u32);
    if amax < SMALLEST_BLOCK {
        *quants = [0; N];
        return 0.0;
    }
    let inverse = 127.0 / amax;
    for (q, v) in quants.iter_mut().zip(x) {
        // At most 127 and two roundings, so never above 127.5: the low byte is the integer.
        *q = (v * inverse + ROUND).to_bits() as i8;
    }
    amax / 127.0
}

/// The exact sum of up to 258 quants.
#[inline(always)]
fn sum_i16(quants: &[i8]) -> i16 {
    quants.iter().map(|&q| i16::from(q)).sum()
}

/// Quantizes `x` in blocks of 32 or 256; see [`Q8Row`] for the outputs and their lengths, which must fit exactly.
#[inline(always)]
pub fn quantize_q8(
    kind: ActivationKind,
    x: &[f32],
    to: &mut Q8RowMut<'_>,
) -> Result<(), QuantError> {
    let n = x.len() / kind.block_len();
    let expect = |what, found: usize, expected: usize| {
        if found == expected {
            return Ok(());
        }
        Err(QuantError::ActivationLength {
            kind,
            what,
            found,
            expected,
        })
    };
    expect("input", x.len(), n * kind.block_len())?;
    expect("quants", to.quants.len(), x.len())?;
    expect("scales", to.scales.len(), n)?;
    expect("offsets", to.offsets.len(), x.len() / kind.offset_len())?;
    expect("sums", to.sums.len(), x.len() / 32)?;
    match kind {
        ActivationKind::F32 => {}
        ActivationKind::Q8Block32 => quantize_block32(x, to),
        ActivationKind::Q8Block256 => quantize_block256(x, to),
    }
    Ok(())
}

#[inline(always)]
fn quantize_block32(x: &[f32], to: &mut Q8RowMut<'_>) {
    let blocks = x.as_chunks::<32>().0.iter();
    let blocks = blocks.zip(to.quants.as_chunks_mut::<32>().0);
    let others = to
        .scales
        .iter_mut()
        .zip(to.offsets.iter_mut().zip(to.sums.iter_mut()));
    for ((x, q), (scale, (offset, sum))) in blocks.zip(others) {
        *scale = quantize_block(x, q);
        let total = i32::from(sum_i16(q));
        *offset = -128 * total;
        *sum = *scale * (total as f32);
    }
}

#[inline(always)]
fn quantize_block256(x: &[f32], to: &mut Q8RowMut<'_>) {
    let blocks = x.as_chunks::<256>().0.iter();
    let blocks = blocks.zip(to.quants.as_chunks_mut::<256>().0);
    for ((x, q), scale) in blocks.zip(to.scales.iter_mut()) {
        *scale = quantize_block(x, q);
    }
    let offsets = to.offsets.as_chunks_mut::<2>().0.iter_mut();
    let halves = to.quants.as_chunks::<32>().0.iter();
    for ((sum, offsets), q) in to.sums.iter_mut().zip(offsets).zip(halves) {
        let [low, high] = [&q[..16], &q[16..]].map(|q| i32::from(sum_i16(q)));
        *offsets = [-128 * low, -128 * high];
        *sum = (low + high) as f32;
    }
}

/// A row of activations in memory of its own, in the form that a type wants. For places where one row is enough; a
/// backend keeps whole batches in its own arena and uses the functions above.
#[derive(Debug, Clone)]
pub struct ActivationBuffer {
    kind: ActivationKind,
    plain: Vec<f32>,
    quants: Vec<i8>,
    scales: Vec<f32>,
    offsets: Vec<i32>,
    sums: Vec<f32>,
}

impl ActivationBuffer {
    /// Copies or quantizes `x`; its length must be a multiple of the kind's block length.
    pub fn new(kind: ActivationKind, x: &[f32]) -> Result<Self, QuantError> {
        let mut this = Self {
            kind,
            plain: Vec::new(),
            quants: Vec::new(),
            scales: Vec::new(),
            offsets: Vec::new(),
            sums: Vec::new(),
        };
        if kind == ActivationKind::F32 {
            this.plain = x.to_vec();
            return Ok(this);
        }
        this.quants = vec![0; x.len()];
        this.scales = vec![0.0; x.len() / kind.block_len()];
        this.offsets = vec![0; x.len() / kind.offset_len()];
        this.sums = vec![0.0; x.len() / 32];
        let mut to = Q8RowMut {
            quants: &mut this.quants,
            scales: &mut this.scales,
            offsets: &mut this.offsets,
            sums: &mut this.sums,
        };
        quantize_q8(kind, x, &mut to)?;
        Ok(this)
    }

    /// The row, for a dot product.
    pub fn row(&self) -> ActivationRow<'_> {
        let row = Q8Row {
            quants: &self.quants,
            scales: &self.scales,
            offsets: &self.offsets,
            sums: &self.sums,
        };
        match self.kind {
            ActivationKind::F32 => ActivationRow::F32(&self.plain),
            ActivationKind::Q8Block32 => ActivationRow::Q8Block32(row),
            ActivationKind::Q8Block256 => ActivationRow::Q8Block256(row),
        }
    }
}
