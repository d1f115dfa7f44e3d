//! Value by value: sums, products, activations and gates, on slices of any length.
//!
//! Everything works in place; [`map_to`] and [`combine_to`] write elsewhere.

use super::{
    Set,
    entry::entry,
    math,
    simd::{LANES, Simd, simd_entries},
};

/// An activation function; see [`math`] for accuracy and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Activation {
    /// `x sigmoid(x)`
    Silu,
    /// GELU in its tanh form.
    Gelu,
    /// GELU by the error function.
    GeluErf,
    /// `x sigmoid(1.702 x)`
    GeluQuick,
    /// `max(x, 0)`; NaN for NaN.
    Relu,
    /// The square of [`Self::Relu`].
    ReluSquared,
    /// `1 / (1 + e^-x)`
    Sigmoid,
    /// Hyperbolic tangent.
    Tanh,
    /// `ln(1 + e^x)`
    Softplus,
}

/// What happens to each value of one slice.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Map {
    /// The function.
    Activation(Activation),
    /// Times a number.
    Scale(f32),
    /// Not below the first, not above the second number; NaN stays.
    Clamp(f32, f32),
    /// `cap tanh(x / cap)`
    Softcap(f32),
}

/// How the values of two slices, `x` and `y`, become one.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Combine {
    /// `x + y`
    Add,
    /// `x * y`
    Mul,
    /// `f(x) * y`
    Gate(Activation),
}

/// Applies `op` to each value of `x`.
///
/// # Safety
/// The CPU has the features of the [`Set`].
pub type MapFn = unsafe fn(op: Map, x: &mut [f32]);

/// Puts the combination of each value of `x` with one of `y` into `x`. `x` holds any number of rows as long as `y` (one for a residual,
/// several for a bias); panics when its length is no multiple.
///
/// # Safety
/// The CPU has the features of the [`Set`].
pub type CombineFn = unsafe fn(op: Combine, x: &mut [f32], y: &[f32]);

/// The kernel for one slice.
pub fn map(set: Set) -> MapFn {
    entry!(set, map_entries)
}

/// The kernel for two slices.
pub fn combine(set: Set) -> CombineFn {
    entry!(set, combine_entries)
}

/// Values that are copied at a time: they stay in the first-level cache.
const TILE: usize = 1024;

/// As `f`, from `x` to `out`.
///
/// # Panics
/// The lengths differ.
///
/// # Safety
/// As `f`.
pub unsafe fn map_to(f: MapFn, op: Map, x: &[f32], out: &mut [f32]) {
    assert_eq!(x.len(), out.len(), "map: input and output");
    for (x, out) in x.chunks(TILE).zip(out.chunks_mut(TILE)) {
        out.copy_from_slice(x);
        // SAFETY: the caller's.
        unsafe { f(op, out) };
    }
}

/// As `f`, from `x` and `y`, here equally long, to `out`.
///
/// # Panics
/// The lengths differ.
///
/// # Safety
/// As `f`.
pub unsafe fn combine_to(f: CombineFn, op: Combine, x: &[f32], y: &[f32], out: &mut [f32]) {
    assert!(
        x.len() == out.len() && y.len() == out.len(),
        "combine: {} and {} values to {}",
        x.len(),
        y.len(),
        out.len()
    );
    let inputs = x.chunks(TILE).zip(y.chunks(TILE));
    for ((x, y), out) in inputs.zip(out.chunks_mut(TILE)) {
        out.copy_from_slice(x);
        // SAFETY: the caller's.
        unsafe { f(op, out, y) };
    }
}

simd_entries! { mod map_entries = map_kernel(op: Map, x: &mut [f32]); }
simd_entries! { mod combine_entries = combine_kernel(op: Combine, x: &mut [f32], y: &[f32]); }

/// A function of lanes. A trait, since a closure would not be compiled with the set's features.
trait Unary: Copy {
    fn apply<S: Simd>(self, s: S, x: S::F) -> S::F;
}

/// A function of two lanes.
trait Binary: Copy {
    fn apply<S: Simd>(self, s: S, x: S::F, y: S::F) -> S::F;
}

