//! What the layers keep of earlier tokens: its layout, and the memory that a backend gives for it.

use crate::{GraphError, LayerId};
use std::any::Any;

/// Positions in one page. A page is also one tile of the attention kernels, so it is part of the order of operations.
pub const PAGE_POSITIONS: usize = 64;

/// How far back a layer looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reach {
    /// All earlier positions.
    Full,
    /// The last `n` positions, the token's own included.
    Window(u32),
}

/// What one attention layer keeps per position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheLayer {
    /// Key and value heads.
    pub kv_heads: usize,
    /// Elements of a key of one head.
    pub key_dim: usize,
    /// Elements of a value of one head.
    pub value_dim: usize,
    /// How far back it looks.
    pub reach: Reach,
}

/// Element type of keys or values in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum CacheType {
    /// 32-bit floats.
    F32,
    /// 16-bit floats.
    #[default]
    F16,
    /// 16-bit brain floats.
    BF16,
    /// 8-bit blocks of 32.
    Q8_0,
    /// 4-bit blocks of 32.
    Q4_0,
}

impl CacheType {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::F32, Self::F16, Self::BF16, Self::Q8_0, Self::Q4_0];

    /// The name on command lines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::BF16 => "bf16",
            Self::Q8_0 => "q8_0",
            Self::Q4_0 => "q4_0",
        }
    }
    /// By its name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|t| t.name().eq_ignore_ascii_case(name))
    }
}

/// Layers that share page tables, because they look equally far back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerGroup {
    /// How far back its layers look.
    pub reach: Reach,
    /// Its layers.
    pub layers: Vec<LayerId>,
}

/// The cache of a model: its layers in groups, and the element types.
#[derive(Clone, Debug)]
pub struct CacheLayout {
    /// Every layer, by [`LayerId`].
    pub layers: Vec<CacheLayer>,
    /// The groups; each layer is in one.
    pub groups: Vec<LayerGroup>,
    /// Element type of keys.
    pub key_type: CacheType,
    /// Element type of values.
    pub value_type: CacheType,
}

impl CacheLayout {
    /// Groups `layers` by their reach, in order of first appearance.
    pub fn new(layers: &[CacheLayer], key_type: CacheType, value_type: CacheType) -> Self {
        let mut groups: Vec<LayerGroup> = Vec::new();
        for (i, layer) in layers.iter().enumerate() {
            let id = LayerId(i as u32);
            match groups.iter_mut().find(|g| g.reach == layer.reach) {
                Some(group) => group.layers.push(id),
                None => groups.push(LayerGroup {
                    reach: layer.reach,
                    layers: vec![id],
                }),
            }
        }
        Self {
            layers: layers.to_vec(),
            groups,
            key_type,
            value_type,
        }
    }

    /// Whether this is the layout of `layers`: the same layers, each in one group that looks as far back as it does, and none that
    /// sees nothing.
    ///
    /// # Errors
    /// [`GraphError::Attribute`] with what does not fit.
    pub fn check(&self, layers: &[CacheLayer]) -> Result<(), GraphError> {
        let fail = |reason| {
            Err(GraphError::Attribute {
                op: "cache",
                reason,
            })
        };
        if self.layers.len() != layers.len() {
            let (found, expected) = (self.layers.len(), layers.len());
            return fail(format!("layout of {found} layers, expected {expected}"));
        }
        for (i, (layer, expected)) in self.layers.iter().zip(layers).enumerate() {
            if layer != expected {
                return fail(format!("layer {i} is {layer:?}, expected {expected:?}"));
            }
            if layer.reach == Reach::Window(0) {
                return fail(format!("layer {i} has a window of 0, expected 1 or more"));
            }
            let id = LayerId(i as u32);
            let mut groups = self
                .groups
                .iter()
                .flat_map(|g| g.layers.iter().map(|l| (*l, g.reach)))
                .filter(|(l, _)| *l == id);
            if groups.next() != Some((id, layer.reach)) || groups.next().is_some() {
                return fail(format!("layer {i} is not in one group of its reach"));
            }
        }
        let unknown = |l: &&LayerId| l.0 as usize >= self.layers.len();
        match self.groups.iter().flat_map(|g| &g.layers).find(unknown) {
            Some(layer) => fail(format!("a group has layer {}, which is not there", layer.0)),
            None => Ok(()),
        }
    }

    /// The group of `layer`.
    pub fn group_of(&self, layer: LayerId) -> Option<usize> {
        self.groups.iter().position(|g| g.layers.contains(&layer))
    }
}

/// Pages of a cache in a backend's memory. Which sequence owns which page is the engine's business.
pub trait CacheMemory: Send {
    /// Pages of each group.
    fn page_counts(&self) -> Vec<usize>;
    /// Bytes of one page of a group, over all its layers.
    fn page_bytes(&self, group: usize) -> usize;
    /// Copies page `from` of a group over page `to`, for all layers.
    fn copy_page(&mut self, group: usize, from: crate::PageId, to: crate::PageId);
    /// One page's bytes appended to `out`, for state files.
    fn read_page(&self, group: usize, page: crate::PageId, out: &mut Vec<u8>);
    /// The reverse of [`Self::read_page`]; false if `bytes` has another length than a page.
    fn write_page(&mut self, group: usize, page: crate::PageId, bytes: &[u8]) -> bool;
    /// For the backend that made it.
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_of_other_layers_or_with_broken_groups_is_refused() {
        let layer = |reach| CacheLayer {
            kv_heads: 2,
            key_dim: 32,
            value_dim: 32,
            reach,
        };
        let layers = [layer(Reach::Full), layer(Reach::Window(8))];
        let good = CacheLayout::new(&layers, CacheType::F16, CacheType::F16);
        assert_eq!(good.check(&layers), Ok(()));
        assert!(good.check(&layers[..1]).is_err(), "fewer layers");
        assert!(good.check(&[layers[1], layers[0]]).is_err(), "other order");

        let zero = [layer(Reach::Window(0))];
        let layout = CacheLayout::new(&zero, CacheType::F16, CacheType::F16);
        assert!(layout.check(&zero).is_err(), "a window of 0");

        let broken: [fn(&mut CacheLayout); 4] = [
            |l| l.groups.truncate(1),
            |l| l.groups[0].layers.push(LayerId(1)),
            |l| l.groups[1].layers.push(LayerId(2)),
            |l| l.groups[1].reach = Reach::Full,
        ];
        for (i, change) in broken.into_iter().enumerate() {
            let mut layout = good.clone();
            change(&mut layout);
            assert!(layout.check(&layers).is_err(), "change {i}");
        }
    }
}
