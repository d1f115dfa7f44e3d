//! Rotary position embedding: angles per position, and the rotation of heads.
//!
//! The angle of pair `i` at position `p` is `p * frequency[i]`. Frequencies and angles are `f64` by [`double`], so that long contexts
//! lose nothing; cosine and sine are rounded to `f32` once.

#![allow(
    clippy::inline_always,
    reason = "a kernel must end up inside its entry to be compiled with the entry's features"
)]

use super::{
    Set,
    entry::entry,
    math::double,
    simd::{LANES, Simd, simd_entries},
};
use puna_graph::ops::{RopeOrder, RopeScaling};

/// What a rotation depends on, apart from the position.
#[derive(Clone, Copy, Debug)]
pub struct RopeParams<'a> {
    /// Values of a head that are rotated, from the first on; even.
    pub dims: usize,
    /// Base frequency ("theta").
    pub base: f32,
    /// Scaling of positions.
    pub scaling: RopeScaling,
    /// Divisor of the frequency of each pair, `[dims / 2]`: Llama 3's `rope_freqs`, longrope's factors. `None`: one.
    pub factors: Option<&'a [f32]>,
    /// Multiplies cosine and sine: longrope's attention factor. Otherwise 1.
    pub magnitude: f32,
}

/// Why parameters are refused.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RopeError {
    /// An odd number of values cannot form pairs.
    #[error("RoPE over {0} dimensions, expected an even number")]
    OddDims(usize),
    /// One factor is needed for each pair.
    #[error("{found} RoPE frequency factors, expected {expected}")]
    FactorCount {
        /// Factors that were given.
        found: usize,
        /// Pairs.
        expected: usize,
    },
    /// A parameter that must be finite and positive is not.
    #[error("RoPE {name} is {value}, expected a positive number")]
    NotPositive {
        /// Which parameter.
        name: &'static str,
        /// Its value.
        value: f32,
    },
}

/// Angles for a set of parameters.
#[derive(Clone, Debug)]
pub struct RopeTable {
    /// Radians per position, `[dims / 2]`.
    frequencies: Vec<f64>,
    /// Multiplies cosine and sine.
    magnitude: f64,
}

impl RopeTable {
    /// Frequencies `base^(-2 i / dims)`, changed as the parameters say.
    ///
    /// # Errors
    /// A parameter is out of range.
    pub fn new(params: &RopeParams<'_>) -> Result<Self, RopeError> {
        let (dims, pairs) = (params.dims, params.dims / 2);
        if !dims.is_multiple_of(2) {
            return Err(RopeError::OddDims(dims));
        }
        let base = positive("base frequency", params.base)?;
        let exponent = |i: usize| -2.0 * i as f64 / dims as f64;
        let mut frequencies: Vec<f64> =
            (0..pairs).map(|i| double::pow(base, exponent(i))).collect();
        if let Some(factors) = params.factors {
            if factors.len() != pairs {
                return Err(RopeError::FactorCount {
                    found: factors.len(),
                    expected: pairs,
                });
            }
            for (frequency, &factor) in frequencies.iter_mut().zip(factors) {
                *frequency /= nonzero("frequency factor", factor)?;
            }
        }
        let mut table = Self {
            frequencies,
            magnitude: f64::from(params.magnitude),
        };
        table.scale(dims, base, params.scaling)?;
        Ok(table)
    }

