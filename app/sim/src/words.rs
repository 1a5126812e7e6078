//! A host that keeps both ends of the model: what everybody sends, and what others are told to load and to compute.

use std::collections::BTreeSet;

use potluck_plan::{BlockIndex, Ends, Input, Task, Then, WeightUnit};
use potluck_protocol::{AnswerPart, Frame, RequestId};
use potluck_swarm::RelayRoute;

use super::world::World;

/// What a frame tells about the text of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Carries {
    /// Nothing, not even numbers.
    Nothing,
    /// Hidden vectors or which experts they need, from which somebody with the model can guess text.
    HiddenVectors,
    /// Token ids, also those of a bias, or the state of a sampler.
    Tokens,
    /// Candidates for the next token.
    Logits,
    /// A question.
    Question,
    /// An answer.
    Answer,
}

impl Carries {
    /// What it is in a frame, by the frame's fields. A new frame has to be added here.
    fn of(frame: &Frame) -> Self {
        match frame {
            Frame::Forward(forward) => {
                let is_told = !forward.tokens.is_empty()
                    || !forward.bias.is_empty()
                    || forward.sampling.is_some()
                    || forward.further_steps > 0;
                if is_told { Self::Tokens } else { Self::HiddenVectors }
            }
            Frame::LogitsResult(_) => Self::Logits,
            Frame::Prompt(_) => Self::Question,
            Frame::Answer(_, AnswerPart::Text { .. } | AnswerPart::Doubtful { .. }) => Self::Answer,
            Frame::ExpertCall(_)
            | Frame::ExpertResult(_)
            | Frame::ExpertHint(_)
            | Frame::Rows(_)
            | Frame::RowHashes(_) => Self::HiddenVectors,
            Frame::Answer(
                _,
                AnswerPart::Queued(_)
                | AnswerPart::Reading(..)
                | AnswerPart::Recovering(_)
                | AnswerPart::End { .. }
                | AnswerPart::Void { .. }
                | AnswerPart::Unknown,
            )
            | Frame::Hello(_)
            | Frame::Refused(_)
            | Frame::Heartbeat { .. }
            | Frame::HeartbeatBack { .. }
            | Frame::Probe { .. }
            | Frame::Calibrate(_)
            | Frame::Calibrated(..)
            | Frame::Bye
            | Frame::Room(_)
            | Frame::Prepare(_)
            | Frame::Prepared(_)
            | Frame::PrepareFailed(..)
            | Frame::Commit(_)
            | Frame::Committed(_)
            | Frame::Abandon(_)
            | Frame::StandBy(_)
            | Frame::StageFault(_)
            | Frame::Writing
            | Frame::Expect
            | Frame::Resume(..)
            | Frame::Stop(_)
            | Frame::Unknown
            | Frame::PieceRequest(_)
            | Frame::Piece { .. }
            | Frame::ExpertCancel(_)
            | Frame::Residency(_)
            | Frame::Hold(_)
            | Frame::Holding(_)
            | Frame::RoomUpdate(..)
            | Frame::Closed(_)
            | Frame::Checkers(_)
            | Frame::CommitRows(_)
            | Frame::RowsRequest(_)
            | Frame::Signal(_)
            | Frame::Deputy(_) => Self::Nothing,
            // Only a host that chose a deputy sends them, and what the deputy reads is no secret to it.
            Frame::Follow(_) => Self::Nothing,
        }
    }
}

/// What others than the host were sent, and who asked what.
#[derive(Default)]
pub(super) struct Heard {
    asked: BTreeSet<(usize, RequestId)>,
    kinds: BTreeSet<Carries>,
}

impl World {
    /// Both ends of the model stay on the host.
    pub fn keep_ends(&mut self) {
        self.ends = Ends::OnHost;
    }

    /// What frames to others than the host have carried so far.
    pub fn heard(&self) -> &BTreeSet<Carries> {
        &self.heard.kinds
    }

    /// A peer asks, or a forger by a frame of its own: it may get that answer.
    pub(super) fn note_question(&mut self, index: usize, frame: &Frame) {
        if let Frame::Prompt(prompt) = frame {
            self.heard.asked.insert((index, prompt.request));
        }
    }

    /// A peer's machine sends a frame. Nobody but the host gets token ids or logits, or makes logits; only who asked gets text.
    pub(super) fn check_words(&mut self, index: usize, to: RelayRoute, frame: &Frame) {
        if self.ends == Ends::Anywhere {
            return;
        }
        let carries = Carries::of(frame);
        // Nobody knows who is behind a route that the relay never gave out: it is not the host.
        let receiver = self.behind(to);
        if receiver.is_some_and(|receiver| self.peers[receiver].is_host) {
            if carries == Carries::Logits {
                self.violate(format!("device {index} made logits, which the host keeps for itself"));
            }
            return;
        }
        self.heard.kinds.insert(carries);
        let may = match (carries, frame) {
            (Carries::Nothing | Carries::HiddenVectors, _) => true,
            (Carries::Answer, Frame::Answer(request, _)) => {
                receiver.is_some_and(|receiver| self.heard.asked.contains(&(receiver, *request)))
            }
            _ => false,
        };
        if !may {
            let receiver = receiver.map_or("nobody known".to_owned(), |receiver| format!("device {receiver}"));
            self.violate(format!("device {index} sent {carries:?} to {receiver}"));
        }
    }

