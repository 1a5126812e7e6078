//! Takes over another engine's KV cache: a shadow model's becomes its base's (od-moe.txt 3.2).

use potluck_plan::{BlockIndex, ConversationId, KV_PAGE_TOKENS};

use crate::runtime::engine::Engine;
use crate::runtime::error::EngineError;
use crate::runtime::kv_sizes::kv_cache_buffer;
use crate::runtime::layout::Key;

impl Engine {
    /// Copies the keys and values of a conversation from another engine on the same GPU, as far as both have positions
    /// and no further than `until`, rounded up to a whole page. What this engine has from `until` on is not valid
    /// afterwards. Returns the bytes copied: none if the engines store keys and values in different ways, or have
    /// recurrent state.
    ///
    /// # Errors
    /// The device is lost.
    pub fn copy_kv_cache(&self, of: &Engine, conversation: ConversationId, until: u32) -> Result<u64, EngineError> {
        let (to_core, from_core) = (self.inner.core.borrow(), of.inner.core.borrow());
        to_core.check_alive()?;
        let (to, from) = (&to_core.model, &from_core.model);
        let fits = to.settings.kv_cache == from.settings.kv_cache && to.spec.blocks == from.spec.blocks;
        if !fits || (0..to.spec.blocks.len()).any(|block| to.spec.recurrent(block).is_some()) {
            return Ok(0);
        }
        let both =
            to_core.conversations().known(conversation).min(from_core.conversations().known(conversation)).min(until);
        let count = both.div_ceil(KV_PAGE_TOKENS) as usize;
        let (own, others) =
            (to_core.conversations().pages_of(conversation), from_core.conversations().pages_of(conversation));
        let mut encoder = to.gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let mut copied = 0;
        for block in (0..to.spec.blocks.len() as u16).map(BlockIndex) {
            // A page's rows lie together, and are as long here as there.
            let page = kv_cache_buffer(&to.spec, block, KV_PAGE_TOKENS, to.settings.kv_cache).0;
            for key in [Key::Keys(block), Key::Values(block)] {
                let (Some(target), Some(source)) = (to.memory.find(key), from.memory.find(key)) else { continue };
                for (own, other) in own.iter().zip(others).take(count) {
                    let (at, there) = (u64::from(*own) * page, u64::from(*other) * page);
                    encoder.copy_buffer_to_buffer(&source.buffer, there, &target.buffer, at, page);
                    copied += page;
                }
            }
        }
        to.gpu.queue.submit([encoder.finish()]);
        Ok(copied)
    }
}
