//! `exp` and `ln` made of additions and multiplications only, so that their bits are the same on every system.
//!
//! The platform's own (`f32::exp` calls libm) differ between systems in the last bit, which is enough to change a drawn token.

/// 2^k for k in -126..=127, made from the exponent bits.
fn power_of_two(k: i32) -> f32 {
    f32::from_bits(((k + 127) as u32) << 23)
}

/// `exp(x)` for `x <= 0`, within 2 units in the last place; 0 below -87, 1 above 0.
///
/// Range reduction by ln 2 in two parts (Cody and Waite), then the Taylor polynomial of degree 7 on [-ln 2 / 2, ln 2 / 2].
pub fn exp(x: f32) -> f32 {
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    const ROUND: f32 = 12_582_912.0; // 1.5 * 2^23: adding and subtracting it rounds to an integer, ties to even
    let x_in = x.clamp(-87.0, 0.0);
    let k = (x_in * std::f32::consts::LOG2_E + ROUND) - ROUND;
    let r = (x_in - k * LN_2_HIGH) - k * LN_2_LOW;
    let mut p = 1.0 / 5040.0;
    for c in [
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    ] {
        p = p * r + c;
    }
    let result = p * power_of_two(k as i32);
    if x < -87.0 { 0.0 } else { result }
}

/// Natural logarithm of a positive, finite, normal number; minus infinity for anything else.
///
/// The exponent times ln 2 plus 2 atanh((m - 1) / (m + 1)) for the mantissa m in [sqrt(1/2), sqrt(2)).
pub fn ln(x: f64) -> f64 {
    if !x.is_normal() || x < 0.0 {
        return f64::NEG_INFINITY;
    }
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i32 - 1023;
    let mut mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    if mantissa >= std::f64::consts::SQRT_2 {
        mantissa *= 0.5;
        exponent += 1;
    }
    let t = (mantissa - 1.0) / (mantissa + 1.0);
    let t2 = t * t;
    let mut sum = 0.0;
    for k in (0..14).rev() {
        sum = sum * t2 + 1.0 / f64::from(2 * k + 1);
    }
    f64::from(exponent) * std::f64::consts::LN_2 + 2.0 * t * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_within_two_units_in_the_last_place() {
        for i in 0..870_000 {
            let x = -(i as f32) * 1e-4;
            let truth = f64::from(x).exp();
            let unit = truth * 2.0_f64.powi(-23);
            let error = (f64::from(exp(x)) - truth).abs() / unit;
            assert!(error <= 2.0, "exp({x}): {error} units off");
        }
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(-88.0), 0.0);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
    }

    #[test]
    fn exp_has_the_bits_that_it_had_when_it_was_written() {
        let bits = [-0.1, -1.0, -2.5, -10.0, -80.0].map(|x| exp(x).to_bits());
        assert_eq!(bits, GOLDEN);
    }
    const GOLDEN: [u32; 5] = [
        1_063_756_653,
        1_052_531_378,
        1_034_427_438,
        943_614_926,
        96_464_058,
    ];

    #[test]
    fn ln_is_within_rounding() {
        for i in 1..10_000 {
            let x = f64::from(i) * 0.001;
            assert!((ln(x) - x.ln()).abs() < 1e-14, "ln({x})");
        }
        assert_eq!(ln(0.0), f64::NEG_INFINITY);
    }
}
