//! Integer vectors whose lanes are rows, once per instruction set.
//!
//! A vector `V` holds four consecutive weight bytes, or one `i32`, of each of [`Isa::LANES`] rows. Weights enter by [`Isa::turn`], activations
//! by broadcasts of four bytes from memory inside [`Isa::dot`], so no step ever goes across lanes and every row is summed in the same order.

/// Rows of weights in memory: row `r` begins at `base + r * stride`.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    /// First row.
    pub(super) base: *const u8,
    /// Bytes from one row to the next.
    pub(super) stride: usize,
}

impl Rows {
    /// The rows, `bytes` further on.
    #[inline(always)]
    pub(super) fn skip(self, bytes: usize) -> Self {
        Self {
            base: self.base.wrapping_add(bytes),
            stride: self.stride,
        }
    }
}

/// Operations on lanes of rows. Implementors are tokens of instruction sets; the `unsafe` operations only ask that their pointers are good.
pub(super) trait Isa: Copy {
    /// Rows side by side.
    const LANES: usize;
    /// Tokens whose sums fit the registers.
    const TOKENS: usize;
    /// Whether [`Isa::dot`] takes any unsigned byte. Then every type with an offset uses 128: bytes of signed weights have 128 added, smaller
    /// weights are shifted up until their offset is 128, and dots begin at what activations hold for that.
    const WIDE: bool;
    /// Integers.
    type V: Copy;
    /// `f32`.
    type F: Copy;

    /// Dots with weights up to `max` that may be added up before [`Isa::end`].
    fn depth(max: u32, signed: bool) -> usize;

    /// Sixteen bytes of each row, as four vectors of four bytes.
    ///
    /// # Safety
    /// Sixteen bytes at the start of every lane's row can be read.
    unsafe fn turn(self, rows: Rows) -> [Self::V; 4];
    /// Zeros.
    fn zero(self) -> Self::V;
    /// The same word in all lanes.
    fn splat(self, x: u32) -> Self::V;
    /// `a & b`
    fn and(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a | b`
    fn or(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a ^ b`
    fn xor(self, a: Self::V, b: Self::V) -> Self::V;
    /// Words shifted right, zeros coming in.
    fn shr(self, a: Self::V, bits: u32) -> Self::V;
    /// Words shifted left.
    fn shl(self, a: Self::V, bits: u32) -> Self::V;
    /// Words shifted left by lanes; 0 from 32 bits on.
    fn shl_by(self, a: Self::V, bits: Self::V) -> Self::V;
    /// `a - b` by bytes, wrapping.
    fn sub8(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a - b` by words, wrapping.
    fn sub32(self, a: Self::V, b: Self::V) -> Self::V;
    /// Byte `i` is `table[index & 15]` of byte `i` of `index`, which is below 16.
    fn lookup(self, table: [u8; 16], index: Self::V) -> Self::V;
    /// In every word byte `i` is byte `from[i]`, 0 where that is negative.
    fn shuffle(self, a: Self::V, from: [i8; 4]) -> Self::V;
    /// Bytes of `a`, with `value` set where `bits & mask` is not zero; `mask` has one bit in each byte.
    fn set_where(self, a: Self::V, bits: Self::V, mask: Self::V, value: u8) -> Self::V;

    /// Byte `j` of every word.
    fn byte(self, bytes: Self::V, j: usize, signed: bool) -> Self::V;
    /// `acc + w · q`, four products per lane; `q` at most 127 in magnitude.
    ///
    /// # Safety
    /// Four quants can be read at `q`.
    unsafe fn dot(self, signed: bool, acc: Self::V, w: Self::V, q: *const i8) -> Self::V;
    /// Where dots start if their total starts at `total`.
    fn begin(self, total: Self::V) -> Self::V;
    /// The total with the dots so far: what was given to [`Isa::begin`] last, and all dots since.
    fn end(self, total: Self::V, dots: Self::V) -> Self::V;
    /// The word at `p` in all lanes, divided by `2^shift`, which must leave no rest.
    ///
    /// # Safety
    /// A word can be read at `p`.
    unsafe fn splat_at(self, p: *const i32, shift: u32) -> Self::V;

    /// Low halves of words as binary16, widened.
    fn f16(self, a: Self::V) -> Self::F;
    /// Bits as `f32`.
    fn bits(self, a: Self::V) -> Self::F;
    /// Nearest `f32`.
    fn float(self, a: Self::V) -> Self::F;
    /// Zeros.
    fn zero_f(self) -> Self::F;
    /// `a * b`
    fn mul(self, a: Self::F, b: Self::F) -> Self::F;
    /// `a * x`
    fn scale_f(self, a: Self::F, x: f32) -> Self::F;
    /// `a * b + c`, rounded once.
    fn fma(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    /// `a * x + c`, rounded once.
    fn fma_x(self, a: Self::F, x: f32, c: Self::F) -> Self::F;
    /// Loads integers.
    ///
    /// # Safety
    /// A vector can be read at `p`.
    unsafe fn load(self, p: *const u32) -> Self::V;
    /// Stores integers.
    ///
    /// # Safety
    /// A vector can be written at `p`.
    unsafe fn store(self, v: Self::V, p: *mut u32);
    /// Loads floats.
    ///
    /// # Safety
    /// A vector can be read at `p`.
    unsafe fn load_f(self, p: *const f32) -> Self::F;
    /// Stores floats.
    ///
    /// # Safety
    /// A vector can be written at `p`.
    unsafe fn store_f(self, v: Self::F, p: *mut f32);
    /// Asks for a line in the second cache; any address is good.
    fn prefetch(self, p: *const u8);
}
