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

/// Activations quantized in blocks of 32. For `n` blocks: value `c` is about `quants[c] * scales[c / 32]`.
#[derive(Debug, Clone, Copy)]
pub struct Q8Block32Row<'a> {
    /// `[32 n]`, each in -127..=127.
    pub quants: &'a [i8],
    /// `[n]`; NaN for a block that held an infinity or a NaN.
    pub scales: &'a [f32],
    /// `[n]`, sum of the block's quants.
    pub sums: &'a [i32],
    /// `[n]`, scale times sum, rounded once.
    pub scaled_sums: &'a [f32],
}

/// Activations quantized in blocks of 256. For `n` blocks: value `c` is about `quants[c] * scales[c / 256]`.
#[derive(Debug, Clone, Copy)]
pub struct Q8Block256Row<'a> {
    /// `[256 n]`, each in -127..=127.
    pub quants: &'a [i8],
    /// `[n]`; NaN for a block that held an infinity or a NaN.
    pub scales: &'a [f32],
    /// `[16 n]`, sums of 16 quants.
    pub sums16: &'a [i16],
    /// `[8 n]`, sums of 32 quants.
    pub sums32: &'a [i16],
}

/// One row of activations, as [`Codec::dot`](crate::Codec::dot) takes it.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum ActivationRow<'a> {
    /// `[cols]`, plain.
    F32(&'a [f32]),
    /// Blocks of 32.
    Q8Block32(Q8Block32Row<'a>),
    /// Blocks of 256.
    Q8Block256(Q8Block256Row<'a>),
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

/// Quantizes one block and returns its scale.
///
/// With `amax` the greatest magnitude: scale `amax / 127`, quants `round_ties_even(x * (127 / amax))`. A block with an infinity or a NaN
/// gets scale NaN (so that the error shows in every result it enters), a block so small that `127 / amax` overflows gets 0;
/// both with all quants 0.
#[inline(always)]
fn quantize_block<const N: usize>(x: &[f32; N], quants: &mut [i8; N]) -> f32 {
    // The bits of magnitudes order as integers, with infinity and NaN on top; an integer maximum vectorizes.
    let top = x
        .iter()
        .fold(0, |top, v| i32::max(top, v.abs().to_bits() as i32));
    if top >= f32::INFINITY.to_bits() as i32 {
        *quants = [0; N];
        return f32::NAN;
    }
    let amax = f32::from_bits(top as u32);
    let inverse = 127.0 / amax; // infinite for 0 also
    if inverse.is_infinite() {
        *quants = [0; N];
        return 0.0;
    }
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

/// Checks that an output of a quantizer has the length that the input asks for.
fn expect(
    kind: ActivationKind,
    what: &'static str,
    found: usize,
    expected: usize,
) -> Result<(), QuantError> {
    if found == expected {
        return Ok(());
    }
    Err(QuantError::ActivationLength {
        kind,
        what,
        found,
        expected,
    })
}

/// Quantizes `x` in blocks of 32; see [`Q8Block32Row`] for the outputs and their lengths, which must fit exactly.
#[inline(always)]
pub fn quantize_q8_block32(
    x: &[f32],
    quants: &mut [i8],
    scales: &mut [f32],
    sums: &mut [i32],
    scaled_sums: &mut [f32],
) -> Result<(), QuantError> {
    let kind = ActivationKind::Q8Block32;
    let n = x.len() / 32;
    expect(kind, "input", x.len(), n * 32)?;
    expect(kind, "quants", quants.len(), n * 32)?;
    expect(kind, "scales", scales.len(), n)?;
    expect(kind, "sums", sums.len(), n)?;
    expect(kind, "scaled sums", scaled_sums.len(), n)?;
    let blocks = x.as_chunks::<32>().0.iter();
    let blocks = blocks.zip(quants.as_chunks_mut::<32>().0);
    for (((x, q), scale), (sum, scaled_sum)) in blocks
        .zip(scales)
        .zip(sums.iter_mut().zip(scaled_sums.iter_mut()))
    {
        *scale = quantize_block(x, q);
        *sum = i32::from(sum_i16(q));
        *scaled_sum = *scale * (*sum as f32);
    }
    Ok(())
}

/// Quantizes `x` in blocks of 256; see [`Q8Block256Row`] for the outputs and their lengths, which must fit exactly.
#[inline(always)]
pub fn quantize_q8_block256(
    x: &[f32],
    quants: &mut [i8],
    scales: &mut [f32],
    sums16: &mut [i16],
    sums32: &mut [i16],
) -> Result<(), QuantError> {
    let kind = ActivationKind::Q8Block256;
    let n = x.len() / 256;
    expect(kind, "input", x.len(), n * 256)?;
    expect(kind, "quants", quants.len(), n * 256)?;
    expect(kind, "scales", scales.len(), n)?;
    expect(kind, "sums of 16", sums16.len(), n * 16)?;
    expect(kind, "sums of 32", sums32.len(), n * 8)?;
    let blocks = x.as_chunks::<256>().0.iter();
    let blocks = blocks.zip(quants.as_chunks_mut::<256>().0);
    for ((x, q), scale) in blocks.zip(scales) {
        *scale = quantize_block(x, q);
    }
    for (sum, q) in sums16.iter_mut().zip(quants.as_chunks::<16>().0) {
        *sum = sum_i16(q);
    }
    for (sum, halves) in sums32.iter_mut().zip(sums16.as_chunks::<2>().0) {
        *sum = halves[0] + halves[1];
    }
    Ok(())
}

/// A row of activations in memory of its own, in the form that a type wants. For places where one row is enough; a
/// backend keeps whole batches in its own arena and uses the functions above.
#[derive(Debug, Clone)]
pub struct ActivationBuffer {
    kind: ActivationKind,
    plain: Vec<f32>,
    quants: Vec<i8>,
    scales: Vec<f32>,
    sums: Vec<i32>,
    scaled_sums: Vec<f32>,
    sums16: Vec<i16>,
    sums32: Vec<i16>,
}

impl ActivationBuffer {
    /// Copies or quantizes `x`; its length must be a multiple of the kind's block length.
    pub fn new(kind: ActivationKind, x: &[f32]) -> Result<Self, QuantError> {
        let mut this = Self {
            kind,
            plain: Vec::new(),
            quants: Vec::new(),
            scales: Vec::new(),
            sums: Vec::new(),
            scaled_sums: Vec::new(),
            sums16: Vec::new(),
            sums32: Vec::new(),
        };
        let n = x.len() / kind.block_len();
        match kind {
            ActivationKind::F32 => this.plain = x.to_vec(),
            ActivationKind::Q8Block32 => {
                this.quants = vec![0; n * 32];
                this.scales = vec![0.0; n];
                this.sums = vec![0; n];
                this.scaled_sums = vec![0.0; n];
                quantize_q8_block32(
                    x,
                    &mut this.quants,
                    &mut this.scales,
                    &mut this.sums,
                    &mut this.scaled_sums,
                )?;
            }
            ActivationKind::Q8Block256 => {
                this.quants = vec![0; n * 256];
                this.scales = vec![0.0; n];
                this.sums16 = vec![0; n * 16];
                this.sums32 = vec![0; n * 8];
                quantize_q8_block256(
                    x,
                    &mut this.quants,
                    &mut this.scales,
                    &mut this.sums16,
                    &mut this.sums32,
                )?;
            }
        }
        Ok(this)
    }

    /// The row, for a dot product.
    pub fn row(&self) -> ActivationRow<'_> {
        match self.kind {
            ActivationKind::F32 => ActivationRow::F32(&self.plain),
            ActivationKind::Q8Block32 => ActivationRow::Q8Block32(Q8Block32Row {
                quants: &self.quants,
                scales: &self.scales,
                sums: &self.sums,
                scaled_sums: &self.scaled_sums,
            }),
            ActivationKind::Q8Block256 => ActivationRow::Q8Block256(Q8Block256Row {
                quants: &self.quants,
                scales: &self.scales,
                sums16: &self.sums16,
                sums32: &self.sums32,
            }),
        }
    }
}
