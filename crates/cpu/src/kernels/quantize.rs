//! Activations to 8-bit blocks, bit for bit as [`puna_quant::quantize_q8`] does it.
//!
//! All rows of a batch may be given at once: blocks follow each other.

#![allow(
    clippy::inline_always,
    reason = "a kernel must end up inside its entry to be compiled with the entry's features"
)]

use super::{
    Set,
    entry::entry,
    simd::{LANES, Simd, simd_entries},
};
use puna_quant::{LARGEST_BLOCK, Q8RowMut, SMALLEST_BLOCK};

/// Quantizes `x` in blocks, see [`puna_quant::Q8Row`]. Panics when lengths do not fit.
///
/// # Safety
/// The CPU has the features of the [`Set`].
pub type QuantizeFn = unsafe fn(x: &[f32], to: &mut Q8RowMut<'_>);

/// The quantizer of a set.
pub fn quantize(set: Set) -> QuantizeFn {
    entry!(set, entries)
}

simd_entries! { mod entries = kernel(x: &[f32], to: &mut Q8RowMut<'_>); }

/// What a block is divided by, and the factor for its values.
#[derive(Clone, Copy)]
struct Scale {
    scale: f32,
    inverse: f32,
}

impl Scale {
    /// From the greatest magnitude; infinity stands for a NaN.
    #[inline(always)]
    fn new(amax: f32) -> Self {
        if amax >= LARGEST_BLOCK {
            Self {
                scale: f32::NAN,
                inverse: 0.0,
            }
        } else if amax < SMALLEST_BLOCK {
            Self {
                scale: 0.0,
                inverse: 0.0,
            }
        } else {
            Self {
                scale: amax / 127.0,
                inverse: 127.0 / amax,
            }
        }
    }

    /// All quants are 0: the values must not be multiplied, since they need not be finite.
    #[inline(always)]
    fn is_void(self) -> bool {
        self.inverse == 0.0
    }
}

/// The magnitudes of sixteen values; infinity for NaN.
#[inline(always)]
fn magnitudes<S: Simd>(s: S, x: &[f32; LANES]) -> S::F {
    let (x, infinity) = (s.abs(s.load(x)), s.splat(f32::INFINITY));
    s.select_lt(x, infinity, x, infinity)
}

/// Quantizes sixteen values and returns the quants as lanes too.
#[inline(always)]
fn quantize_lanes<S: Simd>(s: S, x: &[f32; LANES], inverse: S::F, quants: &mut [i8]) -> S::F {
    // At most 127: amax times the rounded 127 / amax is within one rounding of 127.
    let q = s.round(s.mul(s.load(x), inverse));
    s.store_i8(q, quants.first_chunk_mut().expect("sixteen quants"));
    q
}

#[inline(always)]
fn kernel<S: Simd>(s: S, x: &[f32], to: &mut Q8RowMut<'_>) {
    to.as_row().check(x.len());
    let values = x.as_chunks::<32>().0.iter();
    let values = values.zip(to.quants.as_chunks_mut::<32>().0);
    let scales = to.scales.iter_mut().zip(to.sums.iter_mut());
    let halves = to.halves.as_chunks_mut::<2>().0;
    let offsets = to.offsets.iter_mut().zip(halves);
    for ((x, quants), ((scale, sum), (offset, halves))) in values.zip(scales.zip(offsets)) {
        let (x, _) = x.as_chunks::<LANES>();
        let top = s.max(magnitudes(s, &x[0]), magnitudes(s, &x[1]));
        let block = Scale::new(s.max_lane(top));
        *scale = block.scale;
        if block.is_void() {
            quants.fill(0);
            *sum = block.scale * 0.0;
            *offset = 0;
            *halves = [0; 2];
            continue;
        }
        let inverse = s.splat(block.inverse);
        let (low, high) = quants.split_at_mut(LANES);
        // Sums are exact: small integers.
        let low = s.sum(quantize_lanes(s, &x[0], inverse, low));
        let high = s.sum(quantize_lanes(s, &x[1], inverse, high));
        *sum = block.scale * (low + high);
        *offset = -128 * (low + high) as i32;
        *halves = [-128 * low as i32, -128 * high as i32];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::entry::{assert_same, numbers, other_sets};
    use puna_quant::{ActivationBuffer, ActivationKind, ActivationRow};

    /// Ordinary blocks, and every kind of block that is treated specially, at every place inside a block.
    fn inputs() -> Vec<f32> {
        let block = 32;
        let mut x = numbers(block * 44, 11);
        x[block..2 * block].fill(0.0);
        x[2 * block..3 * block].fill(-0.0);
        x[3 * block + 7] = f32::NAN;
        x[4 * block + block - 1] = f32::INFINITY;
        x[5 * block] = f32::NEG_INFINITY;
        for (i, v) in x[6 * block..7 * block].iter_mut().enumerate() {
            *v = f32::from_bits(i as u32); // subnormal
        }
        for (i, v) in x[7 * block..8 * block].iter_mut().enumerate() {
            *v = 1.2e-38 * (i as f32 - 9.0);
        }
        x[8 * block + 3] = LARGEST_BLOCK;
        x[block / 2] = SMALLEST_BLOCK;
        for (i, v) in x[9 * block..10 * block].iter_mut().enumerate() {
            *v = (i * 8) as f32 - 127.0; // scale 1: ties are impossible
        }
        x[10 * block - 1] = 127.0; // and both ends are hit
        for (i, v) in x[10 * block..11 * block].iter_mut().enumerate() {
            *v = i as f32 * 0.5 - 7.5;
        }
        x.copy_within(10 * block..11 * block, 11 * block);
        x[11 * block] = 127.0; // inverse 1: halves are ties
        for at in 0..block {
            x[(12 + at) * block + at] = f32::from_bits(0x7fc0_0001 + at as u32);
        }
        x
    }

    fn all_sets() -> Vec<Set> {
        let mut sets = other_sets();
        sets.push(Set::Portable);
        sets
    }

    #[test]
    fn blocks_equal_the_specification_in_every_set() {
        let x = inputs();
        for blocks in [0, 1, 2, 44] {
            let x = &x[..blocks * 32];
            let buffer = ActivationBuffer::new(ActivationKind::Q8, x).unwrap();
            let ActivationRow::Q8(expected) = buffer.row() else {
                panic!("not quantized");
            };
            for set in all_sets() {
                let (mut quants, mut scales) = (vec![2i8; x.len()], vec![2.0; blocks]);
                let (mut sums, mut offsets) = (vec![2.0; blocks], vec![2; blocks]);
                let mut halves = vec![2; 2 * blocks];
                let mut to = Q8RowMut {
                    quants: &mut quants,
                    scales: &mut scales,
                    sums: &mut sums,
                    offsets: &mut offsets,
                    halves: &mut halves,
                };
                // SAFETY: only sets that the CPU has are tried.
                unsafe { quantize(set)(x, &mut to) };
                assert_eq!(quants, expected.quants, "{set:?}");
                assert_eq!(offsets, expected.offsets, "{set:?}");
                assert_eq!(halves, expected.halves, "{set:?}");
                assert_same(&scales, expected.scales, "scales");
                assert_same(&sums, expected.sums, "sums");
            }
        }
    }
}
