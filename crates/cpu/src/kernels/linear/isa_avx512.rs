//! AVX-512 with VNNI: sixteen rows in one register.

use super::isa::{Isa, Rows};
use crate::kernels::simd::avx512::Avx512;
use std::arch::x86_64::*;

/// Sixteen bytes in each quarter of a register.
#[inline(always)]
fn quarters(bytes: [u8; 16]) -> __m512i {
    // SAFETY: the caller holds the token; sixteen bytes are read.
    unsafe { _mm512_broadcast_i32x4(_mm_loadu_si128(bytes.as_ptr().cast())) }
}

/// Sixteen bytes from each of four rows, `offset` on.
///
/// # Safety
/// They can be read, and the caller holds the token.
#[inline(always)]
unsafe fn four(rows: [*const u8; 4], offset: usize) -> __m512i {
    // SAFETY: the caller's promise.
    unsafe {
        let [a, b, c, d] = rows;
        let v = _mm512_castsi128_si512(_mm_loadu_si128(a.wrapping_add(offset).cast()));
        let v = _mm512_inserti32x4::<1>(v, _mm_loadu_si128(b.wrapping_add(offset).cast()));
        let v = _mm512_inserti32x4::<2>(v, _mm_loadu_si128(c.wrapping_add(offset).cast()));
        _mm512_inserti32x4::<3>(v, _mm_loadu_si128(d.wrapping_add(offset).cast()))
    }
}

/// The control bytes of a shuffle that does the same in every word.
#[inline(always)]
pub(super) const fn word_shuffle(from: [i8; 4]) -> [u8; 16] {
    let mut control = [0x80; 16];
    let mut i = 0;
    while i < 16 {
        let f = from[i % 4];
        if f >= 0 {
            control[i] = f as u8 + (i / 4 * 4) as u8;
        }
        i += 1;
    }
    control
}

// SAFETY of every block below: the token vouches for the features; pointers are the caller's promise.
impl Isa for Avx512 {
    const LANES: usize = 16;
    const TOKENS: usize = 8;
    const WIDE: bool = true;
    type V = __m512i;
    type F = __m512;

    #[inline(always)]
    fn depth(_max: u32, _signed: bool) -> usize {
        usize::MAX
    }

