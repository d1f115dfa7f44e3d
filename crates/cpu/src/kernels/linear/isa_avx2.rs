//! AVX2 with FMA and F16C: eight rows in one register.
//!
//! Products of bytes are summed by pairs to 16 bits; as many of these sums as cannot overflow are added up before they are widened.

use super::isa::{Isa, Rows};
use super::isa_avx512::word_shuffle;
use crate::kernels::simd::avx2::Avx2;
use std::arch::x86_64::*;

/// Sixteen bytes in each half of a register.
#[inline(always)]
fn halves(bytes: [u8; 16]) -> __m256i {
    // SAFETY: the caller holds the token; sixteen bytes are read.
    unsafe { _mm256_broadcastsi128_si256(_mm_loadu_si128(bytes.as_ptr().cast())) }
}

/// Sixteen bytes from each of two rows, `offset` on.
///
/// # Safety
/// They can be read, and the caller holds the token.
#[inline(always)]
unsafe fn two(rows: [*const u8; 2], offset: usize) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe {
        let [a, b] = rows;
        let v = _mm256_castsi128_si256(_mm_loadu_si128(a.wrapping_add(offset).cast()));
        _mm256_inserti128_si256::<1>(v, _mm_loadu_si128(b.wrapping_add(offset).cast()))
    }
}

// SAFETY of every block below: the token vouches for the features; pointers are the caller's promise.
impl Isa for Avx2 {
    const LANES: usize = 8;
    const TOKENS: usize = 4;
    const WIDE: bool = false;
    type V = __m256i;
    type F = __m256;

    /// A pair sum is at most `2 * max * 127`, or `2 * 128 * 127` for signed weights.
    #[inline(always)]
    fn depth(max: u32, signed: bool) -> usize {
        if signed {
            1
        } else {
            (32767 / (2 * max * 127)) as usize
        }
    }

    /// Rows 0 and 4 side by side in one register, then 1 and 5 and so on; then words are transposed within each half, so that rows come out in
    /// order.
    #[inline(always)]
    unsafe fn turn(self, rows: Rows) -> [__m256i; 4] {
        // SAFETY: see above.
        unsafe {
            let s = rows.stride;
            let p = [rows.base, rows.base.wrapping_add(4 * s)];
            let (a, b, c, d) = (two(p, 0), two(p, s), two(p, 2 * s), two(p, 3 * s));
            let ab = _mm256_unpacklo_epi32(a, b);
            let cd = _mm256_unpacklo_epi32(c, d);
            let ab2 = _mm256_unpackhi_epi32(a, b);
            let cd2 = _mm256_unpackhi_epi32(c, d);
            [
                _mm256_unpacklo_epi64(ab, cd),
                _mm256_unpackhi_epi64(ab, cd),
                _mm256_unpacklo_epi64(ab2, cd2),
                _mm256_unpackhi_epi64(ab2, cd2),
            ]
        }
    }
    #[inline(always)]
    fn zero(self) -> __m256i {
        // SAFETY: see above.
        unsafe { _mm256_setzero_si256() }
    }
    #[inline(always)]
    fn splat(self, x: u32) -> __m256i {
        // SAFETY: see above.
        unsafe { _mm256_set1_epi32(x as i32) }
    }
    #[inline(always)]
    fn and(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: see above.
        unsafe { _mm256_and_si256(a, b) }
    }
    #[inline(always)]
    fn or(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: see above.
        unsafe { _mm256_or_si256(a, b) }
    }
    #[inline(always)]
    fn xor(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: see above.
        unsafe { _mm256_xor_si256(a, b) }
    }
    #[inline(always)]
    fn shr(self, a: __m256i, bits: u32) -> __m256i {
        // SAFETY: see above.
        unsafe { _mm256_srl_epi32(a, _mm_cvtsi32_si128(bits as i32)) }
    }
    #[inline(always)]
    fn shl(self, a: __m256i, bits: u32) -> __m256i {
        // SAFETY: see above.
        unsafe { _mm256_sll_epi32(a, _mm_cvtsi32_si128(bits as i32)) }
    }
    #[inline(always)]
    fn shl_by(self, a: __m256i, bits: __m256i) -> __m256i {
        // SAFETY: see above.
        unsafe { _mm256_sllv_epi32(a, bits) }
    }
    #[inline(always)]
    fn sub8(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: see above.
        unsafe { _mm256_sub_epi8(a, b) }
    }
    #[inline(always)]
    fn sub32(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: see above.
        unsafe { _mm256_sub_epi32(a, b) }
    }
    #[inline(always)]
    fn lookup(self, table: [u8; 16], index: __m256i) -> __m256i {
        // SAFETY: see above.
        unsafe { _mm256_shuffle_epi8(halves(table), index) }
    }
    #[inline(always)]
    fn shuffle(self, a: __m256i, from: [i8; 4]) -> __m256i {
        // SAFETY: see above.
        unsafe { _mm256_shuffle_epi8(a, halves(word_shuffle(from))) }
    }
    #[inline(always)]
    fn set_where(self, a: __m256i, bits: __m256i, mask: __m256i, value: u8) -> __m256i {
        // SAFETY: see above.
        unsafe {
            let set = _mm256_cmpeq_epi8(_mm256_and_si256(bits, mask), mask);
            let value = _mm256_and_si256(set, _mm256_set1_epi8(value as i8));
            _mm256_or_si256(a, value)
        }
    }

