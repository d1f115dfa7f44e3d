//! What the types with blocks of 32 weights have in common: a type says how a block unpacks to integers, the rest is here.

use crate::codec::{blocks, expect, wrong_activation};
use crate::{ActivationKind, ActivationRow, ElementType, Q8Row, QuantError};

/// An unpacked block: weight `i` is `scale * weights[i]`.
#[derive(Debug, Clone, Copy)]
pub struct Symmetric {
    /// Scale of the block.
    pub scale: f32,
    /// Signed integers.
    pub weights: [i8; 32],
}

/// An unpacked block: weight `i` is `scale * weights[i] + minimum`.
#[derive(Debug, Clone, Copy)]
pub struct Affine {
    /// Scale of the block.
    pub scale: f32,
    /// What a weight integer of 0 stands for.
    pub minimum: f32,
    /// Unsigned integers, at most 31.
    pub weights: [i8; 32],
}

/// Sixteen bytes hold 32 weights of four bits: low halves are weights 0 to 15, high halves 16 to 31.
#[inline(always)]
pub(crate) fn nibbles(bytes: &[u8]) -> [u8; 32] {
    let mut out = [0; 32];
    for (i, byte) in bytes.iter().take(16).enumerate() {
        out[i] = byte & 0x0f;
        out[i + 16] = byte >> 4;
    }
    out
}

/// The reverse of [`nibbles`] for values below 16, into sixteen bytes.
#[inline(always)]
pub(crate) fn pack_nibbles(weights: &[u8; 32], out: &mut [u8]) {
    for (i, byte) in out.iter_mut().take(16).enumerate() {
        *byte = (weights[i] & 0x0f) | (weights[i + 16] << 4);
    }
}

/// The fifth bits of 32 weights, as 0 or 16: bit `i` of the little-endian word belongs to weight `i`.
#[inline(always)]
pub(crate) fn fifth_bits(bytes: [u8; 4]) -> [u8; 32] {
    std::array::from_fn(|i| u8::from(bytes[i / 8] & (1 << (i % 8)) != 0) << 4)
}

/// The exact integer dot product of a block; at most 32 * 128 * 128 in magnitude.
#[inline(always)]
fn integer_dot(weights: &[i8; 32], quants: &[i8; 32]) -> i32 {
    weights
        .iter()
        .zip(quants)
        .map(|(&w, &q)| i32::from(w) * i32::from(q))
        .sum()
}

/// Decodes: one multiplication per weight.
#[inline(always)]
pub(crate) fn dequantize_symmetric<const B: usize>(
    element_type: ElementType,
    bytes: &[u8],
    out: &mut [f32],
    unpack: impl Fn(&[u8; B]) -> Symmetric,
) -> Result<(), QuantError> {
    let rows = blocks::<B>(element_type, bytes)?;
    expect(element_type, "output", out.len(), rows.len() * 32)?;
    for (block, out) in rows.iter().zip(out.as_chunks_mut::<32>().0) {
        let Symmetric { scale, weights } = unpack(block);
        for (o, w) in out.iter_mut().zip(weights) {
            *o = scale * f32::from(w);
        }
    }
    Ok(())
}

/// Decodes: one multiplication, then one addition per weight, each rounded.
#[inline(always)]
pub(crate) fn dequantize_affine<const B: usize>(
    element_type: ElementType,
    bytes: &[u8],
    out: &mut [f32],
    unpack: impl Fn(&[u8; B]) -> Affine,
) -> Result<(), QuantError> {
    let rows = blocks::<B>(element_type, bytes)?;
    expect(element_type, "output", out.len(), rows.len() * 32)?;
    for (block, out) in rows.iter().zip(out.as_chunks_mut::<32>().0) {
        let Affine {
            scale,
            minimum,
            weights,
        } = unpack(block);
        for (o, w) in out.iter_mut().zip(weights) {
            *o = scale * f32::from(w) + minimum;
        }
    }
    Ok(())
}

/// Row and activations, checked to belong together: blocks, and for each its quants.
type Pair<'a, const B: usize> = (&'a [[u8; B]], &'a [[i8; 32]], Q8Row<'a>);

#[inline(always)]
fn pair<'a, const B: usize>(
    element_type: ElementType,
    row: &'a [u8],
    x: ActivationRow<'a>,
) -> Result<Pair<'a, B>, QuantError> {
    let ActivationRow::Q8(x) = x else {
        return Err(wrong_activation(element_type, ActivationKind::Q8, &x));
    };
    let rows = blocks::<B>(element_type, row)?;
    let n = rows.len();
    expect(element_type, "activation quants", x.quants.len(), n * 32)?;
    expect(element_type, "activation scales", x.scales.len(), n)?;
    expect(element_type, "activation sums", x.sums.len(), n)?;
    Ok((rows, x.quants.as_chunks().0, x))
}

