//! 16-bit and 8-bit float formats to f32. Written without branches, so that loops over them vectorize.

/// The bits of 2^-14 as f32: the least normal f16.
const TWO_POW_MINUS_14: u32 = 0x3880_0000;

/// IEEE half precision to f32, exact. A NaN stays a NaN (made quiet).
#[inline(always)]
pub fn f16_to_f32(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let exponent = bits & 0x7c00;
    let mantissa = u32::from(bits & 0x03ff) << 13;
    // 2^-14 * (1 + m / 1024) - 2^-14 = m * 2^-24: subnormals without touching f32 subnormals, which are slow on some CPUs.
    let subnormal = f32::from_bits(TWO_POW_MINUS_14 | mantissa) - f32::from_bits(TWO_POW_MINUS_14);
    let normal = (u32::from(bits & 0x7fff) << 13) + (112 << 23);
    let quiet = u32::from(mantissa != 0) << 22;
    let magnitude = match exponent {
        0 => subnormal.to_bits(),
        0x7c00 => 0x7f80_0000 | mantissa | quiet,
        _ => normal,
    };
    f32::from_bits(sign | magnitude)
}

/// bfloat16 to f32, exact.
#[inline(always)]
pub fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// f32 to IEEE half precision, to nearest, ties to even; too large becomes infinity.
#[inline]
pub fn f32_to_f16(x: f32) -> u16 {
    half::f16::from_f32(x).to_bits()
}

/// f32 to bfloat16, to nearest, ties to even. A NaN keeps its upper bits and is made quiet.
#[inline]
pub fn f32_to_bf16(x: f32) -> u16 {
    let bits = x.to_bits();
    if x.is_nan() {
        return (bits >> 16) as u16 | 0x40;
    }
    // No overflow: the largest bits here are those of -infinity, 0xff80_0000.
    ((bits + 0x7fff + ((bits >> 16) & 1)) >> 16) as u16
}

/// Half of the E8M0 scale `2^(e - 127)`, exact: MXFP4 stores its weights doubled, as integers. Finite for each of the 256
/// values, also for 255, which the OCP MX specification calls NaN: this is what the `gguf` package and llama.cpp do.
#[inline(always)]
pub fn e8m0_half_to_f32(e: u8) -> f32 {
    let bits = if e < 2 {
        0x0020_0000 << e
    } else {
        u32::from(e - 1) << 23
    };
    f32::from_bits(bits)
}

/// The f16 at `offset` of a block, little endian.
#[inline(always)]
pub(crate) fn f16_at<const B: usize>(block: &[u8; B], offset: usize) -> f32 {
    f16_to_f32(u16::from_le_bytes([block[offset], block[offset + 1]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_converts_as_the_half_crate_does() {
        for bits in 0..=u16::MAX {
            let (ours, theirs) = (f16_to_f32(bits), half::f16::from_bits(bits).to_f32());
            assert!(
                ours.to_bits() == theirs.to_bits() || (ours.is_nan() && theirs.is_nan()),
                "{bits:#06x}: {ours} {theirs}"
            );
        }
    }

    #[test]
    fn bfloat16_survives_a_round_trip_and_rounds_ties_to_even() {
        for bits in 0..=u16::MAX {
            let x = bf16_to_f32(bits);
            let expected = if x.is_nan() { bits | 0x40 } else { bits };
            assert_eq!(f32_to_bf16(x), expected, "{bits:#06x}");
        }
        assert_eq!(f32_to_bf16(f32::from_bits(0x3f80_8000)), 0x3f80);
        assert_eq!(f32_to_bf16(f32::from_bits(0x3f81_8000)), 0x3f82);
        assert_eq!(f32_to_bf16(f32::MAX), 0x7f80);
        assert_eq!(f32_to_bf16(f32::NEG_INFINITY), 0xff80);
    }

    #[test]
    fn e8m0_is_half_a_power_of_two() {
        for e in 0..=255u8 {
            let expected = 2f64.powi(i32::from(e) - 128);
            assert_eq!(f64::from(e8m0_half_to_f32(e)), expected, "{e}");
        }
    }
}
