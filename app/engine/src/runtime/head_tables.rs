//! Small tables of latent attention, whose heads are handled like experts.

use crate::runtime::layout::{Key, Scratch, align};
use crate::runtime::model::Model;

impl Model {
    /// What [`Scratch::Heads`] holds: the places of heads whose matrices follow each other, those of the last rows of
    /// each head's queries, and the head of each (token, head) pair.
    fn head_tables(&self) -> Option<[Vec<u32>; 3]> {
        let blocks = 0..self.spec.blocks.len();
        let a = blocks.map(|block| self.spec.attention(block)).find(|a| a.latent.is_some())?;
        let key = a.latent?.key;
        let heads = 0..a.heads;
        let last_rows = heads.clone().map(|head| head * (key + a.rope.dims) + key).collect();
        let tokens = self.memory.layout().prefill_tokens;
        Some([heads.collect(), last_rows, (0..tokens * a.heads).map(|pair| pair % a.heads).collect()])
    }

    /// Writes the tables of heads.
    pub fn write_head_tables(&self) {
        if !self.memory.layout().sizes.contains_key(&Key::Scratch(Scratch::Heads)) {
            return;
        }
        let mut at = 0;
        for table in self.head_tables().into_iter().flatten() {
            self.write(Scratch::Heads, at, bytemuck::cast_slice(&table));
            at += align(table.len() as u64 * 4);
        }
    }
}
