//! What the types with super-blocks of 256 weights have in common: a type says how a super-block unpacks to integers, the rest is here.
//!
//! A super-block is cut into `S` sub-blocks, 8 of 32 weights or 16 of 16, each with an integer scale of its own.

use crate::codec::{blocks, expect, wrong_activation};
use crate::{ActivationKind, ActivationRow, ElementType, Q8Row, QuantError};

/// An unpacked super-block: weight `i` of sub-block `j` is `scale * sub_scales[j] * weights[i]`.
#[derive(Debug, Clone, Copy)]
pub struct Symmetric<const S: usize> {
    /// Scale of the super-block.
    pub scale: f32,
    /// Signed scales of the sub-blocks.
    pub sub_scales: [i8; S],
    /// Signed integers.
    pub weights: [i8; 256],
}

/// An unpacked super-block: weight `i` of sub-block `j` is `scale * sub_scales[j] * weights[i] - min_scale * sub_mins[j]`.
#[derive(Debug, Clone, Copy)]
pub struct Affine<const S: usize> {
    /// Scale of the super-block.
    pub scale: f32,
    /// Scale of the minima.
    pub min_scale: f32,
    /// Scales of the sub-blocks, at most 63.
    pub sub_scales: [u8; S],
    /// Minima of the sub-blocks, at most 63.
    pub sub_mins: [u8; S],
    /// Unsigned integers, at most 31.
    pub weights: [i8; 256],
}

/// The exact dot product of a sub-block; at most 32 * 128 * 127 in magnitude, so that it is an `f32` as well.
#[inline(always)]
fn integer_dot(weights: &[i8], quants: &[i8]) -> f32 {
    let sum: i32 = weights
        .iter()
        .zip(quants)
        .map(|(&w, &q)| i32::from(w) * i32::from(q))
        .sum();
    sum as f32
}

/// Decodes: `(scale * sub_scale) * weight`, each product rounded.
#[inline(always)]
pub(crate) fn dequantize_symmetric<const B: usize, const S: usize>(
    element_type: ElementType,
    bytes: &[u8],
    out: &mut [f32],
    unpack: impl Fn(&[u8; B]) -> Symmetric<S>,
) -> Result<(), QuantError> {
    let rows = blocks::<B>(element_type, bytes)?;
    expect(element_type, "output", out.len(), rows.len() * 256)?;
    for (block, out) in rows.iter().zip(out.as_chunks_mut::<256>().0) {
        let block = unpack(block);
        let len = 256 / S;
        let parts = out.chunks_exact_mut(len);
        for ((out, weights), sub_scale) in parts
            .zip(block.weights.chunks_exact(len))
            .zip(block.sub_scales)
        {
            let scale = block.scale * f32::from(sub_scale);
            for (o, &w) in out.iter_mut().zip(weights) {
                *o = scale * f32::from(w);
            }
        }
    }
    Ok(())
}

/// Decodes: `(scale * sub_scale) * weight - min_scale * sub_min`, each operation rounded.
#[inline(always)]
pub(crate) fn dequantize_affine<const B: usize, const S: usize>(
    element_type: ElementType,
    bytes: &[u8],
    out: &mut [f32],
    unpack: impl Fn(&[u8; B]) -> Affine<S>,
) -> Result<(), QuantError> {
    let rows = blocks::<B>(element_type, bytes)?;
    expect(element_type, "output", out.len(), rows.len() * 256)?;
    for (block, out) in rows.iter().zip(out.as_chunks_mut::<256>().0) {
        let block = unpack(block);
        let len = 256 / S;
        let parts = out.chunks_exact_mut(len);
        for ((out, weights), (sub_scale, sub_min)) in parts
            .zip(block.weights.chunks_exact(len))
            .zip(block.sub_scales.into_iter().zip(block.sub_mins))
        {
            let scale = block.scale * f32::from(sub_scale);
            let minimum = block.min_scale * f32::from(sub_min);
            for (o, &w) in out.iter_mut().zip(weights) {
                *o = scale * f32::from(w) - minimum;
            }
        }
    }
    Ok(())
}

