//! Root mean square norm and layer norm.
//!
//! The data is a row of groups of `group` values, each normalized by itself: one group is a whole row of features, several are the heads
//! of a row or the rows of a batch. A weight (and a bias) has the length of one group, or of several, which then repeat in turn.
//!
//! Order of operations, the same in every set: sums over sixteen strided lanes in ascending order (`lane[c % 16] += x[c]`, or
//! `fma(x, x, lane)` for squares) and the fixed tree; `scale = 1 / sqrt(sum / n + eps)`; then for each value `(x * scale) * w`,
//! for a layer norm `(x - mean) * scale`, times `w`, plus `b` (one fused multiply-add when both are there).

#![allow(
    clippy::inline_always,
    reason = "a kernel must end up inside its entry to be compiled with the entry's features"
)]

use super::{
    Set,
    entry::entry,
    simd::{LANES, Simd, simd_entries},
};

/// Shape and parameters of a norm.
#[derive(Clone, Copy, Debug)]
pub struct Norm<'a> {
    /// Values of one group.
    pub group: usize,
    /// Factor of each value: a multiple of `group` values. `None`: one.
    pub weight: Option<&'a [f32]>,
    /// Addend of each value, as long as `weight`. `None`: zero. Layer norm only.
    pub bias: Option<&'a [f32]>,
    /// Added to the mean of squares.
    pub eps: f32,
}

