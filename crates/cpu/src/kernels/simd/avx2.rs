//! AVX2 with FMA and F16C: two registers of eight lanes.

#![allow(
    clippy::wildcard_imports,
    reason = "dozens of intrinsics, each named for what it does"
)]

use super::{LANES, Simd};
use std::arch::x86_64::*;

/// Token: the CPU has AVX2, FMA and F16C.
#[derive(Clone, Copy, Debug)]
pub struct Avx2(());

impl Avx2 {
    /// The token, where the CPU has the features.
    pub fn new() -> Option<Self> {
        (is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c"))
        .then_some(Self(()))
    }

    /// The token, without looking.
    ///
    /// # Safety
    /// The CPU has the features that [`Self::new`] looks for.
    #[inline(always)]
    pub const unsafe fn assume() -> Self {
        Self(())
    }
}

/// Lanes 0 to 7 and 8 to 15.
pub type F = (__m256, __m256);

const ROUND: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

/// Eight `i32` lanes to eight `i8`.
#[inline(always)]
unsafe fn pack_i8(lo: __m256i, hi: __m256i) -> __m128i {
    // SAFETY: the caller holds the token.
    unsafe {
        let words = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi32(lo, hi));
        _mm_packs_epi16(
            _mm256_castsi256_si128(words),
            _mm256_extracti128_si256::<1>(words),
        )
    }
}

// SAFETY of every block below: the token vouches for the features, and array references cover the bytes that are read or written.
impl Simd for Avx2 {
    type F = F;

    #[inline(always)]
    fn splat(self, x: f32) -> F {
        // SAFETY: see above.
        unsafe { (_mm256_set1_ps(x), _mm256_set1_ps(x)) }
    }
    #[inline(always)]
    fn load(self, src: &[f32; LANES]) -> F {
        // SAFETY: see above.
        unsafe {
            (
                _mm256_loadu_ps(src.as_ptr()),
                _mm256_loadu_ps(src.as_ptr().add(8)),
            )
        }
    }
    #[inline(always)]
    fn load_partial(self, src: &[f32]) -> F {
        let mut lanes = [0.0; LANES];
        for (l, x) in lanes.iter_mut().zip(src) {
            *l = *x;
        }
        self.load(&lanes)
    }
    #[inline(always)]
    fn load_f16(self, src: &[u16; LANES]) -> F {
        // SAFETY: see above.
        unsafe {
            let p: *const __m128i = src.as_ptr().cast();
            (
                _mm256_cvtph_ps(_mm_loadu_si128(p)),
                _mm256_cvtph_ps(_mm_loadu_si128(p.add(1))),
            )
        }
    }
    #[inline(always)]
    fn load_bf16(self, src: &[u16; LANES]) -> F {
        // SAFETY: see above.
        unsafe {
            let p: *const __m128i = src.as_ptr().cast();
            let lo = _mm256_cvtepu16_epi32(_mm_loadu_si128(p));
            let hi = _mm256_cvtepu16_epi32(_mm_loadu_si128(p.add(1)));
            (
                _mm256_castsi256_ps(_mm256_slli_epi32::<16>(lo)),
                _mm256_castsi256_ps(_mm256_slli_epi32::<16>(hi)),
            )
        }
    }
    #[inline(always)]
    fn load_i8(self, src: &[i8; LANES]) -> F {
        // SAFETY: see above.
        unsafe {
            let bytes = _mm_loadu_si128(src.as_ptr().cast());
            let lo = _mm256_cvtepi8_epi32(bytes);
            let hi = _mm256_cvtepi8_epi32(_mm_srli_si128::<8>(bytes));
            (_mm256_cvtepi32_ps(lo), _mm256_cvtepi32_ps(hi))
        }
    }
    #[inline(always)]
    fn store(self, v: F, dst: &mut [f32; LANES]) {
        // SAFETY: see above.
        unsafe {
            _mm256_storeu_ps(dst.as_mut_ptr(), v.0);
            _mm256_storeu_ps(dst.as_mut_ptr().add(8), v.1);
        }
    }
    #[inline(always)]
    fn store_partial(self, v: F, dst: &mut [f32]) {
        let mut lanes = [0.0; LANES];
        self.store(v, &mut lanes);
        for (d, x) in dst.iter_mut().zip(lanes) {
            *d = x;
        }
    }
    #[inline(always)]
    fn store_f16(self, v: F, dst: &mut [u16; LANES]) {
        // SAFETY: see above.
        unsafe {
            let p: *mut __m128i = dst.as_mut_ptr().cast();
            _mm_storeu_si128(p, _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(v.0));
            _mm_storeu_si128(p.add(1), _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(v.1));
        }
    }
    #[inline(always)]
    fn store_i8(self, v: F, dst: &mut [i8; LANES]) {
        // SAFETY: see above.
        unsafe {
            _mm_storeu_si128(
                dst.as_mut_ptr().cast(),
                pack_i8(_mm256_cvtps_epi32(v.0), _mm256_cvtps_epi32(v.1)),
            );
        }
    }

