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
    /// Token ids, or the state of a sampler.
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
                let is_told = !forward.tokens.is_empty() || forward.sampling.is_some() || forward.further_steps > 0;
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
            Frame::Answer(..)
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
            | Frame::RowsRequest(_) => Self::Nothing,
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
        let receiver = self.behind(to).filter(|receiver| !self.peers[*receiver].is_host);
        let Some(receiver) = receiver else {
            if carries == Carries::Logits {
                self.violation = Some(format!("device {index} made logits, which the host keeps for itself"));
            }
            return;
        };
        self.heard.kinds.insert(carries);
        let may = match (carries, frame) {
            (Carries::Nothing | Carries::HiddenVectors, _) => true,
            (Carries::Answer, Frame::Answer(request, _)) => self.heard.asked.contains(&(receiver, *request)),
            _ => false,
        };
        if !may {
            self.violation = Some(format!("device {index} sent {carries:?} to device {receiver}"));
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
            self.violation = Some(format!("device {index} was told to compute an end of the model"));
        }
    }

    /// A peer is told to load. Others than the host hold neither end.
    pub(super) fn check_load_of_ends(&mut self, index: usize, units: &[WeightUnit]) {
        let is_end = |unit: &WeightUnit| match unit {
            WeightUnit::Embedding | WeightUnit::LmHead => true,
            other => other.block().is_some_and(|block| self.is_end(block)),
        };
        if let Some(unit) = units.iter().find(|unit| is_end(unit)).filter(|_| self.keeps_from(index)) {
            self.violation = Some(format!("device {index} was told to load {unit:?}, which the host keeps for itself"));
        }
    }

    fn keeps_from(&self, index: usize) -> bool {
        self.ends == Ends::OnHost && !self.peers[index].is_host
    }

    fn is_end(&self, block: BlockIndex) -> bool {
        block.0 == 0 || block.0 + 1 == self.model.blocks
    }
}