    fn scale(&mut self, dims: usize, base: f64, scaling: RopeScaling) -> Result<(), RopeError> {
        match scaling {
            RopeScaling::None => {}
            RopeScaling::Linear { factor } => {
                let factor = positive("scaling factor", factor)?;
                for frequency in &mut self.frequencies {
                    *frequency /= factor;
                }
            }
            RopeScaling::Yarn {
                factor,
                original_context,
                ext_factor,
                attn_factor,
                beta_fast,
                beta_slow,
            } => {
                let factor = positive("scaling factor", factor)?;
                let turns = [
                    positive("YaRN beta_fast", beta_fast)?,
                    positive("YaRN beta_slow", beta_slow)?,
                ];
                positive("original context", original_context as f32)?;
                let ramp = Ramp::new(dims, base, f64::from(original_context), turns);
                let ext = f64::from(ext_factor);
                for (i, frequency) in self.frequencies.iter_mut().enumerate() {
                    let kept = if ext == 0.0 { 0.0 } else { ramp.kept(i) * ext };
                    *frequency = *frequency / factor * (1.0 - kept) + *frequency * kept;
                }
                self.magnitude *= f64::from(attn_factor);
                if ext != 0.0 {
                    self.magnitude *= 1.0 + 0.1 * double::ln(factor);
                }
            }
        }
        Ok(())
    }

    /// Pairs of a head: half the rotated dimensions.
    pub fn pairs(&self) -> usize {
        self.frequencies.len()
    }

    /// Writes cosine and sine of each pair at a position, times the magnitude: `[pairs]` each.
    ///
    /// # Panics
    /// A slice has another length.
    pub fn fill(&self, position: u32, cos: &mut [f32], sin: &mut [f32]) {
        let pairs = self.pairs();
        assert!(
            cos.len() == pairs && sin.len() == pairs,
            "RoPE: room for {} cosines and {} sines, {pairs} pairs",
            cos.len(),
            sin.len()
        );
        let position = f64::from(position);
        for ((frequency, cos), sin) in self.frequencies.iter().zip(cos).zip(sin) {
            let (s, c) = double::sin_cos(position * frequency);
            *cos = (c * self.magnitude) as f32;
            *sin = (s * self.magnitude) as f32;
        }
    }
}

/// Trained files have positive factors only, but the formula asks for no more than this.
fn nonzero(name: &'static str, value: f32) -> Result<f64, RopeError> {
    if value.is_finite() && value != 0.0 {
        Ok(f64::from(value))
    } else {
        Err(RopeError::NotPositive { name, value })
    }
}

fn positive(name: &'static str, value: f32) -> Result<f64, RopeError> {
    if value.is_finite() && value > 0.0 {
        Ok(f64::from(value))
    } else {
        Err(RopeError::NotPositive { name, value })
    }
}

/// The ramp of `YaRN` over the pairs.
struct Ramp {
    low: f64,
    high: f64,
}

impl Ramp {
    fn new(dims: usize, base: f64, context: f64, turns: [f64; 2]) -> Self {
        // The dimension that makes so many turns in the context.
        let dimension = |turns: f64| {
            let wavelength = context / (turns * 2.0 * std::f64::consts::PI);
            dims as f64 * double::ln(wavelength) / (2.0 * double::ln(base))
        };
        Self {
            low: dimension(turns[0]).floor().max(0.0),
            high: dimension(turns[1]).ceil().min(dims as f64 - 1.0),
        }
    }

    /// How much of its own frequency a pair keeps: 1 below the ramp, 0 above it.
    fn kept(&self, pair: usize) -> f64 {
        let along = (pair as f64 - self.low) / (self.high - self.low).max(0.001);
        1.0 - along.clamp(0.0, 1.0)
    }
}

/// Rotates heads in place: `x` is `[heads, head]`, `cos` and `sin` are `[pairs]` of one position; values from `2 pairs` on stay as they are.
/// Of a pair `(a, b)` become `fma(a, cos, b * -sin)` and `fma(a, sin, b * cos)`. Panics when lengths do not fit.
///
/// # Safety
/// The CPU has the features of the [`Set`].
pub type RopeFn = unsafe fn(order: RopeOrder, x: &mut [f32], head: usize, cos: &[f32], sin: &[f32]);

/// The rotation.
pub fn rope(set: Set) -> RopeFn {
    entry!(set, rope_entries)
}

simd_entries! { mod rope_entries = rope_kernel(order: RopeOrder, x: &mut [f32], head: usize, cos: &[f32], sin: &[f32]); }

