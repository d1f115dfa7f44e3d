//! From a [`Set`](super::Set) to a kernel's entry.

/// The entry of a module made by [`simd_entries!`](super::simd::simd_entries) for a set, as a function pointer. Where a set's instructions
/// do not exist at all the plain code takes its place.
macro_rules! entry {
    ($set:expr, $module:ident) => {
        match $set {
            $crate::kernels::Set::Portable => $module::portable,
            #[cfg(target_arch = "x86_64")]
            $crate::kernels::Set::PortableFma => $module::portable_fma,
            #[cfg(target_arch = "x86_64")]
            $crate::kernels::Set::Avx2 => $module::avx2,
            #[cfg(target_arch = "x86_64")]
            $crate::kernels::Set::Avx512 => $module::avx512,
            #[cfg(not(target_arch = "x86_64"))]
            _ => $module::portable,
        }
    };
}
pub(crate) use entry;

/// For tests: the sets besides the portable one that this CPU has.
#[cfg(test)]
pub(crate) fn other_sets() -> Vec<super::Set> {
    #[cfg_attr(not(target_arch = "x86_64"), allow(unused_mut))]
    let mut sets = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        if super::simd::avx2::Avx2::new().is_some() {
            sets.extend([super::Set::PortableFma, super::Set::Avx2]);
        }
        if super::simd::avx512::Avx512::new().is_some() {
            sets.push(super::Set::Avx512);
        }
    }
    sets
}

/// For tests: `len` numbers of both signs from `seed`, most of them within a few units, some far smaller or larger.
#[cfg(test)]
pub(crate) fn numbers(len: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..len)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let unit = (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0;
            match (state >> 20) & 31 {
                0 => unit * 1e-6,
                1 => unit * 100.0,
                _ => unit * 4.0,
            }
        })
        .collect()
}

/// For tests: equal bits, any NaN equal to any other.
#[cfg(test)]
pub(crate) fn assert_same(got: &[f32], want: &[f32], what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        assert!(
            g.to_bits() == w.to_bits() || (g.is_nan() && w.is_nan()),
            "{what}: element {i} is {g}, portable {w}"
        );
    }
}
