//! What experts get and give: chosen experts and outputs in scratch buffers that have room for as many experts as a
//! token uses, although a token may have fewer.

use potluck_plan::{BlockIndex, ExpertId, ExpertOutputs};
use potluck_shaders::NO_SLOT;

use crate::runtime::encode_ahead::Parts;
use crate::runtime::error::EngineError;
use crate::runtime::layout::Scratch;
use crate::runtime::model::Model;

/// First byte and number of bytes of the existing vectors among those of (token, expert) pairs, in order. Neighbours are
/// joined. `counts` says how many experts each token has.
fn ranges(counts: impl Iterator<Item = usize>, used: u64, vector_bytes: u64) -> Vec<(u64, u64)> {
    let mut all: Vec<(u64, u64)> = Vec::new();
    for (token, count) in (0..).zip(counts).filter(|(_, count)| *count > 0) {
        let (first, bytes) = (token * used * vector_bytes, count as u64 * vector_bytes);
        match all.last_mut() {
            Some((at, len)) if *at + *len == first => *len += bytes,
            _ => all.push((first, bytes)),
        }
    }
    all
}

impl Model {
    /// Where the outputs of a task's experts lie in `Scratch::Parts`.
    pub fn output_ranges(
        &self,
        block: BlockIndex,
        counts: impl Iterator<Item = usize>,
    ) -> Result<Vec<(u64, u64)>, EngineError> {
        let (used, _) = self.routing(block)?;
        Ok(ranges(counts, u64::from(used), u64::from(self.spec.hidden) * 4))
    }

    /// What is copied of the outputs of one token's experts: as many as a token may have, of which the first are read. Then
    /// the commands of a block are the same for all tokens, however many of their experts are here. `parts` if there are
    /// several tokens, or less `room` for the result.
    pub fn copied_outputs(
        &self,
        block: BlockIndex,
        experts: &[Vec<ExpertId>],
        parts: Parts,
        room: u64,
    ) -> Result<Parts, EngineError> {
        let (used, _) = self.routing(block)?;
        let bytes = u64::from(used) * u64::from(self.spec.hidden) * 4;
        Ok(if experts.len() == 1 && bytes <= room { vec![(Scratch::Parts, 0, bytes)] } else { parts })
    }

    /// Writes the experts of each token.
    pub fn write_chosen(&self, block: BlockIndex, experts: &[Vec<ExpertId>]) -> Result<(), EngineError> {
        let (used, _) = self.routing(block)?;
        let padded = |experts: &Vec<ExpertId>| {
            let padding = std::iter::repeat_n(NO_SLOT, (used as usize).saturating_sub(experts.len()));
            experts.iter().map(|expert| u32::from(expert.0)).chain(padding).collect::<Vec<u32>>()
        };
        let chosen: Vec<u32> = experts.iter().flat_map(padded).collect();
        self.write(Scratch::Chosen, 0, bytemuck::cast_slice(&chosen));
        Ok(())
    }

    /// Writes the weights of each token's experts.
    pub fn write_gates(
        &self,
        block: BlockIndex,
        tokens: impl Iterator<Item = impl Iterator<Item = f32>>,
    ) -> Result<(), EngineError> {
        let (used, _) = self.routing(block)?;
        let mut gates = Vec::new();
        for (token, weights) in (1..).zip(tokens) {
            gates.extend(weights);
            gates.resize(token * used as usize, 0.0);
        }
        self.write(Scratch::Gates, 0, bytemuck::cast_slice(&gates));
        Ok(())
    }

    /// Writes what a sum of experts' outputs needs: residual, routes and outputs.
    pub fn write_outputs(&self, given: &ExpertOutputs) -> Result<(), EngineError> {
        let ids = |route: &potluck_plan::ExpertRoute| route.experts.iter().map(|(expert, _)| *expert).collect();
        self.write_chosen(given.block, &given.routes.iter().map(ids).collect::<Vec<_>>())?;
        self.write_gates(given.block, given.routes.iter().map(|route| route.experts.iter().map(|(_, gate)| *gate)))?;
        self.write(Scratch::Hidden, 0, bytemuck::cast_slice(&given.residual));
        let mut outputs: &[u8] = bytemuck::cast_slice(&given.outputs);
        for (at, bytes) in self.output_ranges(given.block, given.routes.iter().map(|route| route.experts.len()))? {
            let (now, later) = outputs.split_at(bytes as usize);
            self.write(Scratch::Parts, at, now);
            outputs = later;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::ranges;

    #[test]
    fn tokens_with_all_their_experts_are_one_range() {
        assert_eq!(ranges([2, 2, 2].into_iter(), 2, 100), [(0, 600)]);
        assert_eq!(ranges([].into_iter(), 2, 100), []);
        assert_eq!(ranges([0, 0].into_iter(), 2, 100), []);
    }

    #[test]
    fn tokens_with_few_experts_leave_gaps() {
        assert_eq!(ranges([1, 3, 3, 0, 2, 3].into_iter(), 3, 10), [(0, 10), (30, 60), (120, 20), (150, 30)]);
        assert_eq!(ranges([0, 1].into_iter(), 1, 4), [(4, 4)]);
    }
}
