//! A stage that lies about passes. It computes well and hands on what it should, but says of chunks other numbers and other live
//! conversations than the host did, sends them twice, or makes some up.

use std::collections::BTreeMap;

use potluck_plan::{ConversationId, Position};
use potluck_protocol::{Forward, Frame, PassId};

use super::random::Random;
use super::world::World;

/// The largest pass that stages believe.
const NEWEST: u64 = 1 << 40;
/// Passes that a room sends in some seconds.
const FEW: u64 = 200;

/// The devices that lie, and how rarely.
pub(super) struct FalsePasses {
    random: Random,
    one_in: BTreeMap<usize, u64>,
}

impl FalsePasses {
    pub fn new(seed: u64) -> Self {
        Self { random: Random(seed ^ 0x0070_6173_7365), one_in: BTreeMap::new() }
    }

    pub fn lies(&self, index: usize) -> bool {
        self.one_in.contains_key(&index)
    }
}

impl World {
    /// A device says something false with about one of so many chunks that it hands on.
    pub fn lies_about_passes(&mut self, index: usize, one_in: u64) {
        self.false_passes.one_in.insert(index, one_in);
    }

    /// What a device sends when its state machine sends this.
    pub(super) fn falsified(&mut self, index: usize, frame: Frame) -> Vec<Frame> {
        let FalsePasses { random, one_in } = &mut self.false_passes;
        let Frame::Forward(honest) = frame else { return vec![frame] };
        let Some(one_in) = one_in.get(&index) else { return vec![Frame::Forward(honest)] };
        if random.below(*one_in) > 0 {
            return vec![Frame::Forward(honest)];
        }
        let (alone, soon) = (vec![honest.conversation], PassId(honest.pass.0 + 1 + random.below(FEW)));
        let copy = |pass: PassId, live: Vec<ConversationId>| Forward { pass, live, ..honest.clone() };
        let first = match random.below(8) {
            0 => copy(PassId(u64::MAX), Vec::new()),
            1 => copy(PassId(u64::MAX), alone),
            2 => copy(PassId(NEWEST - random.below(FEW)), alone),
            3 => copy(soon, honest.live.clone()),
            4 => copy(soon, alone),
            5 => honest.clone(),
            6 => {
                let conversation = ConversationId(u32::MAX);
                Forward { conversation, base: Position(0), ..copy(soon, vec![conversation]) }
            }
            // The right number, and everything else is over.
            _ => return vec![Frame::Forward(copy(honest.pass, alone))],
        };
        vec![Frame::Forward(first), Frame::Forward(honest)]
    }
}
