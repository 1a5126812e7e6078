//! Tokens waiting at a stage, and which of them the engine gets next. Tokens of several conversations share a batch:
//! a result never depends on the other tokens of its batch.

use std::collections::{BTreeSet, VecDeque};

use potluck_plan::{ConversationId, Input, KernelClass, LogitsRequest, PeerId, Work};
use potluck_protocol::Forward;

/// Batches of one stage in the engine at a time: while one is read back, the next one runs.
const IN_ENGINE: usize = 2;

/// Tokens on their way through one stage.
pub(super) struct Job {
    /// Their frame, without the hidden vectors.
    pub forward: Forward,
    /// Next block to compute.
    pub cursor: u16,
    /// Engine milliseconds in this stage so far.
    pub millis: f64,
    /// Devices that have computed experts for them in this stage.
    pub helpers: BTreeSet<PeerId>,
    /// Their conversation was forgotten while the engine had them: nobody waits for the result.
    pub dropped: bool,
}

impl Job {
    /// Tokens that have just arrived.
    pub fn new(forward: Forward, cursor: u16) -> Self {
        Self { forward, cursor, millis: 0.0, helpers: BTreeSet::new(), dropped: false }
    }
}

struct Waiting {
    job: Job,
    input: Input,
    /// It is in the middle of the stage: its experts have answered.
    continued: bool,
}

#[derive(Default)]
pub(super) struct StageQueue {
    waiting: VecDeque<Waiting>,
    /// Conversations with tokens in the middle of the stage, if its experts are elsewhere. The KV cache of a block
    /// must be written in order, so their next tokens wait.
    inside: BTreeSet<ConversationId>,
    in_engine: usize,
    last: Option<KernelClass>,
}

impl StageQueue {
    pub fn arrive(&mut self, job: Job, input: Input) {
        self.waiting.push_back(Waiting { job, input, continued: false });
    }

    /// Chunks that wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Tokens whose experts have answered go on before all others.
    pub fn go_on(&mut self, job: Job, input: Input) {
        self.waiting.push_front(Waiting { job, input, continued: true });
    }

    /// A conversation's tokens left the stage.
    pub fn left(&mut self, conversation: ConversationId) {
        self.inside.remove(&conversation);
    }

    /// The engine has answered one batch.
    pub fn answered(&mut self) {
        self.in_engine = self.in_engine.saturating_sub(1);
    }

    /// Drops what waits of a conversation.
    pub fn drop_conversation(&mut self, conversation: ConversationId) {
        self.waiting.retain(|waiting| waiting.job.forward.conversation != conversation);
        self.inside.remove(&conversation);
    }

    /// The next batch of jobs; empty if nothing may start now. `in_order`: the stage stops in its middle, so a
    /// conversation may have only one job in it.
    ///
    /// Decode and prefill alternate where both wait, so that neither blocks the other.
    pub fn next(&mut self, in_order: bool) -> Vec<(Job, Input)> {
        if self.in_engine >= IN_ENGINE {
            return Vec::new();
        }
        let startable: Vec<usize> = (0..self.waiting.len()).filter(|index| self.may_start(*index)).collect();
        let wanted = match self.last {
            Some(KernelClass::Decode) => KernelClass::Prefill,
            _ => KernelClass::Decode,
        };
        let class = |index: &usize| self.waiting[*index].job.forward.class;
        let Some(first) = startable.iter().find(|index| class(index) == wanted).or(startable.first()).copied() else {
            return Vec::new();
        };
        let mut chosen = vec![first];
        let mut tokens = self.tokens(first);
        for index in startable.into_iter().filter(|index| *index > first) {
            if self.may_join(first, index) && tokens + self.tokens(index) <= Work::DECODE_TOKENS {
                tokens += self.tokens(index);
                chosen.push(index);
            }
        }
        self.last = Some(class(&first));
        self.in_engine += 1;
        let mut piece: Vec<(Job, Input)> = Vec::with_capacity(chosen.len());
        for index in chosen.into_iter().rev() {
            piece.extend(self.waiting.remove(index).map(|waiting| (waiting.job, waiting.input)));
        }
        piece.reverse();
        if in_order {
            self.inside.extend(piece.iter().map(|(job, _)| job.forward.conversation));
        }
        piece
    }

    fn may_start(&self, index: usize) -> bool {
        let Waiting { job, continued, .. } = &self.waiting[index];
        let conversation = job.forward.conversation;
        let is_earlier = |waiting: &Waiting| waiting.job.forward.conversation == conversation;
        *continued || !self.inside.contains(&conversation) && !self.waiting.range(..index).any(is_earlier)
    }

