//! Pages of the key/value cache: 64 positions of one layer.
//!
//! A page is one attention tile: positions `64 i` to `64 i + 63` of a sequence. For each KV head it holds the keys of those positions, then
//! their values, so that a head is one run of memory:
//!
//! - Keys lie sixteen positions wide, as attention wants them (lanes are positions): `[4 groups of 16 positions][k_dim][16]`. Quantized keys:
//!   `[4 groups][k_dim / 32 blocks]` of sixteen scales followed by the quants of the block, sixteen positions wide.
//! - Values lie position after position: `[64][v_dim]`, quantized ones in the blocks of their GGUF type.
//!
//! Quantized numbers are those of the GGUF types of the same name; only the order of the bytes of keys differs.

#![allow(
    clippy::inline_always,
    reason = "a kernel must end up inside the function that enables the instruction set"
)]
#![allow(
    clippy::cast_ptr_alignment,
    reason = "pages are checked to be aligned, and stores are unaligned ones"
)]

mod store;
pub(crate) mod tile;

pub use store::{StoreFn, load_row, store_fn};

/// Positions of a page, and of an attention tile.
pub const PAGE: usize = 64;

/// Values of one block of the quantized types.
pub(crate) const BLOCK: usize = 32;

/// Largest head size that a layout takes.
const MAX_DIM: usize = 1024;

/// Element types of cached keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KvType {
    /// 32-bit floats.
    F32,
    /// Half floats.
    F16,
    /// bfloat16.
    Bf16,
    /// Blocks of 32 eight-bit integers with a half-float scale.
    Q8_0,
    /// Blocks of 32 four-bit integers with a half-float scale.
    Q4_0,
}

impl KvType {
    /// Every type.
    pub const ALL: &'static [Self] = &[Self::F32, Self::F16, Self::Bf16, Self::Q8_0, Self::Q4_0];

    /// Name in lower case, as flags spell it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::Q8_0 => "q8_0",
            Self::Q4_0 => "q4_0",
        }
    }

    /// The type of that name, in any case.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|t| t.name().eq_ignore_ascii_case(name))
    }

    /// Values of one block: 1 for plain floats.
    pub const fn block_len(self) -> usize {
        match self {
            Self::F32 | Self::F16 | Self::Bf16 => 1,
            Self::Q8_0 | Self::Q4_0 => BLOCK,
        }
    }

    /// Bytes of one block.
    pub const fn block_bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::Q8_0 => 34,
            Self::Q4_0 => 18,
        }
    }

    /// Bytes of one position of one head; `dim` is a multiple of the block length.
    const fn row_bytes(self, dim: usize) -> usize {
        dim / self.block_len() * self.block_bytes()
    }
}

/// Why a page cannot be laid out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KvLayoutError {
    /// No heads, or a head size out of range.
    #[error("{what}: {found}, expected 1 to {max}")]
    Range {
        /// What is out of range.
        what: &'static str,
        /// Its value.
        found: usize,
        /// The largest value allowed.
        max: usize,
    },
    /// A quantized type needs whole blocks.
    #[error(
        "{what} cache type {name}: head size {dim} is not a multiple of {BLOCK}; use f16, bf16 or f32"
    )]
    PartialBlock {
        /// `key` or `value`.
        what: &'static str,
        /// Name of the type.
        name: &'static str,
        /// The head size.
        dim: usize,
    },
}

/// Where things lie in the pages of one layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvLayout {
    k_type: KvType,
    v_type: KvType,
    kv_heads: usize,
    k_dim: usize,
    v_dim: usize,
}

impl KvLayout {
    /// A layout for `kv_heads` heads of `k_dim` key and `v_dim` value dimensions.
    pub fn new(
        k_type: KvType,
        v_type: KvType,
        kv_heads: usize,
        k_dim: usize,
        v_dim: usize,
    ) -> Result<Self, KvLayoutError> {
        for (what, found, max) in [
            ("number of KV heads", kv_heads, 1 << 16),
            ("key head size", k_dim, MAX_DIM),
            ("value head size", v_dim, MAX_DIM),
        ] {
            if found == 0 || found > max {
                return Err(KvLayoutError::Range { what, found, max });
            }
        }
        for (what, ty, dim) in [("key", k_type, k_dim), ("value", v_type, v_dim)] {
            if dim % ty.block_len() != 0 {
                let name = ty.name();
                return Err(KvLayoutError::PartialBlock { what, name, dim });
            }
        }
        Ok(Self {
            k_type,
            v_type,
            kv_heads,
            k_dim,
            v_dim,
        })
    }

    /// Type of the keys.
    pub const fn k_type(&self) -> KvType {
        self.k_type
    }
    /// Type of the values.
    pub const fn v_type(&self) -> KvType {
        self.v_type
    }
    /// Number of KV heads.
    pub const fn kv_heads(&self) -> usize {
        self.kv_heads
    }
    /// Dimensions of a key head.
    pub const fn k_dim(&self) -> usize {
        self.k_dim
    }
    /// Dimensions of a value head.
    pub const fn v_dim(&self) -> usize {
        self.v_dim
    }

    /// Bytes of the keys of one head in a page; a multiple of 64.
    pub const fn k_bytes(&self) -> usize {
        PAGE * self.k_type.row_bytes(self.k_dim)
    }
    /// Bytes of the values of one head in a page; a multiple of 64.
    pub const fn v_bytes(&self) -> usize {
        PAGE * self.v_type.row_bytes(self.v_dim)
    }
    /// Bytes of a page; a multiple of 64.
    pub const fn page_bytes(&self) -> usize {
        self.kv_heads * (self.k_bytes() + self.v_bytes())
    }
    /// Where the keys of a head begin in a page.
    pub const fn k_offset(&self, kv_head: usize) -> usize {
        kv_head * (self.k_bytes() + self.v_bytes())
    }
    /// Where the values of a head begin in a page.
    pub const fn v_offset(&self, kv_head: usize) -> usize {
        self.k_offset(kv_head) + self.k_bytes()
    }
}

#[cfg(test)]
mod tests;
