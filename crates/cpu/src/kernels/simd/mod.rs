//! Sixteen `f32` lanes behind one trait, once per instruction set.
//!
//! A kernel is written once, generic over [`Simd`], and instantiated for every set by [`simd_entries!`]. Each operation is defined by
//! [`Portable`](portable::Portable); the other sets return the same bits, so a kernel that uses only these operations is equal across
//! sets by construction.
//!
//! A token of a set can only be made where the CPU has its features (`new`), or by a caller that vouches for them (`assume`), so that
//! the operations themselves are safe.

pub mod portable;

#[cfg(target_arch = "x86_64")]
pub mod avx2;
#[cfg(target_arch = "x86_64")]
pub mod avx512;

/// Lanes of one vector.
pub const LANES: usize = 16;

/// Operations on sixteen `f32` lanes; see the module's text for the rules.
pub trait Simd: Copy {
    /// Sixteen `f32`.
    type F: Copy;

    /// All lanes `x`.
    fn splat(self, x: f32) -> Self::F;
    /// Lane `i` is `src[i]`.
    fn load(self, src: &[f32; LANES]) -> Self::F;
    /// Lane `i` is `src[i]`, zero where `src` is shorter.
    fn load_partial(self, src: &[f32]) -> Self::F;
    /// Lane `i` is `src[i]` as binary16, widened (exact).
    fn load_f16(self, src: &[u16; LANES]) -> Self::F;
    /// Lane `i` is `src[i]` as bfloat16, widened (exact).
    fn load_bf16(self, src: &[u16; LANES]) -> Self::F;
    /// Lane `i` is `src[i]` widened (exact).
    fn load_i8(self, src: &[i8; LANES]) -> Self::F;
    /// `dst[i]` is lane `i`.
    fn store(self, v: Self::F, dst: &mut [f32; LANES]);
    /// `dst[i]` is lane `i`, as far as `dst` goes.
    fn store_partial(self, v: Self::F, dst: &mut [f32]);
    /// Rounds to binary16, ties to even.
    fn store_f16(self, v: Self::F, dst: &mut [u16; LANES]);
    /// Converts lanes, which must be integers in -128..=127, to `i8`.
    fn store_i8(self, v: Self::F, dst: &mut [i8; LANES]);

    /// `a + b`
    fn add(self, a: Self::F, b: Self::F) -> Self::F;
    /// `a - b`
    fn sub(self, a: Self::F, b: Self::F) -> Self::F;
    /// `a * b`
    fn mul(self, a: Self::F, b: Self::F) -> Self::F;
    /// `a / b`
    fn div(self, a: Self::F, b: Self::F) -> Self::F;
    /// `a * b + c` with one rounding.
    fn fma(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    /// `if a > b { a } else { b }`: `b` where either is NaN.
    fn max(self, a: Self::F, b: Self::F) -> Self::F;
    /// `if a < b { a } else { b }`: `b` where either is NaN.
    fn min(self, a: Self::F, b: Self::F) -> Self::F;
    /// Absolute value (sign bit cleared).
    fn abs(self, a: Self::F) -> Self::F;
    /// Nearest integer, ties to even.
    fn round(self, a: Self::F) -> Self::F;
    /// `a * 2^n` where `n` holds integers in -126..=127, by adding to the exponent bits; `a` is in [0.5, 2) or the result is unspecified
    /// but the same in every set.
    fn scale_pow2(self, a: Self::F, n: Self::F) -> Self::F;
    /// `if a < b { x } else { y }` by lanes; `y` where `a` or `b` is NaN.
    fn select_lt(self, a: Self::F, b: Self::F, x: Self::F, y: Self::F) -> Self::F;

    /// Sum by the fixed tree: halves are added lane by lane (8, 4, 2, 1).
    #[inline(always)]
    fn sum(self, v: Self::F) -> f32 {
        let mut l = [0.0; LANES];
        self.store(v, &mut l);
        tree_sum(&l)
    }
    /// Largest lane, by the same tree with [`Self::max`].
    #[inline(always)]
    fn max_lane(self, v: Self::F) -> f32 {
        let mut l = [0.0; LANES];
        self.store(v, &mut l);
        let mut width = LANES / 2;
        while width > 0 {
            for i in 0..width {
                l[i] = if l[i] > l[i + width] {
                    l[i]
                } else {
                    l[i + width]
                };
            }
            width /= 2;
        }
        l[0]
    }
}

/// The fixed tree over sixteen lanes: `s8[i] = l[i] + l[i + 8]`, then 4, 2, 1.
#[inline(always)]
pub fn tree_sum(l: &[f32; LANES]) -> f32 {
    let mut l = *l;
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            l[i] += l[i + width];
        }
        width /= 2;
    }
    l[0]
}

/// Instantiates a generic kernel for every set.
///
/// `simd_entries! { /// doc  pub mod NAME: FnType = kernel(a: A, b: B) -> R; }` expects `#[inline(always)] fn kernel<S: Simd>(s: S, a: A,
/// b: B) -> R` in scope and makes a module `NAME` of functions `portable`, `portable_fma` (the same plain code compiled with the CPU's
/// fused multiply-add), `avx2` and `avx512`, all `unsafe fn` that require the named features.
#[macro_export]
macro_rules! simd_entries {
    ($(#[$doc:meta])* $vis:vis mod $name:ident = $kernel:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)?;) => {
        $(#[$doc])*
        $vis mod $name {
            #[allow(unused_imports, reason = "argument types may be local to the caller")]
            use super::*;
            /// Plain Rust, on any CPU.
            ///
            /// # Safety
            /// As the kernel's own.
            pub(crate) unsafe fn portable($($arg: $ty),*) $(-> $ret)? {
                $kernel($crate::kernels::simd::portable::Portable, $($arg),*)
            }
            /// Plain Rust compiled for AVX2 and FMA.
            ///
            /// # Safety
            /// The CPU has AVX2, FMA and F16C; and as the kernel's own.
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,f16c")]
            pub(crate) unsafe fn portable_fma($($arg: $ty),*) $(-> $ret)? {
                $kernel($crate::kernels::simd::portable::Portable, $($arg),*)
            }
            /// AVX2.
            ///
            /// # Safety
            /// The CPU has AVX2, FMA and F16C; and as the kernel's own.
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,f16c")]
            pub(crate) unsafe fn avx2($($arg: $ty),*) $(-> $ret)? {
                // SAFETY: the caller vouches for the features.
                let s = unsafe { $crate::kernels::simd::avx2::Avx2::assume() };
                $kernel(s, $($arg),*)
            }
            /// AVX-512.
            ///
            /// # Safety
            /// The CPU has AVX-512 F, BW, VL, DQ and VNNI; and as the kernel's own.
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,fma,f16c")]
            pub(crate) unsafe fn avx512($($arg: $ty),*) $(-> $ret)? {
                // SAFETY: the caller vouches for the features.
                let s = unsafe { $crate::kernels::simd::avx512::Avx512::assume() };
                $kernel(s, $($arg),*)
            }
        }
    };
}
pub use simd_entries;

#[cfg(test)]
mod tests;
