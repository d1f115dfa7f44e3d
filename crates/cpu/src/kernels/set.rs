//! The sets of kernels, and which of them this CPU can run.

/// A set of kernels. All give the same bits; they differ in speed and in what the CPU must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Set {
    /// Plain Rust on any CPU: the specification.
    Portable,
    /// The same plain Rust, compiled for AVX2, FMA and F16C, so that a fused multiply-add is one instruction.
    PortableFma,
    /// AVX2 with FMA and F16C.
    Avx2,
    /// AVX-512 F, BW, VL, DQ and VNNI.
    Avx512,
}

impl Set {
    /// All of them, best first.
    const ALL: [Self; 4] = [Self::Avx512, Self::Avx2, Self::PortableFma, Self::Portable];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::PortableFma => "portable-fma",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }

    /// The set of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|s| s.name().eq_ignore_ascii_case(name))
    }

    /// Whether this CPU can run it.
    pub fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::PortableFma | Self::Avx2 => super::simd::avx2::Avx2::new().is_some(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => super::simd::avx512::Avx512::new().is_some(),
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }

    /// What this CPU can run, best first.
    pub fn available() -> Vec<Self> {
        Self::ALL.into_iter().filter(|s| s.is_available()).collect()
    }

    /// The best that this CPU can run.
    pub fn best() -> Self {
        Self::available().first().copied().unwrap_or(Self::Portable)
    }
}