    #[inline(always)]
    fn add(self, a: F, b: F) -> F {
        // SAFETY: see above.
        unsafe { (_mm256_add_ps(a.0, b.0), _mm256_add_ps(a.1, b.1)) }
    }
    #[inline(always)]
    fn sub(self, a: F, b: F) -> F {
        // SAFETY: see above.
        unsafe { (_mm256_sub_ps(a.0, b.0), _mm256_sub_ps(a.1, b.1)) }
    }
    #[inline(always)]
    fn mul(self, a: F, b: F) -> F {
        // SAFETY: see above.
        unsafe { (_mm256_mul_ps(a.0, b.0), _mm256_mul_ps(a.1, b.1)) }
    }
    #[inline(always)]
    fn div(self, a: F, b: F) -> F {
        // SAFETY: see above.
        unsafe { (_mm256_div_ps(a.0, b.0), _mm256_div_ps(a.1, b.1)) }
    }
    #[inline(always)]
    fn fma(self, a: F, b: F, c: F) -> F {
        // SAFETY: see above.
        unsafe {
            (
                _mm256_fmadd_ps(a.0, b.0, c.0),
                _mm256_fmadd_ps(a.1, b.1, c.1),
            )
        }
    }
    #[inline(always)]
    fn max(self, a: F, b: F) -> F {
        // SAFETY: see above.
        unsafe { (_mm256_max_ps(a.0, b.0), _mm256_max_ps(a.1, b.1)) }
    }
    #[inline(always)]
    fn min(self, a: F, b: F) -> F {
        // SAFETY: see above.
        unsafe { (_mm256_min_ps(a.0, b.0), _mm256_min_ps(a.1, b.1)) }
    }
    #[inline(always)]
    fn abs(self, a: F) -> F {
        // SAFETY: see above.
        unsafe {
            let sign = _mm256_set1_ps(-0.0);
            (_mm256_andnot_ps(sign, a.0), _mm256_andnot_ps(sign, a.1))
        }
    }
    #[inline(always)]
    fn round(self, a: F) -> F {
        // SAFETY: see above.
        unsafe { (_mm256_round_ps::<ROUND>(a.0), _mm256_round_ps::<ROUND>(a.1)) }
    }
    #[inline(always)]
    fn scale_pow2(self, a: F, n: F) -> F {
        // SAFETY: see above.
        unsafe {
            let one = |a: __m256, n: __m256| {
                let shifted = _mm256_slli_epi32::<23>(_mm256_cvtps_epi32(n));
                _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(a), shifted))
            };
            (one(a.0, n.0), one(a.1, n.1))
        }
    }
    #[inline(always)]
    fn select_lt(self, a: F, b: F, x: F, y: F) -> F {
        // SAFETY: see above.
        unsafe {
            (
                _mm256_blendv_ps(y.0, x.0, _mm256_cmp_ps::<_CMP_LT_OQ>(a.0, b.0)),
                _mm256_blendv_ps(y.1, x.1, _mm256_cmp_ps::<_CMP_LT_OQ>(a.1, b.1)),
            )
        }
    }
    #[inline(always)]
    fn sum(self, v: F) -> f32 {
        // SAFETY: see above.
        unsafe {
            let s8 = _mm256_add_ps(v.0, v.1);
            let s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps::<1>(s8));
            let s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
            _mm_cvtss_f32(_mm_add_ss(s2, _mm_shuffle_ps::<1>(s2, s2)))
        }
    }
}