/// A norm from `x` to `out`, equally long, a multiple of `group`. Panics when lengths do not fit.
///
/// # Safety
/// The CPU has the features of the [`Set`].
pub type NormFn = unsafe fn(norm: &Norm<'_>, x: &[f32], out: &mut [f32]);

/// `out = x / sqrt(mean(x^2) + eps) * weight`; a bias is ignored.
pub fn rms_norm(set: Set) -> NormFn {
    entry!(set, rms_norm_to)
}

/// `out = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias`, with the variance over all values (not `n - 1`).
pub fn layer_norm(set: Set) -> NormFn {
    entry!(set, layer_norm_to)
}

simd_entries! { mod rms_norm_to = rms_norm_to_kernel(norm: &Norm<'_>, x: &[f32], out: &mut [f32]); }
simd_entries! { mod layer_norm_to = layer_norm_to_kernel(norm: &Norm<'_>, x: &[f32], out: &mut [f32]); }

#[inline(always)]
fn rms_norm_to_kernel<S: Simd>(s: S, norm: &Norm<'_>, x: &[f32], out: &mut [f32]) {
    out.copy_from_slice(x); // in the first-level cache from here on
    norm.check(out.len());
    for (i, x) in out.chunks_exact_mut(norm.group).enumerate() {
        let scale = norm.scale(sum_squares(s, x));
        // Subtracting zero changes no value.
        finish(s, x, 0.0, scale, norm.part(norm.weight, i), None);
    }
}

#[inline(always)]
fn layer_norm_to_kernel<S: Simd>(s: S, norm: &Norm<'_>, x: &[f32], out: &mut [f32]) {
    out.copy_from_slice(x);
    norm.check(out.len());
    for (i, x) in out.chunks_exact_mut(norm.group).enumerate() {
        let mean = sum(s, x) / norm.group as f32;
        let scale = norm.scale(sum_squared_differences(s, x, mean));
        let (weight, bias) = (norm.part(norm.weight, i), norm.part(norm.bias, i));
        finish(s, x, mean, scale, weight, bias);
    }
}

impl<'a> Norm<'a> {
    /// The lengths fit together.
    #[inline(always)]
    fn check(&self, len: usize) {
        assert!(
            self.group > 0 && len.is_multiple_of(self.group),
            "norm of {len} values in groups of {}",
            self.group
        );
        for parameters in [self.weight, self.bias].into_iter().flatten() {
            assert!(
                !parameters.is_empty() && parameters.len().is_multiple_of(self.group),
                "norm in groups of {} with {} weights or biases",
                self.group,
                parameters.len()
            );
        }
    }

    /// The weights or biases of a group.
    #[inline(always)]
    fn part(&self, parameters: Option<&'a [f32]>, group: usize) -> Option<&'a [f32]> {
        parameters.map(|p| {
            let start = group * self.group % p.len();
            &p[start..start + self.group]
        })
    }

    #[inline(always)]
    fn scale(&self, sum: f32) -> f32 {
        1.0 / (sum / self.group as f32 + self.eps).sqrt()
    }
}

#[inline(always)]
fn sum<S: Simd>(s: S, x: &[f32]) -> f32 {
    let (whole, rest) = x.as_chunks::<LANES>();
    let mut lanes = s.splat(0.0);
    for x in whole {
        lanes = s.add(s.load(x), lanes);
    }
    if !rest.is_empty() {
        lanes = s.add(s.load_partial(rest), lanes);
    }
    s.sum(lanes)
}

#[inline(always)]
fn sum_squares<S: Simd>(s: S, x: &[f32]) -> f32 {
    let (whole, rest) = x.as_chunks::<LANES>();
    let mut lanes = s.splat(0.0);
    for x in whole {
        let x = s.load(x);
        lanes = s.fma(x, x, lanes);
    }
    if !rest.is_empty() {
        let x = s.load_partial(rest);
        lanes = s.fma(x, x, lanes);
    }
    s.sum(lanes)
}

#[inline(always)]
fn sum_squared_differences<S: Simd>(s: S, x: &[f32], mean: f32) -> f32 {
    let (whole, rest) = x.as_chunks::<LANES>();
    let mut lanes = s.splat(0.0);
    let mean = s.splat(mean);
    for x in whole {
        let d = s.sub(s.load(x), mean);
        lanes = s.fma(d, d, lanes);
    }
    if !rest.is_empty() {
        // The lanes that are not there must not count.
        let mut d = [0.0; LANES];
        s.store_partial(s.sub(s.load_partial(rest), mean), &mut d[..rest.len()]);
        let d = s.load(&d);
        lanes = s.fma(d, d, lanes);
    }
    s.sum(lanes)
}

/// `x = (x - mean) * scale`, times the weights, plus the biases.
#[inline(always)]
fn finish<S: Simd>(
    s: S,
    x: &mut [f32],
    mean: f32,
    scale: f32,
    weight: Option<&[f32]>,
    bias: Option<&[f32]>,
) {
    let (mean, scale) = (s.splat(mean), s.splat(scale));
    let (whole, rest) = x.as_chunks_mut::<LANES>();
    let start = whole.len() * LANES;
    let whole_weight = weight.map(|w| w.as_chunks::<LANES>().0);
    let whole_bias = bias.map(|b| b.as_chunks::<LANES>().0);
    match (whole_weight, whole_bias) {
        (None, None) => {
            for x in whole {
                let v = s.mul(s.sub(s.load(x), mean), scale);
                s.store(v, x);
            }
        }
        (Some(weight), None) => {
            for (x, w) in whole.iter_mut().zip(weight) {
                let v = s.mul(s.sub(s.load(x), mean), scale);
                s.store(s.mul(v, s.load(w)), x);
            }
        }
        (None, Some(bias)) => {
            for (x, b) in whole.iter_mut().zip(bias) {
                let v = s.mul(s.sub(s.load(x), mean), scale);
                s.store(s.add(v, s.load(b)), x);
            }
        }
        (Some(weight), Some(bias)) => {
            for (x, (w, b)) in whole.iter_mut().zip(weight.iter().zip(bias)) {
                let v = s.mul(s.sub(s.load(x), mean), scale);
                s.store(s.fma(v, s.load(w), s.load(b)), x);
            }
        }
    }
    if !rest.is_empty() {
        let v = s.mul(s.sub(s.load_partial(rest), mean), scale);
        let weight = weight.map(|w| s.load_partial(&w[start..]));
        let bias = bias.map(|b| s.load_partial(&b[start..]));
        let v = match (weight, bias) {
            (None, None) => v,
            (Some(w), None) => s.mul(v, w),
            (None, Some(b)) => s.add(v, b),
            (Some(w), Some(b)) => s.fma(v, w, b),
        };
        s.store_partial(v, rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::entry::{assert_same, numbers, other_sets};

    const SHAPES: [(usize, usize); 9] = [
        (1, 1),
        (3, 2),
        (15, 1),
        (16, 1),
        (17, 3),
        (64, 9),
        (100, 2),
        (576, 1),
        (2049, 1),
    ];

    fn run(f: NormFn, norm: &Norm<'_>, x: &[f32]) -> Vec<f32> {
        let mut out = vec![f32::NAN; x.len()];
        // SAFETY: only sets that the CPU has are tried.
        unsafe { f(norm, x, &mut out) };
        out
    }

    /// Every combination of weight and bias, for a shape.
    fn cases<'a>(
        group: usize,
        weight: &'a [f32],
        bias: &'a [f32],
    ) -> impl Iterator<Item = Norm<'a>> {
        (0..4).map(move |i| Norm {
            group,
            weight: (i & 1 != 0).then_some(weight),
            bias: (i & 2 != 0).then_some(bias),
            eps: 1e-5,
        })
    }

    #[test]
    fn every_set_gives_the_portable_bits() {
        for (group, groups) in SHAPES {
            let x = numbers(group * groups, 1);
            // One group of parameters, or one for each group of data.
            for repeat in [1, groups] {
                let (w, b) = (numbers(group * repeat, 2), numbers(group * repeat, 3));
                for norm in cases(group, &w, &b) {
                    for f in [rms_norm as fn(Set) -> NormFn, layer_norm] {
                        let want = run(f(Set::Portable), &norm, &x);
                        for set in other_sets() {
                            let got = run(f(set), &norm, &x);
                            assert_same(&got, &want, &format!("{set:?} {group} x {groups}"));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn norms_are_close_to_their_definitions_in_f64() {
        for (group, groups) in SHAPES {
            let x = numbers(group * groups, 4);
            let (w, b) = (numbers(group, 5), numbers(group, 6));
            for norm in cases(group, &w, &b) {
                let set = Set::Portable;
                let rms = run(rms_norm(set), &norm, &x);
                let layer = run(layer_norm(set), &norm, &x);
                for (g, x) in x.chunks(group).enumerate() {
                    let n = group as f64;
                    let mean = x.iter().map(|&x| f64::from(x)).sum::<f64>() / n;
                    let squares =
                        |m: f64| x.iter().map(|&x| (f64::from(x) - m).powi(2)).sum::<f64>();
                    let scale = |m: f64| 1.0 / (squares(m) / n + 1e-5).sqrt();
                    for (c, &x) in x.iter().enumerate() {
                        let w = norm.weight.map_or(1.0, |w| f64::from(w[c]));
                        let b = norm.bias.map_or(0.0, |b| f64::from(b[c]));
                        let want_rms = f64::from(x) * scale(0.0) * w;
                        let want_layer = (f64::from(x) - mean) * scale(mean) * w + b;
                        let i = g * group + c;
                        assert!(
                            (f64::from(rms[i]) - want_rms).abs() <= 1e-5 * (1.0 + want_rms.abs())
                        );
                        assert!(
                            (f64::from(layer[i]) - want_layer).abs()
                                <= 2e-5 * (1.0 + want_layer.abs()),
                            "{} {want_layer}",
                            layer[i]
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn the_sum_takes_sixteen_strided_lanes_and_the_tree() {
        let x = numbers(100, 7);
        let mut lanes = [0.0f32; LANES];
        for (c, x) in x.iter().enumerate() {
            lanes[c % LANES] = x.mul_add(*x, lanes[c % LANES]);
        }
        let sum = crate::kernels::simd::tree_sum(&lanes);
        let scale = 1.0 / (sum / 100.0 + 1e-6).sqrt();
        let want: Vec<f32> = x.iter().map(|x| x * scale).collect();
        let norm = Norm {
            group: 100,
            weight: None,
            bias: None,
            eps: 1e-6,
        };
        let set = Set::Portable;
        assert_same(&run(rms_norm(set), &norm, &x), &want, "lanes");
    }
}
