//! Elementary functions in `f64` for tables that are made once.
//!
//! Built from `+ - * /` and [`f64::mul_add`] (one rounding by definition), so that every system gives the same bits.

use std::f64::consts::{FRAC_2_PI, FRAC_PI_2, LN_2, LOG2_E, SQRT_2};

/// `ln 2` minus its rounding to `f64`.
const LN2_LO: f64 = 2.319_046_813_846_299_6e-17;
/// `pi / 2` minus its rounding to `f64`.
const PI_2_LO: f64 = 6.123_233_995_736_766e-17;

/// `2^n` for `n` in -1022..=1023.
fn pow2(n: i32) -> f64 {
    f64::from_bits(((n + 1023) as u64) << 52)
}

/// `e^x`, relative error about 2e-16; zero below -745.2, infinity above 709.8, NaN for NaN.
pub fn exp(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    if x > 709.782_712_893_384 {
        return f64::INFINITY;
    }
    if x < -745.2 {
        return 0.0;
    }
    let n = (x * LOG2_E).round_ties_even();
    let r = (-n).mul_add(LN2_LO, (-n).mul_add(LN_2, x));
    // Taylor to r^13: the rest is under 1e-17 for |r| <= ln 2 / 2.
    let mut y = 1.0f64;
    for k in (1..=13).rev() {
        y = y.mul_add(r / f64::from(k), 1.0);
    }
    // In two steps, since n may leave the exponent's range by itself.
    let half = n as i32 / 2;
    y * pow2(half) * pow2(n as i32 - half)
}

/// Natural logarithm, relative error about 3e-16; NaN for negative numbers and NaN, minus infinity for zero.
pub fn ln(x: f64) -> f64 {
    if x.is_nan() || x < 0.0 {
        return f64::NAN;
    }
    if x == 0.0 {
        return f64::NEG_INFINITY;
    }
    if x.is_infinite() {
        return x;
    }
    // Subnormal numbers are brought into the normal range first.
    let (x, bias) = if x < f64::MIN_POSITIVE {
        (x * pow2(54), -54)
    } else {
        (x, 0)
    };
    let bits = x.to_bits();
    let mut e = ((bits >> 52) as i32) - 1023 + bias;
    let mut m = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    if m > SQRT_2 {
        m *= 0.5;
        e += 1;
    }
    // ln m = 2 atanh(s), |s| <= 0.1716: the series to s^23 leaves under 1e-19.
    let f = m - 1.0;
    let s = f / (m + 1.0);
    let s2 = s * s;
    let mut p = 0.0f64;
    for k in (1..=11).rev() {
        p = p.mul_add(s2, 2.0 / f64::from(2 * k + 1));
    }
    // 2 s = f - s f exactly, which keeps the division's rounding out of the leading term.
    let tail = s * s2.mul_add(p, -f);
    let e = f64::from(e);
    e.mul_add(LN_2, e.mul_add(LN2_LO, tail) + f)
}

/// `base^y` for `base > 0`; relative error about `(1 + |y ln base|) 3e-16`.
pub fn pow(base: f64, y: f64) -> f64 {
    exp(y * ln(base))
}

/// Taylor coefficients of sine from `r^3` on and cosine from `r^2` on: to r^19 and r^18, which leaves under 1e-18 for |r| <= pi / 4.
const SINE: [f64; 9] = reciprocal_factorials(3);
const COSINE: [f64; 9] = reciprocal_factorials(2);

/// `-1 / n!`, `1 / (n + 2)!`, and so on.
const fn reciprocal_factorials(n: usize) -> [f64; 9] {
    let mut out = [0.0; 9];
    let (mut i, mut k, mut factorial) = (0, 1, -1.0);
    while i < out.len() {
        while k < n + 2 * i {
            k += 1;
            factorial *= k as f64; // exact to 18!, rounded once at 19!
        }
        out[i] = 1.0 / factorial;
        factorial = -factorial;
        i += 1;
    }
    out
}

/// Sine and cosine of `x` radians; absolute error under 1e-15 for `|x|` up to 1e9, NaN for infinities and NaN.
pub fn sin_cos(x: f64) -> (f64, f64) {
    let k = (x * FRAC_2_PI).round_ties_even();
    // The first step is exact: x and k (pi/2) cancel to few enough bits.
    let r = (-k).mul_add(PI_2_LO, (-k).mul_add(FRAC_PI_2, x));
    let r2 = r * r;
    let (mut s, mut c) = (0.0, 0.0);
    for (sine, cosine) in SINE.iter().zip(&COSINE).rev() {
        s = (s + sine) * r2;
        c = (c + cosine) * r2;
    }
    let (s, c) = (s * r + r, c + 1.0);
    match (k as i64).rem_euclid(4) {
        0 => (s, c),
        1 => (c, -s),
        2 => (-s, -c),
        _ => (-c, s),
    }
}