#[inline(always)]
fn rope_kernel<S: Simd>(
    s: S,
    order: RopeOrder,
    x: &mut [f32],
    head: usize,
    cos: &[f32],
    sin: &[f32],
) {
    assert!(
        head > 0 && x.len().is_multiple_of(head) && cos.len() == sin.len() && 2 * cos.len() <= head,
        "RoPE: {} values in heads of {head}, {} cosines and {} sines",
        x.len(),
        cos.len(),
        sin.len()
    );
    for x in x.chunks_exact_mut(head) {
        let x = &mut x[..2 * cos.len()];
        match order {
            RopeOrder::Normal => rotate_neighbours(s, x, cos, sin),
            RopeOrder::Neox => rotate_halves(s, x, cos, sin),
        }
    }
}

#[inline(always)]
fn rotate<S: Simd>(s: S, a: S::F, b: S::F, cos: S::F, sin: S::F) -> (S::F, S::F) {
    let minus_sin = s.sub(s.splat(0.0), sin);
    (
        s.fma(a, cos, s.mul(b, minus_sin)),
        s.fma(a, sin, s.mul(b, cos)),
    )
}

#[inline(always)]
fn rotate_halves<S: Simd>(s: S, x: &mut [f32], cos: &[f32], sin: &[f32]) {
    let (a, b) = x.split_at_mut(cos.len());
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks_mut::<LANES>(), b.as_chunks_mut::<LANES>());
    let ((cos, cos_rest), (sin, sin_rest)) = (cos.as_chunks::<LANES>(), sin.as_chunks::<LANES>());
    for ((a, b), (cos, sin)) in a.iter_mut().zip(b).zip(cos.iter().zip(sin)) {
        let (x, y) = rotate(s, s.load(a), s.load(b), s.load(cos), s.load(sin));
        s.store(x, a);
        s.store(y, b);
    }
    if !a_rest.is_empty() {
        let (x, y) = rotate(
            s,
            s.load_partial(a_rest),
            s.load_partial(b_rest),
            s.load_partial(cos_rest),
            s.load_partial(sin_rest),
        );
        s.store_partial(x, a_rest);
        s.store_partial(y, b_rest);
    }
}

#[inline(always)]
fn rotate_neighbours<S: Simd>(s: S, x: &mut [f32], cos: &[f32], sin: &[f32]) {
    let (pairs, _) = x.as_chunks_mut::<2>();
    let (whole, rest) = pairs.as_chunks_mut::<LANES>();
    let ((cos, cos_rest), (sin, sin_rest)) = (cos.as_chunks::<LANES>(), sin.as_chunks::<LANES>());
    for (pairs, (cos, sin)) in whole.iter_mut().zip(cos.iter().zip(sin)) {
        rotate_pairs(s, pairs, s.load(cos), s.load(sin));
    }
    if !rest.is_empty() {
        let mut pairs = [[0.0; 2]; LANES];
        pairs[..rest.len()].copy_from_slice(rest);
        let (cos, sin) = (s.load_partial(cos_rest), s.load_partial(sin_rest));
        rotate_pairs(s, &mut pairs, cos, sin);
        rest.copy_from_slice(&pairs[..rest.len()]);
    }
}

/// Sixteen pairs; they are taken apart and put together in registers by the compiler.
#[inline(always)]
fn rotate_pairs<S: Simd>(s: S, pairs: &mut [[f32; 2]; LANES], cos: S::F, sin: S::F) {
    let (mut a, mut b) = ([0.0; LANES], [0.0; LANES]);
    for (pair, (a, b)) in pairs.iter().zip(a.iter_mut().zip(&mut b)) {
        (*a, *b) = (pair[0], pair[1]);
    }
    let (x, y) = rotate(s, s.load(&a), s.load(&b), cos, sin);
    s.store(x, &mut a);
    s.store(y, &mut b);
    for (pair, (a, b)) in pairs.iter_mut().zip(a.iter().zip(&b)) {
        *pair = [*a, *b];
    }
}

#[cfg(test)]
mod tests;
