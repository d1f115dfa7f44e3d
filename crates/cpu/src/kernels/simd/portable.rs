//! Plain Rust: the definition of every operation.

use super::{LANES, Simd};
use half::{bf16, f16};

/// Sixteen lanes as an array; runs on any CPU.
#[derive(Clone, Copy, Debug)]
pub struct Portable;

/// Sixteen `f32`, aligned for vector moves.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct F([f32; LANES]);

#[inline(always)]
fn each(f: impl Fn(usize) -> f32) -> F {
    F(std::array::from_fn(f))
}

impl Simd for Portable {
    type F = F;

    #[inline(always)]
    fn splat(self, x: f32) -> F {
        F([x; LANES])
    }
    #[inline(always)]
    fn load(self, src: &[f32; LANES]) -> F {
        F(*src)
    }
    #[inline(always)]
    fn load_partial(self, src: &[f32]) -> F {
        let mut lanes = [0.0; LANES];
        for (l, x) in lanes.iter_mut().zip(src) {
            *l = *x;
        }
        F(lanes)
    }
    #[inline(always)]
    fn load_f16(self, src: &[u16; LANES]) -> F {
        each(|i| f16::from_bits(src[i]).to_f32())
    }
    #[inline(always)]
    fn load_bf16(self, src: &[u16; LANES]) -> F {
        each(|i| bf16::from_bits(src[i]).to_f32())
    }
    #[inline(always)]
    fn load_i8(self, src: &[i8; LANES]) -> F {
        each(|i| f32::from(src[i]))
    }
    #[inline(always)]
    fn store(self, v: F, dst: &mut [f32; LANES]) {
        *dst = v.0;
    }
    #[inline(always)]
    fn store_partial(self, v: F, dst: &mut [f32]) {
        for (d, x) in dst.iter_mut().zip(v.0) {
            *d = x;
        }
    }
    #[inline(always)]
    fn store_f16(self, v: F, dst: &mut [u16; LANES]) {
        for (d, x) in dst.iter_mut().zip(v.0) {
            *d = f16::from_f32(x).to_bits();
        }
    }
    #[inline(always)]
    fn store_i8(self, v: F, dst: &mut [i8; LANES]) {
        for (d, x) in dst.iter_mut().zip(v.0) {
            *d = x as i8;
        }
    }

    #[inline(always)]
    fn add(self, a: F, b: F) -> F {
        each(|i| a.0[i] + b.0[i])
    }
    #[inline(always)]
    fn sub(self, a: F, b: F) -> F {
        each(|i| a.0[i] - b.0[i])
    }
    #[inline(always)]
    fn mul(self, a: F, b: F) -> F {
        each(|i| a.0[i] * b.0[i])
    }
    #[inline(always)]
    fn div(self, a: F, b: F) -> F {
        each(|i| a.0[i] / b.0[i])
    }
    #[inline(always)]
    fn fma(self, a: F, b: F, c: F) -> F {
        each(|i| a.0[i].mul_add(b.0[i], c.0[i]))
    }
    #[inline(always)]
    fn max(self, a: F, b: F) -> F {
        each(|i| if a.0[i] > b.0[i] { a.0[i] } else { b.0[i] })
    }
    #[inline(always)]
    fn min(self, a: F, b: F) -> F {
        each(|i| if a.0[i] < b.0[i] { a.0[i] } else { b.0[i] })
    }
    #[inline(always)]
    fn abs(self, a: F) -> F {
        each(|i| a.0[i].abs())
    }
    #[inline(always)]
    fn round(self, a: F) -> F {
        each(|i| a.0[i].round_ties_even())
    }
    #[inline(always)]
    fn scale_pow2(self, a: F, n: F) -> F {
        each(|i| f32::from_bits(a.0[i].to_bits().wrapping_add((n.0[i] as i32 as u32) << 23)))
    }
    #[inline(always)]
    fn select_lt(self, a: F, b: F, x: F, y: F) -> F {
        each(|i| if a.0[i] < b.0[i] { x.0[i] } else { y.0[i] })
    }
}
