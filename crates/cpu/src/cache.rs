//! Pages of keys and values in memory: for every layer one block of all its pages.

use crate::{
    kernels::kv::{KvLayout, PAGE},
    memory::Block,
};
use puna_graph::{
    BackendError, CacheLayout, CacheMemory, LayerGroup, LayerId, PAGE_POSITIONS, PageId,
};
use std::any::Any;

// The engine's page tables and the kernels' tiles count the same positions.
const _: () = assert!(PAGE_POSITIONS == PAGE);

/// The cache's memory.
#[derive(Debug)]
pub(crate) struct CpuCache {
    groups: Vec<LayerGroup>,
    /// Pages of each group.
    pages: Vec<usize>,
    layouts: Vec<KvLayout>,
    blocks: Vec<Block>,
}

impl CpuCache {
    pub(crate) fn new(
        layout: &CacheLayout,
        layouts: Vec<KvLayout>,
        pages: &[usize],
    ) -> Result<Self, BackendError> {
        if pages.len() != layout.groups.len() {
            let message = format!(
                "pages for {} groups, expected {}",
                pages.len(),
                layout.groups.len()
            );
            return Err(BackendError::Batch(message));
        }
        let mut blocks = Vec::new();
        for (i, kv) in layouts.iter().enumerate() {
            let group = layout.group_of(LayerId(i as u32));
            let count = group.and_then(|g| pages.get(g)).copied().unwrap_or(0);
            let bytes = kv.page_bytes().saturating_mul(count);
            blocks.push(Block::zeroed("cache", bytes)?);
        }
        Ok(Self {
            groups: layout.groups.clone(),
            pages: pages.to_vec(),
            layouts,
            blocks,
        })
    }

    /// Number of groups.
    pub(crate) fn groups(&self) -> usize {
        self.groups.len()
    }

    /// Whether this is the cache of these layers.
    pub(crate) fn has_layouts(&self, layouts: &[KvLayout]) -> bool {
        self.layouts == layouts
    }

    /// Where a page of a layer begins; `layout.page_bytes()` bytes.
    pub(crate) fn page(&self, layer: LayerId, page: PageId) -> *mut u8 {
        let bytes = self.layouts[layer.0 as usize].page_bytes();
        let block = &self.blocks[layer.0 as usize];
        let offset = (page.0 as usize).checked_mul(bytes);
        match offset.filter(|o| o.checked_add(bytes).is_some_and(|end| end <= block.len())) {
            Some(offset) => block.pointer(offset),
            None => panic!("page outside of the cache"),
        }
    }

    /// A page of a layer.
    ///
    /// # Safety
    /// Nobody writes to this page while the slice lives.
    pub(crate) unsafe fn read(&self, layer: LayerId, page: PageId) -> &[u8] {
        let bytes = self.layouts[layer.0 as usize].page_bytes();
        // SAFETY: in bounds by `page`, initialized since blocks are zeroed, and free of writers by the caller.
        unsafe { std::slice::from_raw_parts(self.page(layer, page), bytes) }
    }
}

impl CacheMemory for CpuCache {
    fn page_counts(&self) -> Vec<usize> {
        self.pages.clone()
    }

    fn page_bytes(&self, group: usize) -> usize {
        let layers = &self.groups[group].layers;
        layers
            .iter()
            .map(|l| self.layouts[l.0 as usize].page_bytes())
            .sum()
    }

    fn copy_page(&mut self, group: usize, from: PageId, to: PageId) {
        if from == to {
            return;
        }
        for layer in &self.groups[group].layers {
            let bytes = self.layouts[layer.0 as usize].page_bytes();
            let (from, to) = (self.page(*layer, from), self.page(*layer, to));
            // SAFETY: two different pages of the block, which `&mut self` holds alone.
            unsafe { std::ptr::copy_nonoverlapping(from, to, bytes) }
        }
    }

    fn read_page(&self, group: usize, page: PageId, out: &mut Vec<u8>) {
        for layer in &self.groups[group].layers {
            // SAFETY: a run, the only writer through `&self`, is given the cache as `&mut`.
            out.extend_from_slice(unsafe { self.read(*layer, page) });
        }
    }

    fn write_page(&mut self, group: usize, page: PageId, bytes: &[u8]) -> bool {
        if bytes.len() != self.page_bytes(group) {
            return false;
        }
        let mut rest = bytes;
        for layer in &self.groups[group].layers {
            let (part, tail) = rest.split_at(self.layouts[layer.0 as usize].page_bytes());
            rest = tail;
            // SAFETY: a whole page, which `&mut self` holds alone.
            unsafe {
                std::ptr::copy_nonoverlapping(part.as_ptr(), self.page(*layer, page), part.len());
            }
        }
        true
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}
