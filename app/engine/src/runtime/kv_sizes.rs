//! Sizes of the KV cache, and what one binding can cover.

use potluck_model::ModelSpec;
use potluck_plan::{BlockIndex, Bytes, KV_PAGE_TOKENS, KvCacheType};

use crate::runtime::layout::ALIGNMENT;
use crate::runtime::sizes::pages;

/// Bytes of keys and values that one position needs in a block.
pub fn kv_cache_bytes_per_position(spec: &ModelSpec, block: BlockIndex, kv_type: KvCacheType) -> Bytes {
    let attention = spec.attention(usize::from(block.0));
    Bytes(u64::from(attention.cached() * attention.kv_heads) * 4 * u64::from(kv_type.head_words(attention.head_dim)))
}

/// Largest part of a buffer that one binding may have to cover. Kernels use 32-bit byte offsets.
pub fn binding_limit(limits: &wgpu::Limits) -> Bytes {
    let binding = limits.max_storage_buffer_binding_size.min(limits.max_buffer_size).min(1 << 31);
    Bytes(binding / ALIGNMENT * ALIGNMENT)
}

/// Bytes of the largest buffer of keys, values or recurrent states that a context needs. One binding must cover it.
pub fn largest_kv_cache_buffer(spec: &ModelSpec, context: u32, kv_type: KvCacheType) -> Bytes {
    let blocks = (0..spec.blocks.len() as u16).map(BlockIndex);
    let largest = |block| kv_cache_buffer(spec, block, context, kv_type).max(spec.state_bytes(usize::from(block.0)));
    blocks.map(largest).max().unwrap_or_default()
}

/// Bytes of a block's keys or values, rounded up to whole pages.
pub(crate) fn kv_cache_buffer(spec: &ModelSpec, block: BlockIndex, context: u32, kv_type: KvCacheType) -> Bytes {
    let positions = u64::from(pages(context)) * u64::from(KV_PAGE_TOKENS);
    let cached = u64::from(spec.attention(usize::from(block.0)).cached());
    Bytes(positions * kv_cache_bytes_per_position(spec, block, kv_type).0 / cached.max(1))
}

/// The block whose keys and values a block attends to.
pub(crate) fn kv_owner(spec: &ModelSpec, block: BlockIndex) -> BlockIndex {
    BlockIndex(spec.kv_owner(usize::from(block.0)) as u16)
}