    /// Rows 0, 4, 8, 12 side by side in one register, then the next four and so on; then words are transposed within each quarter, so that
    /// rows come out in order.
    #[inline(always)]
    unsafe fn turn(self, rows: Rows) -> [__m512i; 4] {
        // SAFETY: see above.
        unsafe {
            let s = rows.stride;
            let p = [
                rows.base,
                rows.base.wrapping_add(4 * s),
                rows.base.wrapping_add(8 * s),
                rows.base.wrapping_add(12 * s),
            ];
            let (a, b, c, d) = (four(p, 0), four(p, s), four(p, 2 * s), four(p, 3 * s));
            let ab = _mm512_unpacklo_epi32(a, b);
            let cd = _mm512_unpacklo_epi32(c, d);
            let ab2 = _mm512_unpackhi_epi32(a, b);
            let cd2 = _mm512_unpackhi_epi32(c, d);
            [
                _mm512_unpacklo_epi64(ab, cd),
                _mm512_unpackhi_epi64(ab, cd),
                _mm512_unpacklo_epi64(ab2, cd2),
                _mm512_unpackhi_epi64(ab2, cd2),
            ]
        }
    }
    #[inline(always)]
    fn zero(self) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_setzero_si512() }
    }
    #[inline(always)]
    fn splat(self, x: u32) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_set1_epi32(x as i32) }
    }
    #[inline(always)]
    fn and(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_and_si512(a, b) }
    }
    #[inline(always)]
    fn or(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_or_si512(a, b) }
    }
    #[inline(always)]
    fn xor(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_xor_si512(a, b) }
    }
    #[inline(always)]
    fn shr(self, a: __m512i, bits: u32) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_srl_epi32(a, _mm_cvtsi32_si128(bits as i32)) }
    }
    #[inline(always)]
    fn shl(self, a: __m512i, bits: u32) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_sll_epi32(a, _mm_cvtsi32_si128(bits as i32)) }
    }
    #[inline(always)]
    fn shl_by(self, a: __m512i, bits: __m512i) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_sllv_epi32(a, bits) }
    }
    #[inline(always)]
    fn sub8(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_sub_epi8(a, b) }
    }
    #[inline(always)]
    fn sub32(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_sub_epi32(a, b) }
    }
    #[inline(always)]
    fn lookup(self, table: [u8; 16], index: __m512i) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_shuffle_epi8(quarters(table), index) }
    }
    #[inline(always)]
    fn shuffle(self, a: __m512i, from: [i8; 4]) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_shuffle_epi8(a, quarters(word_shuffle(from))) }
    }
    #[inline(always)]
    fn set_where(self, a: __m512i, bits: __m512i, mask: __m512i, value: u8) -> __m512i {
        // SAFETY: see above.
        unsafe {
            let set = _mm512_test_epi8_mask(bits, mask);
            _mm512_mask_add_epi8(a, set, a, _mm512_set1_epi8(value as i8))
        }
    }

    #[inline(always)]
    fn byte(self, bytes: __m512i, j: usize, signed: bool) -> __m512i {
        // SAFETY: see above.
        unsafe {
            if signed {
                _mm512_srai_epi32::<24>(self.shl(bytes, 24 - 8 * j as u32))
            } else {
                _mm512_and_si512(self.shr(bytes, 8 * j as u32), _mm512_set1_epi32(0xff))
            }
        }
    }
    #[inline(always)]
    unsafe fn dot(self, _signed: bool, acc: __m512i, w: __m512i, q: *const i8) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_dpbusd_epi32(acc, w, _mm512_set1_epi32(q.cast::<i32>().read_unaligned())) }
    }
    #[inline(always)]
    fn begin(self, total: __m512i) -> __m512i {
        total
    }
    #[inline(always)]
    fn end(self, _total: __m512i, dots: __m512i) -> __m512i {
        dots
    }
    #[inline(always)]
    unsafe fn splat_at(self, p: *const i32, shift: u32) -> __m512i {
        // SAFETY: see above.
        unsafe {
            _mm512_sra_epi32(
                _mm512_set1_epi32(p.read_unaligned()),
                _mm_cvtsi32_si128(shift as i32),
            )
        }
    }

    #[inline(always)]
    fn f16(self, a: __m512i) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_cvtph_ps(_mm512_cvtepi32_epi16(a)) }
    }
    #[inline(always)]
    fn bits(self, a: __m512i) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_castsi512_ps(a) }
    }
    #[inline(always)]
    fn float(self, a: __m512i) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_cvtepi32_ps(a) }
    }
    #[inline(always)]
    fn zero_f(self) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_setzero_ps() }
    }
    #[inline(always)]
    fn mul(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_mul_ps(a, b) }
    }
    #[inline(always)]
    fn scale_f(self, a: __m512, x: f32) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_mul_ps(a, _mm512_set1_ps(x)) }
    }
    #[inline(always)]
    fn fma(self, a: __m512, b: __m512, c: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }
    #[inline(always)]
    fn fma_x(self, a: __m512, x: f32, c: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_fmadd_ps(a, _mm512_set1_ps(x), c) }
    }
    #[inline(always)]
    unsafe fn load(self, p: *const u32) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_loadu_si512(p.cast()) }
    }
    #[inline(always)]
    unsafe fn store(self, v: __m512i, p: *mut u32) {
        // SAFETY: see above.
        unsafe { _mm512_storeu_si512(p.cast(), v) }
    }
    #[inline(always)]
    unsafe fn load_f(self, p: *const f32) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_loadu_ps(p) }
    }
    #[inline(always)]
    unsafe fn store_f(self, v: __m512, p: *mut f32) {
        // SAFETY: see above.
        unsafe { _mm512_storeu_ps(p, v) }
    }
    #[inline(always)]
    fn prefetch(self, p: *const u8) {
        // SAFETY: see above.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(p.cast()) }
    }
}
