//! Every set equals the portable one, lane by lane.

use super::{LANES, Simd, portable::Portable, tree_sum};

const EDGE: [f32; LANES] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    1.5,
    2.5,
    -2.5,
    1e-40,
    -1e-40,
    3.4e38,
    -3.4e38,
    f32::INFINITY,
    f32::NEG_INFINITY,
    65504.0,
    1e-8,
];

fn bits<S: Simd>(s: S, v: S::F) -> [u32; LANES] {
    let mut out = [0.0; LANES];
    s.store(v, &mut out);
    out.map(f32::to_bits)
}

fn same_as_portable<S: Simd>(s: S) {
    let p = Portable;
    let other: [f32; LANES] = std::array::from_fn(|i| EDGE[(i * 7 + 3) % LANES]);
    let small: [f32; LANES] = std::array::from_fn(|i| i as f32 * 8.3 - 63.0);
    for (x, y) in [(EDGE, other), (other, EDGE), (small, EDGE), (small, other)] {
        let (a, b) = (s.load(&x), s.load(&y));
        let (pa, pb) = (p.load(&x), p.load(&y));
        let nan_free = |v: [u32; LANES]| {
            v.map(|b| {
                if f32::from_bits(b).is_nan() {
                    0x7fc0_0000
                } else {
                    b
                }
            })
        };
        let eq = |got, want, name| assert_eq!(nan_free(got), nan_free(want), "{name}");
        eq(bits(s, s.add(a, b)), bits(p, p.add(pa, pb)), "add");
        eq(bits(s, s.sub(a, b)), bits(p, p.sub(pa, pb)), "sub");
        eq(bits(s, s.mul(a, b)), bits(p, p.mul(pa, pb)), "mul");
        eq(bits(s, s.div(a, b)), bits(p, p.div(pa, pb)), "div");
        eq(bits(s, s.fma(a, b, a)), bits(p, p.fma(pa, pb, pa)), "fma");
        eq(bits(s, s.max(a, b)), bits(p, p.max(pa, pb)), "max");
        eq(bits(s, s.min(a, b)), bits(p, p.min(pa, pb)), "min");
        eq(bits(s, s.abs(a)), bits(p, p.abs(pa)), "abs");
        eq(bits(s, s.round(a)), bits(p, p.round(pa)), "round");
        eq(
            bits(s, s.select_lt(a, b, a, b)),
            bits(p, p.select_lt(pa, pb, pa, pb)),
            "select_lt",
        );
        let n = x.map(|v| v.clamp(-60.0, 60.0).round_ties_even());
        eq(
            bits(s, s.scale_pow2(s.splat(1.25), s.load(&n))),
            bits(p, p.scale_pow2(p.splat(1.25), p.load(&n))),
            "scale_pow2",
        );
        let (mut h, mut ph) = ([0u16; LANES], [0u16; LANES]);
        s.store_f16(a, &mut h);
        p.store_f16(pa, &mut ph);
        assert_eq!(h, ph, "store_f16");
        eq(bits(s, s.load_f16(&h)), bits(p, p.load_f16(&h)), "load_f16");
        eq(
            bits(s, s.load_bf16(&h)),
            bits(p, p.load_bf16(&h)),
            "load_bf16",
        );
    }
    let ints: [f32; LANES] = std::array::from_fn(|i| i as f32 * 17.0 - 128.0);
    let (mut q, mut pq) = ([0i8; LANES], [0i8; LANES]);
    s.store_i8(s.load(&ints), &mut q);
    p.store_i8(p.load(&ints), &mut pq);
    assert_eq!(q, pq);
    assert_eq!(bits(s, s.load_i8(&q)), ints.map(f32::to_bits));
    assert_eq!(s.sum(s.load(&small)).to_bits(), tree_sum(&small).to_bits());
    assert_eq!(s.max_lane(s.load(&small)), small[LANES - 1]);
    for len in 0..=LANES {
        let mut out = vec![9.0; len];
        s.store_partial(s.load_partial(&small[..len]), &mut out);
        assert_eq!(out, small[..len]);
    }
}

#[test]
fn every_instruction_set_gives_the_portable_bits() {
    same_as_portable(Portable);
    #[cfg(target_arch = "x86_64")]
    {
        if let Some(s) = super::avx2::Avx2::new() {
            same_as_portable(s);
        }
        if let Some(s) = super::avx512::Avx512::new() {
            same_as_portable(s);
        }
    }
}
