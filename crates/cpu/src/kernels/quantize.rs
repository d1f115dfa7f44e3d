//! Activations to 8-bit blocks, bit for bit as `puna_quant::quantize_q8_block32` and `quantize_q8_block256` do it.
//!
//! All rows of a batch may be given at once: blocks follow each other.

use super::{
    Set,
    entry::entry,
    simd::{LANES, Simd, simd_entries},
};

/// Quantizes `x` in blocks of 32, see [`puna_quant::Q8Block32Row`]. Panics when lengths do not fit.
///
/// # Safety
/// The CPU has the features of the [`Set`].
pub type QuantizeBlock32Fn = unsafe fn(
    x: &[f32],
    quants: &mut [i8],
    scales: &mut [f32],
    sums: &mut [i32],
    scaled_sums: &mut [f32],
);

/// Quantizes `x` in blocks of 256, see [`puna_quant::Q8Block256Row`]. Panics when lengths do not fit.
///
/// # Safety
/// The CPU has the features of the [`Set`].
pub type QuantizeBlock256Fn = unsafe fn(
    x: &[f32],
    quants: &mut [i8],
    scales: &mut [f32],
    sums16: &mut [i16],
    sums32: &mut [i16],
);

/// The quantizer into blocks of 32.
pub fn quantize_block32(set: Set) -> QuantizeBlock32Fn {
    entry!(set, block32)
}

/// The quantizer into blocks of 256.
pub fn quantize_block256(set: Set) -> QuantizeBlock256Fn {
    entry!(set, block256)
}

simd_entries! { mod block32 = block32_kernel(x: &[f32], quants: &mut [i8], scales: &mut [f32], sums: &mut [i32], scaled_sums: &mut [f32]); }
simd_entries! { mod block256 = block256_kernel(x: &[f32], quants: &mut [i8], scales: &mut [f32], sums16: &mut [i16], sums32: &mut [i16]); }

/// What a block is divided by, and the factor for its values.
#[derive(Clone, Copy)]
struct Scale {
    scale: f32,
    inverse: f32,
}