/// Per block, ascending: `acc = fma(scale * x_scale, isum, acc)`.
#[inline(always)]
pub(crate) fn dot_symmetric<const B: usize>(
    element_type: ElementType,
    row: &[u8],
    x: ActivationRow<'_>,
    unpack: impl Fn(&[u8; B]) -> Symmetric,
) -> Result<f32, QuantError> {
    let (rows, quants, x) = pair(element_type, row, x)?;
    let mut acc = 0.0f32;
    for ((block, quants), x_scale) in rows.iter().zip(quants).zip(x.scales) {
        let Symmetric { scale, weights } = unpack(block);
        let isum = integer_dot(&weights, quants);
        acc = (scale * x_scale).mul_add(isum as f32, acc);
    }
    Ok(acc)
}

/// Per block, ascending: `acc = fma(scale * x_scale, isum, acc)`, then `acc = fma(minimum, x_sum, acc)`.
#[inline(always)]
pub(crate) fn dot_affine<const B: usize>(
    element_type: ElementType,
    row: &[u8],
    x: ActivationRow<'_>,
    unpack: impl Fn(&[u8; B]) -> Affine,
) -> Result<f32, QuantError> {
    let (rows, quants, x) = pair(element_type, row, x)?;
    let mut acc = 0.0f32;
    let x_scales = x.scales.iter().zip(x.sums);
    for ((block, quants), (x_scale, x_sum)) in rows.iter().zip(quants).zip(x_scales) {
        let Affine {
            scale,
            minimum,
            weights,
        } = unpack(block);
        let isum = integer_dot(&weights, quants);
        acc = (scale * x_scale).mul_add(isum as f32, acc);
        acc = minimum.mul_add(*x_sum, acc);
    }
    Ok(acc)
}

/// Encodes whole blocks with `pack`.
#[inline(always)]
pub(crate) fn quantize<const B: usize>(
    element_type: ElementType,
    x: &[f32],
    out: &mut [u8],
    pack: impl Fn(&[f32; 32]) -> [u8; B],
) -> Result<(), QuantError> {
    let (rows, []) = x.as_chunks::<32>() else {
        return Err(QuantError::PartialBlockValues {
            element_type,
            values: x.len(),
        });
    };
    expect(element_type, "output", out.len(), rows.len() * B)?;
    for (x, block) in rows.iter().zip(out.as_chunks_mut::<B>().0) {
        *block = pack(x);
    }
    Ok(())
}

/// The first value of greatest magnitude, and the scale that puts it at `-levels`, the far end of the integers:
/// `(scale, weights in 0..2 * levels)`, as the `gguf` package does it.
#[inline(always)]
pub(crate) fn round_symmetric(x: &[f32; 32], levels: f32) -> (f32, [u8; 32]) {
    let mut peak = x[0];
    for &v in x {
        if v.abs() > peak.abs() {
            peak = v;
        }
    }
    let scale = peak / -levels;
    let inverse = if scale == 0.0 { 0.0 } else { 1.0 / scale };
    let top = 2.0 * levels - 1.0;
    let weights = x.map(|v| (v * inverse + (levels + 0.5)).clamp(0.0, top) as u8);
    (scale, weights)
}

/// Scale and minimum that spread the block over `0..=top`, and the integers, as the `gguf` package does it.
#[inline(always)]
pub(crate) fn round_affine(x: &[f32; 32], top: f32) -> (f32, f32, [u8; 32]) {
    let (mut low, mut high) = (x[0], x[0]);
    for &v in x {
        low = if v < low { v } else { low };
        high = if v > high { v } else { high };
    }
    let scale = (high - low) / top;
    let inverse = if scale == 0.0 { 0.0 } else { 1.0 / scale };
    let weights = x.map(|v| ((v - low) * inverse + 0.5).clamp(0.0, top) as u8);
    (scale, low, weights)
}

/// The reverse of [`fifth_bits`]: bit 4 of each weight.
#[inline(always)]
pub(crate) fn pack_fifth_bits(weights: &[u8; 32]) -> [u8; 4] {
    let word = weights
        .iter()
        .enumerate()
        .fold(0u32, |word, (i, w)| word | (u32::from(w >> 4 & 1) << i));
    word.to_le_bytes()
}
