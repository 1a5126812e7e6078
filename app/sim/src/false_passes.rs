//! A stage that lies about passes. It computes well and hands on what it should, but says of chunks other numbers, other live
//! conversations and other times than the host did, sends them twice, or makes some up: also more than there are pages for, and chunks of
//! the answers for a plan that is only prepared.

use std::collections::BTreeMap;

use potluck_plan::{ConversationId, KernelClass, Plan, Position};
use potluck_protocol::{Forward, Frame, PassId};
use potluck_swarm::RelayRoute;

use super::engine::CONTEXT;
use super::random::Random;
use super::world::World;

/// The largest pass that stages believe.
const NEWEST: u64 = 1 << 40;
/// Passes that a room sends in some seconds.
const FEW: u64 = 200;
/// Positions of a conversation that is made up: two of them take more pages than there are.
const MANY: u32 = 3 * CONTEXT / 4;

/// The devices that lie, and how rarely.
pub(super) struct FalsePasses {
    random: Random,
    one_in: BTreeMap<usize, u64>,
    /// The newest plan that the host had somebody prepare.
    prepared: Option<Plan>,
}

impl FalsePasses {
    pub fn new(seed: u64) -> Self {
        Self { random: Random(seed ^ 0x0070_6173_7365), one_in: BTreeMap::new(), prepared: None }
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

    /// A chunk of the next plan, which nobody has sent: of a conversation that is being answered, with numbers of this plan. Returns to
    /// whom the liar sends it besides this frame.
    pub(super) fn of_the_next_plan(&mut self, index: usize, frame: &Frame) -> Option<(RelayRoute, Frame)> {
        if let Frame::Prepare(prepare) = frame {
            self.false_passes.prepared = Some(prepare.plan.clone());
        }
        let FalsePasses { random, one_in, prepared } = &mut self.false_passes;
        let (Frame::Forward(honest), Some(one_in)) = (frame, one_in.get(&index)) else { return None };
        let next = prepared.as_ref().filter(|plan| plan.epoch > honest.epoch)?;
        let own = next.stages.iter().position(|stage| stage.peer == self.peers[index].id)?;
        let after = next.stages.get(own + 1)?;
        let line = self.peers.iter().find(|peer| peer.id == after.peer)?.line.as_ref()?;
        if random.below(*one_in) > 0 {
            return None;
        }
        let (alone, pass) = (vec![honest.conversation], PassId(NEWEST - random.below(FEW)));
        let live = if random.below(2) == 0 { alone } else { honest.live.clone() };
        let (epoch, stage, base, stage_millis) = (next.epoch, after.id, Position(0), Vec::new());
        let lie = Forward { epoch, stage, base, pass, live, stage_millis, ..honest.clone() };
        Some((line.route, Frame::Forward(lie)))
    }

    /// What a device sends when its state machine sends this.
    pub(super) fn falsified(&mut self, index: usize, frame: Frame) -> Vec<Frame> {
        let FalsePasses { random, one_in, .. } = &mut self.false_passes;
        let Frame::Forward(honest) = frame else { return vec![frame] };
        let Some(one_in) = one_in.get(&index) else { return vec![Frame::Forward(honest)] };
        if random.below(*one_in) > 0 {
            return vec![Frame::Forward(honest)];
        }
        let (alone, soon) = (vec![honest.conversation], PassId(honest.pass.0 + 1 + random.below(FEW)));
        let copy = |pass: PassId, live: Vec<ConversationId>| Forward { pass, live, ..honest.clone() };
        let made_up = |conversation: u32, pass: PassId, live: Vec<ConversationId>| {
            let conversation = ConversationId(conversation);
            let live = [&live[..], &[conversation]].concat();
            Frame::Forward(Forward { conversation, base: Position(0), ..copy(pass, live) })
        };
        let first = match random.below(14) {
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
            7 => {
                let stage_millis = [&honest.stage_millis[..], &vec![1.0; 1 + random.below(4) as usize]].concat();
                Forward { stage_millis, ..honest.clone() }
            }
            8 => {
                let many = (0..=CONTEXT).map(ConversationId);
                copy(soon, many.chain(honest.live.clone()).collect())
            }
            9 | 10 => {
                let made_up = [ConversationId(u32::MAX - 1), ConversationId(u32::MAX - 2)];
                let live = [&made_up[..], &alone].concat();
                let row = &honest.hidden[..honest.hidden.len() / honest.count.max(1) as usize];
                let (count, hidden, class) = (MANY, row.repeat(MANY as usize), KernelClass::Prefill);
                let long = Forward { count, hidden, class, base: Position(0), further_steps: 0, ..copy(soon, live) };
                let of = |conversation: &ConversationId| {
                    Frame::Forward(Forward { conversation: *conversation, ..long.clone() })
                };
                return made_up.iter().map(of).chain([Frame::Forward(honest)]).collect();
            }
            // Words that bring back what another one has ended: one with the same pass, and an older one after a newer one.
            11 => {
                let another = made_up(u32::MAX - 3, honest.pass, Vec::new());
                return vec![Frame::Forward(honest.clone()), another, Frame::Forward(honest)];
            }
            12 => {
                let (newer, older) = (PassId(honest.pass.0 + 2), PassId(honest.pass.0 + 1));
                let all_live = vec![honest.conversation, ConversationId(u32::MAX - 5)];
                let newer = made_up(u32::MAX - 4, newer, all_live);
                let older = made_up(u32::MAX - 5, older, Vec::new());
                return vec![Frame::Forward(honest.clone()), newer, older, Frame::Forward(honest)];
            }
            // The right number, and everything else is over.
            _ => return vec![Frame::Forward(copy(honest.pass, alone))],
        };
        vec![Frame::Forward(first), Frame::Forward(honest)]
    }
}