/// Types that are [`Unary`] functions.
macro_rules! unary {
    ($($(#[$doc:meta])* $name:ident $(($field:ident))? = |$s:ident, $x:ident| $body:expr;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy)]
            struct $name $((unary!(@field $field)))?;
            impl Unary for $name {
                #[inline(always)]
                fn apply<S: Simd>(self, $s: S, $x: S::F) -> S::F {
                    $(let Self($field) = self;)?
                    $body
                }
            }
        )*
    };
    (@field $field:ident) => { f32 };
}

unary! {
    Silu = |s, x| math::silu(s, x);
    Gelu = |s, x| math::gelu(s, x);
    GeluErf = |s, x| math::gelu_erf(s, x);
    GeluQuick = |s, x| math::gelu_quick(s, x);
    Relu = |s, x| s.select_lt(x, s.splat(0.0), s.splat(0.0), x);
    ReluSquared = |s, x| {
        let x = Relu.apply(s, x);
        s.mul(x, x)
    };
    Sigmoid = |s, x| math::sigmoid(s, x);
    Tanh = |s, x| math::tanh(s, x);
    Softplus = |s, x| math::softplus(s, x);
    Scale(by) = |s, x| s.mul(x, s.splat(by));
    AtLeast(low) = |s, x| s.max(s.splat(low), x);
    AtMost(high) = |s, x| s.min(s.splat(high), x);
    Softcap(cap) = |s, x| s.mul(s.splat(cap), math::tanh(s, s.div(x, s.splat(cap))));
}

#[derive(Clone, Copy)]
struct Add;

impl Binary for Add {
    #[inline(always)]
    fn apply<S: Simd>(self, s: S, x: S::F, y: S::F) -> S::F {
        s.add(x, y)
    }
}

#[derive(Clone, Copy)]
struct Mul;

impl Binary for Mul {
    #[inline(always)]
    fn apply<S: Simd>(self, s: S, x: S::F, y: S::F) -> S::F {
        s.mul(x, y)
    }
}

#[derive(Clone, Copy)]
struct Gate<U>(U);

impl<U: Unary> Binary for Gate<U> {
    #[inline(always)]
    fn apply<S: Simd>(self, s: S, x: S::F, y: S::F) -> S::F {
        s.mul(self.0.apply(s, x), y)
    }
}

/// One after the other.
#[derive(Clone, Copy)]
struct Then<A, B>(A, B);

impl<A: Unary, B: Unary> Unary for Then<A, B> {
    #[inline(always)]
    fn apply<S: Simd>(self, s: S, x: S::F) -> S::F {
        self.1.apply(s, self.0.apply(s, x))
    }
}

#[inline(always)]
fn each<S: Simd>(s: S, op: impl Unary, x: &mut [f32]) {
    let (whole, rest) = x.as_chunks_mut::<LANES>();
    for x in whole {
        s.store(op.apply(s, s.load(x)), x);
    }
    if !rest.is_empty() {
        s.store_partial(op.apply(s, s.load_partial(rest)), rest);
    }
}

#[inline(always)]
fn each_pair<S: Simd>(s: S, op: impl Binary, x: &mut [f32], y: &[f32]) {
    if y.is_empty() {
        assert!(x.is_empty(), "combine: {} values with none", x.len());
        return;
    }
    let rows = x.chunks_exact_mut(y.len());
    for x in rows {
        let (whole, rest) = x.as_chunks_mut::<LANES>();
        let (y, y_rest) = y.as_chunks::<LANES>();
        for (x, y) in whole.iter_mut().zip(y) {
            s.store(op.apply(s, s.load(x), s.load(y)), x);
        }
        if !rest.is_empty() {
            let v = op.apply(s, s.load_partial(rest), s.load_partial(y_rest));
            s.store_partial(v, rest);
        }
    }
}

/// Calls `$each!(op)` with the type of an activation.
macro_rules! with_activation {
    ($activation:expr, $op:ident => $call:expr) => {
        match $activation {
            Activation::Silu => {
                let $op = Silu;
                $call
            }
            Activation::Gelu => {
                let $op = Gelu;
                $call
            }
            Activation::GeluErf => {
                let $op = GeluErf;
                $call
            }
            Activation::GeluQuick => {
                let $op = GeluQuick;
                $call
            }
            Activation::Relu => {
                let $op = Relu;
                $call
            }
            Activation::ReluSquared => {
                let $op = ReluSquared;
                $call
            }
            Activation::Sigmoid => {
                let $op = Sigmoid;
                $call
            }
            Activation::Tanh => {
                let $op = Tanh;
                $call
            }
            Activation::Softplus => {
                let $op = Softplus;
                $call
            }
        }
    };
}

#[inline(always)]
fn map_kernel<S: Simd>(s: S, op: Map, x: &mut [f32]) {
    match op {
        Map::Activation(activation) => with_activation!(activation, op => each(s, op, x)),
        Map::Scale(by) => each(s, Scale(by), x),
        Map::Clamp(low, high) => each(s, Then(AtMost(high), AtLeast(low)), x),
        Map::Softcap(cap) => each(s, Softcap(cap), x),
    }
}

#[inline(always)]
fn combine_kernel<S: Simd>(s: S, op: Combine, x: &mut [f32], y: &[f32]) {
    assert!(
        y.is_empty() || x.len().is_multiple_of(y.len()),
        "combine: {} values with {}",
        x.len(),
        y.len()
    );
    match op {
        Combine::Add => each_pair(s, Add, x, y),
        Combine::Mul => each_pair(s, Mul, x, y),
        Combine::Gate(activation) => {
            with_activation!(activation, op => each_pair(s, Gate(op), x, y));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::entry::{assert_same, numbers, other_sets};

    const ACTIVATIONS: [Activation; 9] = [
        Activation::Silu,
        Activation::Gelu,
        Activation::GeluErf,
        Activation::GeluQuick,
        Activation::Relu,
        Activation::ReluSquared,
        Activation::Sigmoid,
        Activation::Tanh,
        Activation::Softplus,
    ];

    fn maps() -> Vec<Map> {
        let mut maps: Vec<Map> = ACTIVATIONS.map(Map::Activation).to_vec();
        maps.extend([Map::Scale(0.37), Map::Clamp(-1.5, 2.0), Map::Softcap(30.0)]);
        maps
    }

    fn combines() -> Vec<Combine> {
        let mut combines: Vec<Combine> = ACTIVATIONS.map(Combine::Gate).to_vec();
        combines.extend([Combine::Add, Combine::Mul]);
        combines
    }

    fn mapped(set: Set, op: Map, x: &[f32]) -> Vec<f32> {
        let (mut at, mut out) = (x.to_vec(), vec![f32::NAN; x.len()]);
        // SAFETY: only sets that the CPU has are tried.
        unsafe {
            map(set)(op, &mut at);
            map_to(map(set), op, x, &mut out);
        }
        assert_same(&at, &out, "in place");
        out
    }

    fn combined(set: Set, op: Combine, x: &[f32], y: &[f32]) -> Vec<f32> {
        let (mut at, mut out) = (x.to_vec(), vec![f32::NAN; x.len()]);
        // SAFETY: only sets that the CPU has are tried.
        unsafe {
            combine(set)(op, &mut at, y);
            combine_to(combine(set), op, x, y, &mut out);
        }
        assert_same(&at, &out, "in place");
        out
    }

    fn special(mut x: Vec<f32>) -> Vec<f32> {
        for (x, v) in x
            .iter_mut()
            .zip([f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 1e-40])
        {
            *x = v;
        }
        x
    }

    #[test]
    fn every_set_gives_the_portable_bits() {
        for len in [0, 1, 5, 15, 16, 17, 31, 100, 1023, 1024, 1041, 2500] {
            let (x, y) = (special(numbers(len, 1)), numbers(len, 2));
            for set in other_sets() {
                for op in maps() {
                    let (got, want) = (mapped(set, op, &x), mapped(Set::Portable, op, &x));
                    assert_same(&got, &want, &format!("{set:?} {op:?} {len}"));
                }
                for op in combines() {
                    let got = combined(set, op, &x, &y);
                    let want = combined(Set::Portable, op, &x, &y);
                    assert_same(&got, &want, &format!("{set:?} {op:?} {len}"));
                }
            }
        }
    }

    #[test]
    fn operations_are_what_they_are_called() {
        let set = Set::Portable;
        let x = [-2.0f32, -0.5, 0.0, 0.5, 3.0];
        let y = [1.0f32, 2.0, 3.0, 4.0, 5.0];
        assert_eq!(
            mapped(set, Map::Scale(2.0), &x),
            [-4.0, -1.0, 0.0, 1.0, 6.0]
        );
        assert_eq!(
            mapped(set, Map::Clamp(-1.0, 2.0), &x),
            [-1.0, -0.5, 0.0, 0.5, 2.0]
        );
        let relu = Activation::Relu;
        assert_eq!(
            mapped(set, Map::Activation(relu), &x),
            [0.0, 0.0, 0.0, 0.5, 3.0]
        );
        let squared = Map::Activation(Activation::ReluSquared);
        assert_eq!(mapped(set, squared, &x), [0.0, 0.0, 0.0, 0.25, 9.0]);
        assert_eq!(
            combined(set, Combine::Add, &x, &y),
            [-1.0, 1.5, 3.0, 4.5, 8.0]
        );
        assert_eq!(
            combined(set, Combine::Mul, &x, &y),
            [-2.0, -1.0, 0.0, 2.0, 15.0]
        );
        assert_eq!(
            combined(set, Combine::Gate(relu), &x, &y),
            [0.0, 0.0, 0.0, 2.0, 15.0]
        );
        for (got, x) in mapped(set, Map::Softcap(2.0), &x).into_iter().zip(x) {
            assert!((got - 2.0 * (x / 2.0).tanh()).abs() < 1e-6);
        }
        assert!(mapped(set, Map::Clamp(-1.0, 1.0), &[f32::NAN])[0].is_nan());
    }

    #[test]
    fn a_bias_is_added_to_every_row() {
        for set in other_sets() {
            let (mut x, bias) = (numbers(3 * 21, 3), numbers(21, 4));
            let want: Vec<f32> = x
                .iter()
                .zip(bias.iter().cycle())
                .map(|(x, b)| x + b)
                .collect();
            // SAFETY: only sets that the CPU has are tried.
            unsafe { combine(set)(Combine::Add, &mut x, &bias) };
            assert_same(&x, &want, "bias");
        }
    }
}
