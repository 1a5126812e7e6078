//! A host that protects its model, and devices that ask for any of its bytes.

use std::ops::Range;

use potluck_plan::{Bytes, ModelShape, WeightUnit};
use potluck_protocol::{Frame, ModelSource, PieceRequest};
use potluck_swarm::{Action, Event, FileParts};

use super::world::World;

/// Bytes of the simulated file's header, and of each unit in it: a group.
const GROUP: u64 = 16;

/// Every unit of a model with its bytes in the file.
fn units(shape: &ModelShape) -> Vec<(Range<u64>, WeightUnit)> {
    let of_block = |block| {
        let experts = shape.block_experts(block).into_iter().map(move |expert| WeightUnit::Expert(block, expert));
        shape.block_units(block).into_iter().chain(experts).collect::<Vec<_>>()
    };
    let blocks = shape.all_blocks().iter().flat_map(of_block);
    let all = [WeightUnit::Embedding, WeightUnit::LmHead].into_iter().chain(blocks);
    all.zip(1..).map(|(unit, group)| (GROUP * group..GROUP * (group + 1), unit)).collect()
}

pub(super) fn parts(shape: &ModelShape) -> FileParts {
    FileParts::new(GROUP, GROUP, units(shape))
}

impl World {
    /// The host keeps everything but experts for itself.
    pub fn protect(&mut self) {
        self.protect = true;
        self.source = ModelSource::File { name: "sim.gguf".into(), bytes: Bytes(1) };
    }

    /// The host would read the header of its file for this device.
    pub fn may_read_header(&mut self, index: usize) -> bool {
        self.may_read(index, 0, 0..GROUP)
    }

    /// The host would send this device the list of its file's hashes.
    pub fn may_read_hashes(&mut self, index: usize) -> bool {
        self.may_read(index, 0x8000, 0..1)
    }

    /// The units that the host would read for this device.
    pub fn may_read_units(&mut self, index: usize) -> Vec<WeightUnit> {
        let all = units(&self.model.shape());
        all.into_iter().filter(|(range, _)| self.may_read(index, 0, range.clone())).map(|(_, unit)| unit).collect()
    }

    /// Nobody but the host of a protected model is told to load or to time anything but experts.
    pub(super) fn check_protection(&mut self, index: usize, units: Option<&[WeightUnit]>) {
        let is_expert = |unit: &WeightUnit| matches!(unit, WeightUnit::Expert(..));
        if self.protect && index > 0 && !units.is_some_and(|units| units.iter().all(is_expert)) {
            self.violation = Some(format!("device {index} was told to load or time what the host keeps"));
        }
    }

    fn may_read(&mut self, index: usize, file: u16, range: Range<u64>) -> bool {
        let Some(route) = self.peers[index].line.as_ref().map(|line| line.route) else { return false };
        let from = self.peers[index].id;
        let request = PieceRequest { id: 0, file, offset: range.start, len: (range.end - range.start) as u32 };
        let (host, now) = (&mut self.peers[0].machine, potluck_plan::Millis(self.now));
        let actions = host.on(Event::Frame { route, from, frame: Frame::PieceRequest(request) }, now);
        let is_read = actions.iter().any(|action| matches!(action, Action::ReadPiece { .. }));
        if is_read {
            host.on(Event::PieceRead { peer: from, id: 0, bytes: Ok(Vec::new()) }, now);
        }
        is_read
    }
}