    /// A peer's engine gets work. Others than the host compute neither end.
    pub(super) fn check_work_on_ends(&mut self, index: usize, task: &Task) {
        let is_end = |block: BlockIndex| self.is_end(block);
        let is_wrong = match task {
            Task::Forward { input, blocks, then, .. } => {
                matches!(input, Input::Tokens(_))
                    || matches!(then, Then::LmHead(_))
                    || blocks.iter().any(is_end)
                    || matches!(then, Then::Route(block) if is_end(*block))
            }
            Task::Continue { .. } => true,
            Task::Experts { block, .. } => is_end(*block),
        };
        if self.keeps_from(index) && is_wrong {
            self.violate(format!("device {index} was told to compute an end of the model"));
        }
    }

    /// A peer is told to load. Others than the host hold neither end.
    pub(super) fn check_load_of_ends(&mut self, index: usize, units: &[WeightUnit]) {
        let is_end = |unit: &WeightUnit| match unit {
            WeightUnit::Embedding | WeightUnit::LmHead => true,
            other => other.block().is_some_and(|block| self.is_end(block)),
        };
        if let Some(unit) = units.iter().find(|unit| is_end(unit)).filter(|_| self.keeps_from(index)) {
            self.violate(format!("device {index} was told to load {unit:?}, which the host keeps for itself"));
        }
    }

    fn keeps_from(&self, index: usize) -> bool {
        self.ends == Ends::OnHost && !self.peers[index].is_host
    }

    fn is_end(&self, block: BlockIndex) -> bool {
        block.0 == 0 || block.0 + 1 == self.model.blocks
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use potluck_plan::{ExpertId, PlanEpoch};
    use potluck_protocol::{ExpertHint, Sharing, StageFault, StageFaultKind};

    use super::*;
    use crate::{SimDevice, SimModel};

    /// A host that keeps both ends of a model of four blocks, and another device, once they have met.
    fn room() -> World {
        let model = SimModel::dense(4);
        let mut world = World::new(1, model, Sharing::Fastest, SimDevice::with_budget(900));
        world.keep_ends();
        world.add(SimDevice::default(), 100.0);
        world.run(5_000.0, |_| false);
        assert_eq!(world.violation(), None, "nothing has happened yet");
        world
    }

    /// What the simulator says of something that a device does.
    fn said(act: impl FnOnce(&mut World)) -> String {
        let mut world = room();
        act(&mut world);
        world.violation().unwrap_or("nothing").to_owned()
    }

    #[test]
    fn an_end_that_is_loaded_or_computed_elsewhere_is_a_violation() {
        let first = WeightUnit::Expert(BlockIndex(0), ExpertId(1));
        for unit in [WeightUnit::Embedding, WeightUnit::LmHead, first, WeightUnit::TokenMixer(BlockIndex(3))] {
            let told = said(|world| world.check_load_of_ends(1, &[unit]));
            assert!(told.starts_with("device 1 was told to load"), "{unit:?}: {told}");
            assert_eq!(said(|world| world.check_load_of_ends(0, &[unit])), "nothing", "{unit:?} on the host");
        }
        let middle = WeightUnit::TokenMixer(BlockIndex(2));
        assert_eq!(said(|world| world.check_load_of_ends(1, &[middle])), "nothing", "a block between them");
        let experts = |block| Task::Experts {
            block: BlockIndex(block),
            class: potluck_plan::KernelClass::Decode,
            normed: Vec::new(),
            experts: Vec::new(),
            sum: None,
        };
        let told = said(|world| world.check_work_on_ends(1, &experts(0)));
        assert_eq!(told, "device 1 was told to compute an end of the model");
        assert_eq!(said(|world| world.check_work_on_ends(1, &experts(1))), "nothing", "a block between them");
    }

    #[test]
    fn an_answer_of_somebody_else_is_a_violation_and_so_is_one_for_nobody_known() {
        let text = |index| {
            let part = AnswerPart::Doubtful { conversation: "somebody's".into() };
            Frame::Answer(RequestId(index), part)
        };
        let route = |world: &World| world.peers[1].line.as_ref().unwrap().route;
        let told = said(|world| world.check_words(0, route(world), &text(1)));
        assert_eq!(told, "device 0 sent Answer to device 1");
        let told = said(|world| world.check_words(0, RelayRoute(u32::MAX), &text(1)));
        assert_eq!(told, "device 0 sent Answer to nobody known");
        let hint = Frame::ExpertHint(ExpertHint { epoch: PlanEpoch(1), experts: Vec::new() });
        assert_eq!(said(|world| world.check_words(0, route(world), &hint)), "nothing");
        let (stage, conversation) = (potluck_plan::StageId(0), potluck_plan::ConversationId(1));
        let kind = StageFaultKind::DeviceLost;
        let fault = StageFault { epoch: PlanEpoch(1), stage, conversation, pass: None, kind };
        assert_eq!(said(|world| world.check_words(1, route(world), &Frame::StageFault(fault))), "nothing");
    }

    #[test]
    fn the_first_violation_is_the_one_that_is_said() {
        let told = said(|world| {
            world.check_load_of_ends(1, &[WeightUnit::LmHead]);
            world.check_work_on_ends(
                1,
                &Task::Experts {
                    block: BlockIndex(0),
                    class: potluck_plan::KernelClass::Decode,
                    normed: Vec::new(),
                    experts: Vec::new(),
                    sum: None,
                },
            );
        });
        assert!(told.contains("LmHead"), "{told}");
    }
}