/// Row and activations, checked to belong together: super-blocks, and for each its quants.
type Pair<'a, const B: usize> = (&'a [[u8; B]], &'a [[i8; 256]], Q8Row<'a>);

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
    expect(element_type, "activation quants", x.quants.len(), n * 256)?;
    expect(element_type, "activation scales", x.scales.len(), n * 8)?;
    expect(element_type, "activation sums", x.sums.len(), n * 8)?;
    Ok((rows, x.quants.as_chunks().0, x))
}

/// Sub-blocks of 32 weights are added, ascending, as blocks of 32 are: `acc = fma((scale * sub_scale) * x_scale, dot, acc)`. Two of 16 come
/// together first: `part = (scale * sub_scale) * dot` of the one, `part = fma(scale * sub_scale, dot, part)` of the other, then
/// `acc = fma(part, x_scale, acc)`.
#[inline(always)]
pub(crate) fn dot_symmetric<const B: usize, const S: usize>(
    element_type: ElementType,
    row: &[u8],
    x: ActivationRow<'_>,
    unpack: impl Fn(&[u8; B]) -> Symmetric<S>,
) -> Result<f32, QuantError> {
    let (rows, quants, x) = pair(element_type, row, x)?;
    let mut acc = 0.0f32;
    let scales = x.scales.as_chunks::<8>().0;
    for ((block, quants), x_scales) in rows.iter().zip(quants).zip(scales) {
        let block = unpack(block);
        let weights = block.weights.as_chunks::<32>().0;
        let parts = weights.iter().zip(quants.as_chunks::<32>().0);
        for (j, ((w, q), x_scale)) in parts.zip(x_scales).enumerate() {
            let scale = |j: usize| block.scale * f32::from(block.sub_scales[j]);
            if S == 8 {
                acc = (scale(j) * x_scale).mul_add(integer_dot(w, q), acc);
                continue;
            }
            let part = scale(2 * j) * integer_dot(&w[..16], &q[..16]);
            let part = scale(2 * j + 1).mul_add(integer_dot(&w[16..], &q[16..]), part);
            acc = part.mul_add(*x_scale, acc);
        }
    }
    Ok(acc)
}

/// As [`dot_symmetric`], with minima: a sub-block of 32 then adds `acc = fma(-(min_scale * sub_min), x_sum, acc)`; two of 16 add
/// `part = fma(-(min_scale * sub_min), sum, part)` each, where `sum` is that of its quants.
#[inline(always)]
pub(crate) fn dot_affine<const B: usize, const S: usize>(
    element_type: ElementType,
    row: &[u8],
    x: ActivationRow<'_>,
    unpack: impl Fn(&[u8; B]) -> Affine<S>,
) -> Result<f32, QuantError> {
    let (rows, quants, x) = pair(element_type, row, x)?;
    let mut acc = 0.0f32;
    let scales = x.scales.as_chunks::<8>().0.iter();
    let scales = scales.zip(x.sums.as_chunks::<8>().0);
    for ((block, quants), (x_scales, x_sums)) in rows.iter().zip(quants).zip(scales) {
        let block = unpack(block);
        let weights = block.weights.as_chunks::<32>().0;
        let parts = weights.iter().zip(quants.as_chunks::<32>().0);
        for (j, ((w, q), (x_scale, x_sum))) in parts.zip(x_scales.iter().zip(x_sums)).enumerate() {
            let scale = |j: usize| block.scale * f32::from(block.sub_scales[j]);
            let minimum = |j: usize| -(block.min_scale * f32::from(block.sub_mins[j]));
            if S == 8 {
                acc = (scale(j) * x_scale).mul_add(integer_dot(w, q), acc);
                acc = minimum(j).mul_add(*x_sum, acc);
                continue;
            }
            let (low, high) = (&q[..16], &q[16..]);
            let part = scale(2 * j) * integer_dot(&w[..16], low);
            let part = scale(2 * j + 1).mul_add(integer_dot(&w[16..], high), part);
            let part = minimum(2 * j).mul_add(integer_dot(&[1; 16], low), part);
            let part = minimum(2 * j + 1).mul_add(integer_dot(&[1; 16], high), part);
            acc = part.mul_add(*x_scale, acc);
        }
    }
    Ok(acc)
}
