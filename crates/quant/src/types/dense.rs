//! The types without blocks: floats and integers, one after another, little endian.

use crate::codec::{blocks, expect, wrong_activation};
use crate::float::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
use crate::{ActivationKind, ActivationRow, Codec, ElementType, QuantError, ScaleField, ScaleKind};

/// Lanes of the dot product: enough for the widest vector unit.
const LANES: usize = 16;

/// Decodes one value after another.
#[inline(always)]
fn dequantize<const B: usize>(
    element_type: ElementType,
    bytes: &[u8],
    out: &mut [f32],
    to_f32: impl Fn([u8; B]) -> f32,
) -> Result<(), QuantError> {
    let values = blocks::<B>(element_type, bytes)?;
    expect(element_type, "output", out.len(), values.len())?;
    for (o, &v) in out.iter_mut().zip(values) {
        *o = to_f32(v);
    }
    Ok(())
}

/// Encodes one value after another.
fn quantize<const B: usize>(
    element_type: ElementType,
    x: &[f32],
    out: &mut [u8],
    from_f32: impl Fn(f32) -> [u8; B],
) -> Result<(), QuantError> {
    // An overflow here could not equal the length of a slice.
    expect(element_type, "output", out.len(), x.len().saturating_mul(B))?;
    for (o, &v) in out.as_chunks_mut::<B>().0.iter_mut().zip(x) {
        *o = from_f32(v);
    }
    Ok(())
}

/// `lane[c % 16] = fma(w[c], x[c], lane[c % 16])` with `c` ascending, then the lanes are added pairwise: `i` and `i + 8`, `i` and `i + 4`,
/// `i` and `i + 2`, 0 and 1.
#[inline(always)]
fn dot<const B: usize>(
    element_type: ElementType,
    row: &[u8],
    x: ActivationRow<'_>,
    to_f32: impl Fn([u8; B]) -> f32,
) -> Result<f32, QuantError> {
    let ActivationRow::F32(x) = x else {
        return Err(wrong_activation(element_type, ActivationKind::F32, &x));
    };
    let weights = blocks::<B>(element_type, row)?;
    expect(element_type, "activations", x.len(), weights.len())?;
    let (weights, last_weights) = weights.as_chunks::<LANES>();
    let (x, last_x) = x.as_chunks::<LANES>();
    let mut lanes = [0.0f32; LANES];
    for (weights, x) in weights.iter().zip(x) {
        for i in 0..LANES {
            lanes[i] = to_f32(weights[i]).mul_add(x[i], lanes[i]);
        }
    }
    for ((lane, &w), &x) in lanes.iter_mut().zip(last_weights).zip(last_x) {
        *lane = to_f32(w).mul_add(x, *lane);
    }
    Ok(sum_lanes(lanes))
}

/// The fixed tree that adds sixteen lanes.
#[inline(always)]
pub fn sum_lanes(l: [f32; LANES]) -> f32 {
    let s8: [f32; 8] = std::array::from_fn(|i| l[i] + l[i + 8]);
    let s4: [f32; 4] = std::array::from_fn(|i| s8[i] + s8[i + 4]);
    let s2 = [s4[0] + s4[2], s4[1] + s4[3]];
    s2[0] + s2[1]
}

/// The whole element is a float of this format.
const fn float(kind: ScaleKind) -> ScaleField {
    ScaleField { offset: 0, kind }
}

/// The arithmetic of [`ElementType::F32`].
#[derive(Debug, Clone, Copy)]
pub struct F32;

impl Codec for F32 {
    fn element_type(&self) -> ElementType {
        ElementType::F32
    }

    fn dequantize(&self, bytes: &[u8], out: &mut [f32]) -> Result<(), QuantError> {
        dequantize(self.element_type(), bytes, out, f32::from_le_bytes)
    }

    fn quantize(&self, x: &[f32], out: &mut [u8]) -> Result<(), QuantError> {
        quantize(self.element_type(), x, out, f32::to_le_bytes)
    }

    fn activation(&self) -> ActivationKind {
        ActivationKind::F32
    }

    #[inline(always)]
    fn dot(&self, row: &[u8], x: ActivationRow<'_>) -> Result<f32, QuantError> {
        dot(self.element_type(), row, x, f32::from_le_bytes)
    }

    fn scale_fields(&self) -> &'static [ScaleField] {
        const FIELDS: &[ScaleField] = &[float(ScaleKind::F32)];
        FIELDS
    }
}

/// The arithmetic of [`ElementType::F16`].
#[derive(Debug, Clone, Copy)]
pub struct F16;

impl Codec for F16 {
    fn element_type(&self) -> ElementType {
        ElementType::F16
    }

    fn dequantize(&self, bytes: &[u8], out: &mut [f32]) -> Result<(), QuantError> {
        dequantize(self.element_type(), bytes, out, |b| {
            f16_to_f32(u16::from_le_bytes(b))
        })
    }

    fn quantize(&self, x: &[f32], out: &mut [u8]) -> Result<(), QuantError> {
        quantize(self.element_type(), x, out, |v| f32_to_f16(v).to_le_bytes())
    }

    fn activation(&self) -> ActivationKind {
        ActivationKind::F32
    }

    #[inline(always)]
    fn dot(&self, row: &[u8], x: ActivationRow<'_>) -> Result<f32, QuantError> {
        dot(self.element_type(), row, x, |b| {
            f16_to_f32(u16::from_le_bytes(b))
        })
    }

    fn scale_fields(&self) -> &'static [ScaleField] {
        const FIELDS: &[ScaleField] = &[float(ScaleKind::F16)];
        FIELDS
    }
}

