//! AVX-512: one register.

#![allow(
    clippy::wildcard_imports,
    reason = "dozens of intrinsics, each named for what it does"
)]

use super::{LANES, Simd};
use std::arch::x86_64::*;

/// Token: the CPU has AVX-512 F, BW, VL, DQ and VNNI, AVX2, FMA and F16C.
#[derive(Clone, Copy, Debug)]
pub struct Avx512(());

impl Avx512 {
    /// The token, where the CPU has the features.
    pub fn new() -> Option<Self> {
        (is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vnni")
            && is_x86_feature_detected!("avx2")
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

const ROUND: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

#[inline(always)]
fn mask(len: usize) -> __mmask16 {
    if len >= LANES {
        0xffff
    } else {
        (1u16 << len) - 1
    }
}

// SAFETY of every block below: the token vouches for the features; references cover the bytes that are read or written, and masks keep
// partial accesses inside their slice.
impl Simd for Avx512 {
    type F = __m512;

    #[inline(always)]
    fn splat(self, x: f32) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_set1_ps(x) }
    }
    #[inline(always)]
    fn load(self, src: &[f32; LANES]) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_loadu_ps(src.as_ptr()) }
    }
    #[inline(always)]
    fn load_partial(self, src: &[f32]) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_maskz_loadu_ps(mask(src.len()), src.as_ptr()) }
    }
    #[inline(always)]
    fn load_f16(self, src: &[u16; LANES]) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(src.as_ptr().cast())) }
    }
    #[inline(always)]
    fn load_bf16(self, src: &[u16; LANES]) -> __m512 {
        // SAFETY: see above.
        unsafe {
            let wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(src.as_ptr().cast()));
            _mm512_castsi512_ps(_mm512_slli_epi32::<16>(wide))
        }
    }
    #[inline(always)]
    fn load_i8(self, src: &[i8; LANES]) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(src.as_ptr().cast()))) }
    }
    #[inline(always)]
    fn store(self, v: __m512, dst: &mut [f32; LANES]) {
        // SAFETY: see above.
        unsafe { _mm512_storeu_ps(dst.as_mut_ptr(), v) }
    }
    #[inline(always)]
    fn store_partial(self, v: __m512, dst: &mut [f32]) {
        // SAFETY: see above.
        unsafe { _mm512_mask_storeu_ps(dst.as_mut_ptr(), mask(dst.len()), v) }
    }
    #[inline(always)]
    fn store_f16(self, v: __m512, dst: &mut [u16; LANES]) {
        // SAFETY: see above.
        unsafe { _mm256_storeu_si256(dst.as_mut_ptr().cast(), _mm512_cvtps_ph::<ROUND>(v)) }
    }
    #[inline(always)]
    fn store_i8(self, v: __m512, dst: &mut [i8; LANES]) {
        // SAFETY: see above.
        unsafe {
            _mm_storeu_si128(
                dst.as_mut_ptr().cast(),
                _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(v)),
            );
        }
    }

    #[inline(always)]
    fn add(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_add_ps(a, b) }
    }
    #[inline(always)]
    fn sub(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_sub_ps(a, b) }
    }
    #[inline(always)]
    fn mul(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_mul_ps(a, b) }
    }
    #[inline(always)]
    fn div(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_div_ps(a, b) }
    }
    #[inline(always)]
    fn fma(self, a: __m512, b: __m512, c: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }
    #[inline(always)]
    fn max(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_max_ps(a, b) }
    }
    #[inline(always)]
    fn min(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_min_ps(a, b) }
    }
    #[inline(always)]
    fn abs(self, a: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_abs_ps(a) }
    }
    #[inline(always)]
    fn round(self, a: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_roundscale_ps::<ROUND>(a) }
    }
    #[inline(always)]
    fn scale_pow2(self, a: __m512, n: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe {
            let shifted = _mm512_slli_epi32::<23>(_mm512_cvtps_epi32(n));
            _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(a), shifted))
        }
    }
    #[inline(always)]
    fn select_lt(self, a: __m512, b: __m512, x: __m512, y: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_LT_OQ>(a, b), y, x) }
    }
    #[inline(always)]
    fn sum(self, v: __m512) -> f32 {
        // SAFETY: see above.
        unsafe {
            let s8 = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps::<1>(v));
            let s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps::<1>(s8));
            let s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
            _mm_cvtss_f32(_mm_add_ss(s2, _mm_shuffle_ps::<1>(s2, s2)))
        }
    }
}
