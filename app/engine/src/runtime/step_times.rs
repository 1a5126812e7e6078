//! How long pieces of work take on this device, by their kind, so that a browser is asked for results when they may be
//! there.

use std::collections::HashMap;

use potluck_plan::{BlockRange, KernelClass, Task, Then};

use crate::runtime::pieces::rows_of;

/// Weight of the previous average in the moving average of step times.
const KEPT: f64 = 0.8;

/// Pieces of work that take about as long as each other: the same programs, and up to twice the tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StepKind {
    class: KernelClass,
    end: StepEnd,
    blocks: u16,
    /// Logarithm of the number of tokens to base 2.
    rows: u32,
}

/// What a piece of work ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum StepEnd {
    Experts,
    Router,
    LmHead,
    Hidden,
}

impl StepKind {
    /// `None` for multi-step decode, which is too long to be waited for.
    pub fn of(task: &Task) -> Option<Self> {
        let (class, blocks, end) = match task {
            Task::Forward { class, blocks, then, .. } => {
                let end = match then {
                    Then::Route(_) => StepEnd::Router,
                    Then::LmHead(_) => StepEnd::LmHead,
                    Then::Hidden | Then::Nothing => StepEnd::Hidden,
                };
                (*class, *blocks, end)
            }
            Task::Experts { class, .. } => (*class, BlockRange::new(0, 0), StepEnd::Experts),
            Task::Continue { .. } => return None,
        };
        let rows = rows_of(task).max(1).ilog2();
        Some(Self { class, end, blocks: blocks.len(), rows })
    }

    /// The kernels that compute it.
    pub fn class(self) -> KernelClass {
        self.class
    }
}

/// Usual time of a step.
#[derive(Clone, Copy, Debug)]
struct Usual {
    millis: f64,
    /// One step was measured, which may have waited for kernels to be compiled.
    is_first: bool,
}

/// How long steps of each kind take on this device.
#[derive(Debug, Default)]
pub struct StepTimes {
    usual: HashMap<StepKind, Usual>,
}

impl StepTimes {
    /// Records the time of a finished step.
    pub fn learn(&mut self, kind: StepKind, millis: f64) {
        let usual = match self.usual.get(&kind) {
            None => millis,
            Some(first) if first.is_first => first.millis.min(millis),
            Some(usual) => KEPT * usual.millis + (1.0 - KEPT) * millis,
        };
        let is_first = !self.usual.contains_key(&kind);
        self.usual.insert(kind, Usual { millis: usual, is_first });
    }

    /// How long steps of a kind take in milliseconds; `None` until one was measured.
    pub fn usual(&self, kind: StepKind) -> Option<f64> {
        self.usual.get(&kind).map(|usual| usual.millis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use potluck_plan::{
        BatchToken, BlockIndex, ConversationId, ExpertId, FirstToken, Input, LmHeadRequest, LmHeadTokens,
        LogitsRequest, Position,
    };

    fn forward(rows: u32, blocks: u16, then: Then) -> Task {
        let batch = (0..rows).map(|p| BatchToken { conversation: ConversationId(1), position: Position(p) }).collect();
        let (class, input) = (KernelClass::Decode, Input::Tokens(vec![0; rows as usize]));
        Task::Forward { batch, class, input, blocks: BlockRange::new(0, blocks), then, biases: Vec::new() }
    }

    fn experts(rows: usize, block: u16, class: KernelClass) -> Task {
        let (block, experts) = (BlockIndex(block), vec![vec![ExpertId(1)]; rows]);
        Task::Experts { block, class, normed: vec![0.0; rows], experts, sum: None }
    }

    #[test]
    fn what_takes_about_as_long_is_one_kind() {
        let of = |task: Task| StepKind::of(&task).expect("it has a time");
        let route = |block| Then::Route(BlockIndex(block));
        let head = Then::LmHead(LmHeadRequest { tokens: LmHeadTokens::Last, logits: LogitsRequest::Top(1) });
        assert_eq!(of(forward(1, 1, route(1))), of(forward(1, 1, route(7))), "routers of all blocks");
        assert_eq!(of(experts(64, 3, KernelClass::Prefill)), of(experts(100, 9, KernelClass::Prefill)));
        let kinds = [
            forward(1, 1, route(1)),
            forward(3, 1, route(1)),
            forward(1, 1, head),
            forward(1, 1, Then::Hidden),
            forward(1, 24, Then::Hidden),
            experts(1, 0, KernelClass::Decode),
            experts(1, 0, KernelClass::Prefill),
            experts(64, 0, KernelClass::Prefill),
        ]
        .map(of);
        for (index, kind) in kinds.iter().enumerate() {
            assert!(!kinds[index + 1..].contains(kind), "{kind:?} is two kinds of work");
        }
    }

    #[test]
    fn multi_step_decode_has_no_kind() {
        let row = BatchToken { conversation: ConversationId(1), position: Position(0) };
        let task = Task::Continue { row, token: FirstToken::Sampled, steps: 4, sampling: None };
        assert_eq!(StepKind::of(&task), None);
    }

    #[test]
    fn a_first_step_that_compiled_kernels_says_little() {
        let kind = StepKind::of(&experts(1, 0, KernelClass::Decode)).expect("experts have a time");
        let mut times = StepTimes::default();
        times.learn(kind, 800.0);
        times.learn(kind, 2.0);
        assert_eq!(times.usual(kind), Some(2.0));
        times.learn(kind, 7.0);
        assert_eq!(times.usual(kind), Some(3.0), "later ones are averaged");
    }

    #[test]
    fn the_usual_time_follows_a_device_that_slows_down() {
        let kind = StepKind::of(&experts(1, 0, KernelClass::Decode)).expect("experts have a time");
        let mut times = StepTimes::default();
        (0..3).for_each(|_| times.learn(kind, 2.0));
        (0..20).for_each(|_| times.learn(kind, 10.0));
        assert!(times.usual(kind).is_some_and(|millis| millis > 9.0), "{times:?}");
    }
}
