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

/// `e^x`, relative error under 1 ulp in the normal range.
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
