//! What the types with super-blocks of 256 weights have in common: a type says how a super-block unpacks to integers, the rest is here.
//!
//! A super-block is cut into `S` sub-blocks, 8 of 32 weights or 16 of 16, each with an integer scale of its own.

use crate::codec::{blocks, expect, wrong_activation};
use crate::{ActivationKind, ActivationRow, ElementType, Q8Block256Row, QuantError};

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

/// The exact sum over sub-blocks of scale times dot product; below 2^28 for every type.
#[inline(always)]
fn scaled_dot<const S: usize>(
    weights: &[i8; 256],
    quants: &[i8; 256],
    scale: impl Fn(usize) -> i32,
) -> i32 {
    let len = 256 / S;
    let mut isum = 0;
    for (j, (weights, quants)) in weights
        .chunks_exact(len)
        .zip(quants.chunks_exact(len))
        .enumerate()
    {
        let sum: i32 = weights
            .iter()
            .zip(quants)
            .map(|(&w, &q)| i32::from(w) * i32::from(q))
            .sum();
        isum += scale(j) * sum;
    }
    isum
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
type Pair<'a, const B: usize> = (&'a [[u8; B]], &'a [[i8; 256]], Q8Block256Row<'a>);

#[inline(always)]
fn pair<'a, const B: usize>(
    element_type: ElementType,
    row: &'a [u8],
    x: ActivationRow<'a>,
) -> Result<Pair<'a, B>, QuantError> {
    let ActivationRow::Q8Block256(x) = x else {
        return Err(wrong_activation(
            element_type,
            ActivationKind::Q8Block256,
            &x,
        ));
    };
    let rows = blocks::<B>(element_type, row)?;
    let n = rows.len();
    expect(element_type, "activation quants", x.quants.len(), n * 256)?;
    expect(element_type, "activation scales", x.scales.len(), n)?;
    expect(
        element_type,
        "activation sums of 16",
        x.sums16.len(),
        n * 16,
    )?;
    expect(element_type, "activation sums of 32", x.sums32.len(), n * 8)?;
    Ok((rows, x.quants.as_chunks().0, x))
}

/// Per super-block, ascending: `acc = fma(scale * x_scale, isum, acc)`.
#[inline(always)]
pub(crate) fn dot_symmetric<const B: usize, const S: usize>(
    element_type: ElementType,
    row: &[u8],
    x: ActivationRow<'_>,
    unpack: impl Fn(&[u8; B]) -> Symmetric<S>,
) -> Result<f32, QuantError> {
    let (rows, quants, x) = pair(element_type, row, x)?;
    let mut acc = 0.0f32;
    for ((block, quants), x_scale) in rows.iter().zip(quants).zip(x.scales) {
        let block = unpack(block);
        let isum = scaled_dot::<S>(&block.weights, quants, |j| i32::from(block.sub_scales[j]));
        acc = (block.scale * x_scale).mul_add(isum as f32, acc);
    }
    Ok(acc)
}

/// Per super-block, ascending: `acc = fma(scale * x_scale, isum, acc)`, then `acc = fma(-(min_scale * x_scale), imin, acc)`.
#[inline(always)]
pub(crate) fn dot_affine<const B: usize, const S: usize>(
    element_type: ElementType,
    row: &[u8],
    x: ActivationRow<'_>,
    unpack: impl Fn(&[u8; B]) -> Affine<S>,
) -> Result<f32, QuantError> {
    let (rows, quants, x) = pair(element_type, row, x)?;
    let sums = if S == 8 { x.sums32 } else { x.sums16 };
    let sums = sums.as_chunks::<S>().0;
    let mut acc = 0.0f32;
    let x_parts = quants.iter().zip(x.scales).zip(sums);
    for (block, ((quants, x_scale), sums)) in rows.iter().zip(x_parts) {
        let block = unpack(block);
        let isum = scaled_dot::<S>(&block.weights, quants, |j| i32::from(block.sub_scales[j]));
        let imin: i32 = block
            .sub_mins
            .iter()
            .zip(sums)
            .map(|(&m, &s)| i32::from(m) * i32::from(s))
            .sum();
        acc = (block.scale * x_scale).mul_add(isum as f32, acc);
        acc = (-(block.min_scale * x_scale)).mul_add(imin as f32, acc);
    }
    Ok(acc)
}
