//! Elementary functions on lanes, by polynomials of our own.
//!
//! The system's `libm` differs between systems and is never used: these functions are built from the operations of [`Simd`] only, so they
//! give the same bits in every kernel set. Tables that are made once in `f64` use [`double`].

pub mod double;

use super::simd::Simd;

/// `log2(e)`
const LOG2_E: f32 = std::f32::consts::LOG2_E;
/// `ln 2` rounded to `f32`, and what is missing.
const LN2_HI: f32 = std::f32::consts::LN_2;
const LN2_LO: f32 = -1.904_654_3e-9;
/// `ln(2^-126)`, rounded up: below it the result would not be a normal number.
const EXP_MIN: f32 = -87.336_54;
/// The largest `f32` whose exponential is finite.
const EXP_MAX: f32 = 88.722_83;

/// `(n, m)` with `e^x = 2^n (1 + m)`: `n` the nearest integer to `x log2(e)`, `m` in about [-0.293, 0.415].
///
/// `m = r + r^2 q(r)` with `q` the minimax polynomial of degree 4 on [-ln 2 / 2, ln 2 / 2] (relative error of `1 + m`: 3.1e-9).
#[inline(always)]
fn split_exp<S: Simd>(s: S, x: S::F) -> (S::F, S::F) {
    let n = s.round(s.mul(x, s.splat(LOG2_E)));
    let r = s.fma(n, s.splat(-LN2_HI), x); // exact
    let r = s.fma(n, s.splat(-LN2_LO), r);
    let mut q = s.splat(0.001_381_452_9);
    for c in [0.008_368_744_5, 0.041_668_393, 0.166_665_21, 0.499_999_94] {
        q = s.fma(q, r, s.splat(c));
    }
    (n, s.fma(s.mul(r, r), q, r))
}

/// `e^x`, relative error under 1.5 in 2^24 (less than 1 ulp) in the normal range.
///
/// Zero below -87.33654 (where the result would be subnormal), infinity above 88.72283, NaN for NaN.
#[inline(always)]
pub fn exp<S: Simd>(s: S, x: S::F) -> S::F {
    let (n, m) = split_exp(s, x);
    // At the upper end n is 128 and 1 + m below one, which the exponent bits still hold.
    let y = s.scale_pow2(s.add(s.splat(1.0), m), n);
    let y = s.select_lt(x, s.splat(EXP_MIN), s.splat(0.0), y);
    s.select_lt(s.splat(EXP_MAX), x, s.splat(f32::INFINITY), y)
}

/// `e^x - 1` for `x` in [-40, 40], without cancellation near zero; relative error under 3 ulp.
#[inline(always)]
fn exp_m1<S: Simd>(s: S, x: S::F) -> S::F {
    let (n, m) = split_exp(s, x);
    let one = s.splat(1.0);
    let power = s.scale_pow2(one, n);
    s.fma(power, m, s.sub(power, one))
}

/// Hyperbolic tangent, relative error under 4 ulp; NaN for NaN.
#[inline(always)]
pub fn tanh<S: Simd>(s: S, x: S::F) -> S::F {
    // Beyond 10 the result is 1 in f32. The operand order of min and max lets NaN through.
    let x = s.max(s.splat(-10.0), s.min(s.splat(10.0), x));
    let e = exp_m1(s, s.add(x, x));
    s.div(e, s.add(e, s.splat(2.0)))
}

/// Logistic function `1 / (1 + e^-x)`.
#[inline(always)]
pub fn sigmoid<S: Simd>(s: S, x: S::F) -> S::F {
    over_one_plus_exp(s, s.splat(1.0), s.sub(s.splat(0.0), x))
}

/// `y / (1 + e^u)`
#[inline(always)]
fn over_one_plus_exp<S: Simd>(s: S, y: S::F, u: S::F) -> S::F {
    s.div(y, s.add(s.splat(1.0), exp(s, u)))
}

/// `x sigmoid(x)`; NaN for negative infinity.
#[inline(always)]
pub fn silu<S: Simd>(s: S, x: S::F) -> S::F {
    over_one_plus_exp(s, x, s.sub(s.splat(0.0), x))
}

/// GELU in its tanh form, `0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))`, as the logistic function that it is.
#[inline(always)]
pub fn gelu<S: Simd>(s: S, x: S::F) -> S::F {
    // -2 sqrt(2/pi), and 0.044715 times that.
    let cubic = s.splat(-0.071_354_814);
    let linear = s.splat(-1.595_769_1);
    let u = s.mul(x, s.fma(s.mul(x, x), cubic, linear));
    over_one_plus_exp(s, x, u)
}

/// The quick GELU `x sigmoid(1.702 x)`.
#[inline(always)]
pub fn gelu_quick<S: Simd>(s: S, x: S::F) -> S::F {
    over_one_plus_exp(s, x, s.mul(x, s.splat(-1.702)))
}

/// GELU by the error function, `x Phi(x)`, with `Phi` the normal distribution's; error under 1e-6 of the result. NaN for negative infinity.
#[inline(always)]
pub fn gelu_erf<S: Simd>(s: S, x: S::F) -> S::F {
    // Phi(-z) = e^(-z^2 / 2) q(t), t = 1 / (1 + 0.33 z), q a minimax polynomial without constant term (relative error 4.7e-8). Beyond
    // 13.3 the exponential is zero.
    let one = s.splat(1.0);
    let z = s.min(s.splat(14.0), s.abs(x));
    let t = s.div(one, s.fma(z, s.splat(0.33), one));
    let mut q = s.splat(-0.021_337_407);
    for c in [
        0.125_605_03,
        -0.272_286,
        0.230_313_9,
        -0.060_336_694,
        0.123_387_314,
        0.110_680_126,
        0.132_354_5,
        0.131_619_27,
    ] {
        q = s.fma(q, t, s.splat(c));
    }
    let q = s.mul(q, t);
    // The square's rounding error, which the exponential would enlarge, is put back.
    let half = s.splat(-0.5);
    let square = s.mul(z, z);
    let error = s.fma(z, z, s.sub(s.splat(0.0), square));
    let e = exp(s, s.mul(square, half));
    let e = s.fma(s.mul(e, half), error, e);
    let tail = s.mul(e, q);
    let phi = s.select_lt(x, s.splat(0.0), tail, s.sub(one, tail));
    s.mul(x, phi)
}

/// `ln(1 + e^x)`, relative error about 3e-7 above -87; zero below.
#[inline(always)]
pub fn softplus<S: Simd>(s: S, x: S::F) -> S::F {
    // max(x, 0) + ln(1 + y) with y = e^-|x| in [0, 1]; ln(1 + y) = 2 atanh(r), r = y / (2 + y) in [0, 1/3].
    let zero = s.splat(0.0);
    let y = exp(s, s.sub(zero, s.abs(x)));
    let r = s.div(y, s.add(y, s.splat(2.0)));
    let r2 = s.mul(r, r);
    let mut p = s.splat(0.140_122_18);
    for c in [0.139_995_72, 0.200_108_5, 0.333_332_06] {
        p = s.fma(p, r2, s.splat(c));
    }
    let r = s.add(r, r);
    let log = s.fma(s.mul(r, r2), p, r);
    s.add(s.max(x, zero), log)
}

#[cfg(test)]
mod tests;