impl Scale {
    /// From the greatest magnitude; infinity stands for a value that is not finite.
    #[inline(always)]
    fn new(amax: f32) -> Self {
        let inverse = 127.0 / amax; // infinite for 0 and where it overflows
        if amax == f32::INFINITY {
            Self {
                scale: f32::NAN,
                inverse: 0.0,
            }
        } else if inverse == f32::INFINITY {
            Self {
                scale: 0.0,
                inverse: 0.0,
            }
        } else {
            Self {
                scale: amax / 127.0,
                inverse,
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
fn block32_kernel<S: Simd>(
    s: S,
    x: &[f32],
    quants: &mut [i8],
    scales: &mut [f32],
    sums: &mut [i32],
    scaled_sums: &mut [f32],
) {
    let n = x.len() / 32;
    let fits = x.len() == n * 32 && quants.len() == x.len() && scales.len() == n;
    assert!(
        fits && sums.len() == n && scaled_sums.len() == n,
        "quantize: buffers for {} values",
        x.len()
    );
    let values = x.as_chunks::<32>().0.iter();
    let values = values.zip(quants.as_chunks_mut::<32>().0);
    let outputs = scales.iter_mut().zip(sums.iter_mut().zip(scaled_sums));
    for ((x, quants), (scale, (sum, scaled_sum))) in values.zip(outputs) {
        let (x, _) = x.as_chunks::<LANES>();
        let top = s.max(magnitudes(s, &x[0]), magnitudes(s, &x[1]));
        let block = Scale::new(s.max_lane(top));
        let total = if block.is_void() {
            quants.fill(0);
            0.0
        } else {
            let inverse = s.splat(block.inverse);
            let (low, high) = quants.split_at_mut(LANES);
            let low = quantize_lanes(s, &x[0], inverse, low);
            let high = quantize_lanes(s, &x[1], inverse, high);
            s.sum(s.add(low, high)) // exact: small integers
        };
        *scale = block.scale;
        *sum = total as i32;
        *scaled_sum = block.scale * total;
    }
}

#[inline(always)]
fn block256_kernel<S: Simd>(
    s: S,
    x: &[f32],
    quants: &mut [i8],
    scales: &mut [f32],
    sums16: &mut [i16],
    sums32: &mut [i16],
) {
    let n = x.len() / 256;
    let fits = x.len() == n * 256 && quants.len() == x.len() && scales.len() == n;
    assert!(
        fits && sums16.len() == n * 16 && sums32.len() == n * 8,
        "quantize: buffers for {} values",
        x.len()
    );
    let values = x.as_chunks::<256>().0.iter();
    let values = values.zip(quants.as_chunks_mut::<256>().0);
    let sums = sums16.as_chunks_mut::<16>().0.iter_mut();
    let sums = sums.zip(sums32.as_chunks_mut::<8>().0);
    for (((x, quants), scale), (sums16, sums32)) in values.zip(scales).zip(sums) {
        let (x, _) = x.as_chunks::<LANES>();
        let mut tops = [s.splat(0.0); 2];
        for pair in x.as_chunks::<2>().0 {
            tops[0] = s.max(tops[0], magnitudes(s, &pair[0]));
            tops[1] = s.max(tops[1], magnitudes(s, &pair[1]));
        }
        let block = Scale::new(s.max_lane(s.max(tops[0], tops[1])));
        *scale = block.scale;
        if block.is_void() {
            quants.fill(0);
            sums16.fill(0);
            sums32.fill(0);
            continue;
        }
        let inverse = s.splat(block.inverse);
        let quants = quants.as_chunks_mut::<LANES>().0;
        for ((x, quants), sum) in x.iter().zip(quants).zip(sums16.iter_mut()) {
            *sum = s.sum(quantize_lanes(s, x, inverse, quants)) as i16;
        }
        for (sum, halves) in sums32.iter_mut().zip(sums16.as_chunks::<2>().0) {
            *sum = halves[0] + halves[1];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::entry::{assert_same, numbers, other_sets};

    /// Ordinary blocks, and every kind of block that is treated specially, at every place inside a block.
    fn inputs(block: usize) -> Vec<f32> {
        let mut x = numbers(block * 40, 11);
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
        x[8 * block + 3] = f32::MAX;
        for (i, v) in x[9 * block..10 * block].iter_mut().enumerate() {
            *v = (i % 255) as f32 - 127.0; // scale 1: ties are impossible, ends are hit
        }
        for (i, v) in x[10 * block..11 * block].iter_mut().enumerate() {
            *v = (i % 254) as f32 * 0.5 - 63.5; // inverse 2
        }
        x.copy_within(10 * block..11 * block, 11 * block);
        x[11 * block] = 127.0; // inverse 1: halves are ties
        for at in 0..28 {
            x[(12 + at) * block + at * block / 28] = f32::from_bits(0x7fc0_0001 + at as u32);
        }
        x
    }

    fn all_sets() -> Vec<Set> {
        let mut sets = other_sets();
        sets.push(Set::Portable);
        sets
    }

    #[test]
    fn blocks_of_32_equal_the_specification() {
        let x = inputs(32);
        for blocks in [0, 1, 2, 40] {
            let x = &x[..blocks * 32];
            let n = blocks;
            let (mut q, mut d) = (vec![1i8; x.len()], vec![1.0; n]);
            let (mut sums, mut scaled) = (vec![1; n], vec![1.0; n]);
            puna_quant::quantize_q8_block32(x, &mut q, &mut d, &mut sums, &mut scaled).unwrap();
            for set in all_sets() {
                let (mut q2, mut d2) = (vec![2i8; x.len()], vec![2.0; n]);
                let (mut sums2, mut scaled2) = (vec![2; n], vec![2.0; n]);
                let f = quantize_block32(set);
                // SAFETY: only sets that the CPU has are tried.
                unsafe { f(x, &mut q2, &mut d2, &mut sums2, &mut scaled2) };
                assert_eq!(q2, q, "{set:?}");
                assert_eq!(sums2, sums, "{set:?}");
                assert_same(&d2, &d, "scales");
                assert_same(&scaled2, &scaled, "scaled sums");
            }
        }
    }

    #[test]
    fn blocks_of_256_equal_the_specification() {
        let x = inputs(256);
        for blocks in [0, 1, 2, 40] {
            let x = &x[..blocks * 256];
            let n = blocks;
            let (mut q, mut d) = (vec![1i8; x.len()], vec![1.0; n]);
            let (mut s16, mut s32) = (vec![1; n * 16], vec![1; n * 8]);
            puna_quant::quantize_q8_block256(x, &mut q, &mut d, &mut s16, &mut s32).unwrap();
            for set in all_sets() {
                let (mut q2, mut d2) = (vec![2i8; x.len()], vec![2.0; n]);
                let (mut s16_2, mut s32_2) = (vec![2; n * 16], vec![2; n * 8]);
                let f = quantize_block256(set);
                // SAFETY: only sets that the CPU has are tried.
                unsafe { f(x, &mut q2, &mut d2, &mut s16_2, &mut s32_2) };
                assert_eq!(q2, q, "{set:?}");
                assert_eq!((&s16_2, &s32_2), (&s16, &s32), "{set:?}");
                assert_same(&d2, &d, "scales");
            }
        }
    }
}