    #[inline(always)]
    fn byte(self, bytes: __m256i, j: usize, signed: bool) -> __m256i {
        // SAFETY: see above.
        unsafe {
            if signed {
                _mm256_srai_epi32::<24>(self.shl(bytes, 24 - 8 * j as u32))
            } else {
                _mm256_and_si256(self.shr(bytes, 8 * j as u32), _mm256_set1_epi32(0xff))
            }
        }
    }
    /// Adds to sums of 16 bits, of which each word holds two.
    #[inline(always)]
    unsafe fn dot(self, signed: bool, acc: __m256i, w: __m256i, q: *const i8) -> __m256i {
        // SAFETY: see above.
        unsafe {
            let q = _mm256_set1_epi32(q.cast::<i32>().read_unaligned());
            let pairs = if signed {
                _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(q, w))
            } else {
                _mm256_maddubs_epi16(w, q)
            };
            _mm256_add_epi16(acc, pairs)
        }
    }
    #[inline(always)]
    fn begin(self, _total: __m256i) -> __m256i {
        self.zero()
    }
    #[inline(always)]
    fn end(self, total: __m256i, dots: __m256i) -> __m256i {
        // SAFETY: see above.
        unsafe { _mm256_add_epi32(total, _mm256_madd_epi16(dots, _mm256_set1_epi16(1))) }
    }
    #[inline(always)]
    unsafe fn splat_at(self, p: *const i32, shift: u32) -> __m256i {
        // SAFETY: see above.
        unsafe {
            _mm256_sra_epi32(
                _mm256_set1_epi32(p.read_unaligned()),
                _mm_cvtsi32_si128(shift as i32),
            )
        }
    }

    #[inline(always)]
    fn f16(self, a: __m256i) -> __m256 {
        // SAFETY: see above.
        unsafe {
            let low = _mm256_and_si256(a, _mm256_set1_epi32(0xffff));
            let packed = _mm256_permute4x64_epi64::<0b10_00>(_mm256_packus_epi32(low, low));
            _mm256_cvtph_ps(_mm256_castsi256_si128(packed))
        }
    }
    #[inline(always)]
    fn bits(self, a: __m256i) -> __m256 {
        // SAFETY: see above.
        unsafe { _mm256_castsi256_ps(a) }
    }
    #[inline(always)]
    fn float(self, a: __m256i) -> __m256 {
        // SAFETY: see above.
        unsafe { _mm256_cvtepi32_ps(a) }
    }
    #[inline(always)]
    fn zero_f(self) -> __m256 {
        // SAFETY: see above.
        unsafe { _mm256_setzero_ps() }
    }
    #[inline(always)]
    fn mul(self, a: __m256, b: __m256) -> __m256 {
        // SAFETY: see above.
        unsafe { _mm256_mul_ps(a, b) }
    }
    #[inline(always)]
    fn scale_f(self, a: __m256, x: f32) -> __m256 {
        // SAFETY: see above.
        unsafe { _mm256_mul_ps(a, _mm256_set1_ps(x)) }
    }
    #[inline(always)]
    fn fma(self, a: __m256, b: __m256, c: __m256) -> __m256 {
        // SAFETY: see above.
        unsafe { _mm256_fmadd_ps(a, b, c) }
    }
    #[inline(always)]
    fn fma_x(self, a: __m256, x: f32, c: __m256) -> __m256 {
        // SAFETY: see above.
        unsafe { _mm256_fmadd_ps(a, _mm256_set1_ps(x), c) }
    }
    #[inline(always)]
    unsafe fn load(self, p: *const u32) -> __m256i {
        // SAFETY: see above.
        unsafe { _mm256_loadu_si256(p.cast()) }
    }
    #[inline(always)]
    unsafe fn store(self, v: __m256i, p: *mut u32) {
        // SAFETY: see above.
        unsafe { _mm256_storeu_si256(p.cast(), v) }
    }
    #[inline(always)]
    unsafe fn load_f(self, p: *const f32) -> __m256 {
        // SAFETY: see above.
        unsafe { _mm256_loadu_ps(p) }
    }
    #[inline(always)]
    unsafe fn store_f(self, v: __m256, p: *mut f32) {
        // SAFETY: see above.
        unsafe { _mm256_storeu_ps(p, v) }
    }
    #[inline(always)]
    fn prefetch(self, p: *const u8) {
        // SAFETY: see above.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(p.cast()) }
    }
}