/// The arithmetic of [`ElementType::BF16`].
#[derive(Debug, Clone, Copy)]
pub struct BF16;

impl Codec for BF16 {
    fn element_type(&self) -> ElementType {
        ElementType::BF16
    }

    fn dequantize(&self, bytes: &[u8], out: &mut [f32]) -> Result<(), QuantError> {
        dequantize(self.element_type(), bytes, out, |b| {
            bf16_to_f32(u16::from_le_bytes(b))
        })
    }

    fn quantize(&self, x: &[f32], out: &mut [u8]) -> Result<(), QuantError> {
        quantize(self.element_type(), x, out, |v| {
            f32_to_bf16(v).to_le_bytes()
        })
    }

    fn activation(&self) -> ActivationKind {
        ActivationKind::F32
    }

    #[inline(always)]
    fn dot(&self, row: &[u8], x: ActivationRow<'_>) -> Result<f32, QuantError> {
        dot(self.element_type(), row, x, |b| {
            bf16_to_f32(u16::from_le_bytes(b))
        })
    }

    fn scale_fields(&self) -> &'static [ScaleField] {
        const FIELDS: &[ScaleField] = &[float(ScaleKind::BF16)];
        FIELDS
    }
}

/// The arithmetic of [`ElementType::F64`].
#[derive(Debug, Clone, Copy)]
pub struct F64;

impl Codec for F64 {
    fn element_type(&self) -> ElementType {
        ElementType::F64
    }

    fn dequantize(&self, bytes: &[u8], out: &mut [f32]) -> Result<(), QuantError> {
        dequantize(self.element_type(), bytes, out, |b| {
            f64::from_le_bytes(b) as f32
        })
    }

    fn activation(&self) -> ActivationKind {
        ActivationKind::F32
    }

    #[inline(always)]
    fn dot(&self, row: &[u8], x: ActivationRow<'_>) -> Result<f32, QuantError> {
        dot(self.element_type(), row, x, |b| {
            f64::from_le_bytes(b) as f32
        })
    }

    fn scale_fields(&self) -> &'static [ScaleField] {
        const FIELDS: &[ScaleField] = &[float(ScaleKind::F64)];
        FIELDS
    }
}

/// The arithmetic of [`ElementType::I8`].
#[derive(Debug, Clone, Copy)]
pub struct I8;

impl Codec for I8 {
    fn element_type(&self) -> ElementType {
        ElementType::I8
    }

    fn dequantize(&self, bytes: &[u8], out: &mut [f32]) -> Result<(), QuantError> {
        dequantize(self.element_type(), bytes, out, |b| {
            f32::from(i8::from_le_bytes(b))
        })
    }

    fn activation(&self) -> ActivationKind {
        ActivationKind::F32
    }

    #[inline(always)]
    fn dot(&self, row: &[u8], x: ActivationRow<'_>) -> Result<f32, QuantError> {
        dot(self.element_type(), row, x, |b| {
            f32::from(i8::from_le_bytes(b))
        })
    }

    fn scale_fields(&self) -> &'static [ScaleField] {
        &[]
    }
}

/// The arithmetic of [`ElementType::I16`].
#[derive(Debug, Clone, Copy)]
pub struct I16;

impl Codec for I16 {
    fn element_type(&self) -> ElementType {
        ElementType::I16
    }

    fn dequantize(&self, bytes: &[u8], out: &mut [f32]) -> Result<(), QuantError> {
        dequantize(self.element_type(), bytes, out, |b| {
            f32::from(i16::from_le_bytes(b))
        })
    }

    fn activation(&self) -> ActivationKind {
        ActivationKind::F32
    }

    #[inline(always)]
    fn dot(&self, row: &[u8], x: ActivationRow<'_>) -> Result<f32, QuantError> {
        dot(self.element_type(), row, x, |b| {
            f32::from(i16::from_le_bytes(b))
        })
    }

    fn scale_fields(&self) -> &'static [ScaleField] {
        &[]
    }
}

/// The arithmetic of [`ElementType::I32`].
#[derive(Debug, Clone, Copy)]
pub struct I32;

impl Codec for I32 {
    fn element_type(&self) -> ElementType {
        ElementType::I32
    }

    fn dequantize(&self, bytes: &[u8], out: &mut [f32]) -> Result<(), QuantError> {
        dequantize(self.element_type(), bytes, out, |b| {
            i32::from_le_bytes(b) as f32
        })
    }

    fn activation(&self) -> ActivationKind {
        ActivationKind::F32
    }

    #[inline(always)]
    fn dot(&self, row: &[u8], x: ActivationRow<'_>) -> Result<f32, QuantError> {
        dot(self.element_type(), row, x, |b| {
            i32::from_le_bytes(b) as f32
        })
    }

    fn scale_fields(&self) -> &'static [ScaleField] {
        &[]
    }
}

/// The arithmetic of [`ElementType::I64`].
#[derive(Debug, Clone, Copy)]
pub struct I64;

impl Codec for I64 {
    fn element_type(&self) -> ElementType {
        ElementType::I64
    }

    fn dequantize(&self, bytes: &[u8], out: &mut [f32]) -> Result<(), QuantError> {
        dequantize(self.element_type(), bytes, out, |b| {
            i64::from_le_bytes(b) as f32
        })
    }

    fn activation(&self) -> ActivationKind {
        ActivationKind::F32
    }

    #[inline(always)]
    fn dot(&self, row: &[u8], x: ActivationRow<'_>) -> Result<f32, QuantError> {
        dot(self.element_type(), row, x, |b| {
            i64::from_le_bytes(b) as f32
        })
    }

    fn scale_fields(&self) -> &'static [ScaleField] {
        &[]
    }
}