    fn may_join(&self, first: usize, other: usize) -> bool {
        let (first, other) = (&self.waiting[first].job, &self.waiting[other].job);
        let lm_head = |job: &Job| job.forward.lm_head.map(|lm_head| matches!(lm_head.logits, LogitsRequest::Top(_)));
        let decoded = |job: &Job| {
            job.forward.class == KernelClass::Decode && job.forward.further_steps == 0 && lm_head(job) != Some(false)
        };
        decoded(first) && decoded(other) && first.cursor == other.cursor && lm_head(first) == lm_head(other)
    }

    fn tokens(&self, index: usize) -> usize {
        self.waiting[index].job.forward.count as usize
    }
}

#[cfg(test)]
mod tests {
    use potluck_plan::{LmHeadRequest, LmHeadTokens, PlanEpoch, Position, StageId, WireType};
    use potluck_protocol::PassId;

    use super::*;

    fn job(conversation: u32, class: KernelClass, rows: usize) -> (Job, Input) {
        let forward = Forward {
            epoch: PlanEpoch(1),
            stage: StageId(0),
            pass: PassId(1),
            live: Vec::new(),
            conversation: ConversationId(conversation),
            base: Position(0),
            class,
            count: rows as u32,
            tokens: vec![5; rows],
            further_steps: 0,
            sampling: None,
            lm_head: Some(LmHeadRequest { tokens: LmHeadTokens::Last, logits: LogitsRequest::Top(1) }),
            stage_millis: Vec::new(),
            wire: WireType::F32,
            hidden: Vec::new(),
        };
        let input = Input::Tokens(forward.tokens.clone());
        (Job::new(forward, 0), input)
    }

    fn queue(jobs: &[(u32, KernelClass, usize)]) -> StageQueue {
        let mut queue = StageQueue::default();
        for (conversation, class, rows) in jobs {
            let (job, input) = job(*conversation, *class, *rows);
            queue.arrive(job, input);
        }
        queue
    }

    fn next(queue: &mut StageQueue, in_order: bool) -> Vec<u32> {
        let piece = queue.next(in_order);
        piece.iter().map(|(job, _)| job.forward.conversation.0).collect()
    }

    use KernelClass::{Decode, Prefill};

    #[test]
    fn decoded_tokens_that_meet_share_a_batch_up_to_its_limit() {
        let mut queue = queue(&[(1, Decode, 1), (2, Decode, 8), (3, Decode, 8), (4, Decode, 7)]);
        assert_eq!(next(&mut queue, false), [1, 2, 4], "16 rows, in the order of arrival");
        assert_eq!(next(&mut queue, false), [3]);
    }

    #[test]
    fn tokens_of_one_conversation_never_overtake_each_other() {
        let mut queue = queue(&[(1, Prefill, 64), (1, Decode, 1), (2, Decode, 1)]);
        assert_eq!(next(&mut queue, false), [2]);
        assert_eq!(next(&mut queue, false), [1], "the prompt first");
        queue.answered();
        assert_eq!(next(&mut queue, false), [1]);
    }

    #[test]
    fn answers_and_prompts_take_turns() {
        let mut queue = queue(&[(1, Prefill, 64), (1, Prefill, 64), (2, Decode, 1)]);
        let mut order = Vec::new();
        for _ in 0..4 {
            order.extend(next(&mut queue, false));
            queue.answered();
            let (job, input) = job(2, Decode, 1);
            queue.arrive(job, input);
        }
        assert_eq!(order, [2, 1, 2, 1]);
    }

    #[test]
    fn others_pass_while_one_waits_for_experts() {
        let mut queue = queue(&[(1, Decode, 1), (1, Decode, 1)]);
        assert_eq!(next(&mut queue, true), [1]);
        queue.answered();
        assert_eq!(next(&mut queue, true), [0u32; 0], "the first rows are in the middle of the stage");
        let (other, input) = job(2, Decode, 1);
        queue.arrive(other, input);
        assert_eq!(next(&mut queue, true), [2]);
        queue.left(ConversationId(1));
        assert_eq!(next(&mut queue, true), [1]);
    }

    #[test]
    fn the_engine_is_not_given_everything_at_once() {
        let mut queue = queue(&[(1, Prefill, 64), (2, Prefill, 64), (3, Prefill, 64)]);
        assert_eq!(
            [next(&mut queue, false), next(&mut queue, false), next(&mut queue, false)],
            [vec![1], vec![2], vec![]]
        );
        queue.answered();
        assert_eq!(next(&mut queue, false), [3]);
    }
}
