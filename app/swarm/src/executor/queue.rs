//! Tokens waiting at a stage, and which of them the engine gets next. Tokens of several conversations share a batch:
//! a result never depends on the other tokens of its batch.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use potluck_plan::{ConversationId, Input, KernelClass, PeerId, Work};
use potluck_protocol::{Forward, PassId};

/// Batches of one stage in the engine at a time: while one is read back, the next one runs.
const IN_ENGINE: usize = 2;

/// Chunks of one conversation in the middle of a stage at a time: while one waits for experts elsewhere, the next one
/// computes and its calls travel (od-moe.txt 3.3). Each keeps the outputs of a block's experts: 33 MB for 512 tokens of
/// Qwen3-30B-A3B.
const INSIDE: usize = 3;

/// Tokens on their way through one stage.
pub(super) struct Job {
    /// Their frame, without the hidden vectors.
    pub forward: Forward,
    /// What the engine calls their conversation.
    pub on_engine: ConversationId,
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
    pub fn new(forward: Forward, on_engine: ConversationId, cursor: u16) -> Self {
        Self { forward, on_engine, cursor, millis: 0.0, helpers: BTreeSet::new(), dropped: false }
    }
}

struct Waiting {
    job: Job,
    input: Input,
    /// It is in the middle of the stage: its experts have answered.
    continued: bool,
}

/// Tokens in the middle of a stage.
struct Inside {
    pass: PassId,
    /// Block at which their newest piece of work ends; all attention up to there was submitted.
    until: u16,
}

#[derive(Default)]
pub(super) struct StageQueue {
    waiting: VecDeque<Waiting>,
    /// Tokens in the middle of the stage, if its experts are elsewhere, by conversation and in order. The KV cache of a
    /// block must be written in order, so later tokens pass no block before them.
    inside: BTreeMap<ConversationId, VecDeque<Inside>>,
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

    /// Tokens left the stage.
    pub fn left(&mut self, forward: &Forward) {
        if let Some(inside) = self.inside.get_mut(&forward.conversation) {
            inside.retain(|tokens| tokens.pass != forward.pass);
        }
        self.inside.retain(|_, inside| !inside.is_empty());
    }

    /// The engine has answered one batch.
    pub fn answered(&mut self) {
        self.in_engine = self.in_engine.saturating_sub(1);
    }

    /// Drops these chunks.
    pub fn drop_chunks(&mut self, is_meant: impl Fn(ConversationId, PassId) -> bool) {
        self.waiting.retain(|waiting| !is_meant(waiting.job.forward.conversation, waiting.job.forward.pass));
        for (conversation, inside) in &mut self.inside {
            inside.retain(|tokens| !is_meant(*conversation, tokens.pass));
        }
    }

    /// Tokens that wait.
    pub fn waiting(&self) -> impl Iterator<Item = &Forward> {
        self.waiting.iter().map(|waiting| &waiting.job.forward)
    }

    /// The next batch of jobs; empty if nothing may start now. `stop` tells for a stage that stops in its middle where a
    /// piece of work that begins at a block ends: at a block whose experts are elsewhere, or at the stage's end.
    ///
    /// Decode and prefill alternate where both wait, so that neither blocks the other.
    pub fn next(&mut self, stop: Option<&dyn Fn(u16) -> u16>) -> Vec<(Job, Input)> {
        if self.in_engine >= IN_ENGINE {
            return Vec::new();
        }
        let startable: Vec<usize> = (0..self.waiting.len()).filter(|index| self.may_start(*index, stop)).collect();
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
        if let Some(stop) = stop {
            piece.iter().for_each(|(job, _)| self.goes_inside(&job.forward, stop(job.cursor)));
        }
        piece
    }

    fn goes_inside(&mut self, forward: &Forward, until: u16) {
        let inside = self.inside.entry(forward.conversation).or_default();
        match inside.iter_mut().find(|tokens| tokens.pass == forward.pass) {
            Some(tokens) => tokens.until = until,
            None => inside.push_back(Inside { pass: forward.pass, until }),
        }
    }

    /// Nothing of its conversation is before these tokens in the blocks that they would pass.
    fn may_start(&self, index: usize, stop: Option<&dyn Fn(u16) -> u16>) -> bool {
        let Waiting { job, continued, .. } = &self.waiting[index];
        let Forward { conversation, pass, .. } = job.forward;
        let inside = self.inside.get(&conversation);
        let before = inside.into_iter().flatten().take_while(|tokens| tokens.pass != pass).last();
        let is_behind = match (before, stop) {
            (Some(before), Some(stop)) => stop(job.cursor) <= before.until,
            (before, _) => before.is_none(),
        };
        let is_next = || {
            let is_earlier = |waiting: &Waiting| !waiting.continued && waiting.job.forward.conversation == conversation;
            inside.is_none_or(|inside| inside.len() < INSIDE) && !self.waiting.range(..index).any(is_earlier)
        };
        is_behind && (*continued || is_next())
    }

    fn may_join(&self, first: usize, other: usize) -> bool {
        let (first, other) = (&self.waiting[first].job, &self.waiting[other].job);
        let lm_head = |job: &Job| job.forward.lm_head.map(|lm_head| lm_head.logits.candidates().is_some());
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
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;
    use potluck_plan::{LmHeadRequest, LmHeadTokens, LogitBias, LogitsRequest, PlanEpoch, Position, StageId, WireType};

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
            bias: LogitBias::default(),
            allowed: Vec::new(),
            stage_millis: Vec::new(),
            wire: WireType::F32,
            hidden: Vec::new(),
        };
        let input = Input::Tokens(forward.tokens.clone());
        (Job::new(forward, ConversationId(conversation), 0), input)
    }

    fn queue(jobs: &[(u32, KernelClass, usize)]) -> StageQueue {
        let mut queue = StageQueue::default();
        for (conversation, class, rows) in jobs {
            let (job, input) = job(*conversation, *class, *rows);
            queue.arrive(job, input);
        }
        queue
    }

    /// With `remote`, the experts of every block of a stage of two blocks are elsewhere.
    fn next(queue: &mut StageQueue, remote: bool) -> Vec<u32> {
        let piece = queue.next(remote.then_some(&|cursor| cursor));
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
        let mut queue = queue(&[(1, Decode, 1)]);
        assert_eq!(next(&mut queue, true), [1]);
        queue.answered();
        assert_eq!(next(&mut queue, true), [0u32; 0], "its tokens are in the middle of the stage");
        let (other, input) = job(2, Decode, 1);
        queue.arrive(other, input);
        assert_eq!(next(&mut queue, true), [2]);
    }

    /// The next pieces: for each the pass and its first block.
    fn pieces(queue: &mut StageQueue) -> Vec<(Job, (u64, u16))> {
        let mut all = Vec::new();
        loop {
            let piece = queue.next(Some(&|cursor| cursor));
            let Some((job, _)) = piece.into_iter().next() else { return all };
            queue.answered();
            let of = (job.forward.pass.0, job.cursor);
            all.push((job, of));
        }
    }

    #[test]
    fn chunks_follow_each_other_while_experts_are_elsewhere_and_never_overtake() {
        let mut queue = StageQueue::default();
        for pass in 1..=4 {
            let (mut chunk, input) = job(1, Prefill, 64);
            chunk.forward.pass = PassId(pass);
            queue.arrive(chunk, input);
        }
        let mut under_way = pieces(&mut queue);
        let which = |pieces: &[(Job, (u64, u16))]| pieces.iter().map(|(_, of)| *of).collect::<Vec<_>>();
        assert_eq!(which(&under_way), [(1, 0), (2, 0), (3, 0)], "not all of them");
        let go_on = |queue: &mut StageQueue, (mut job, _): (Job, (u64, u16))| {
            job.cursor += 1;
            queue.go_on(job, Input::Tokens(Vec::new()));
        };
        let third = under_way.pop().unwrap();
        let second = under_way.pop().unwrap();
        go_on(&mut queue, third);
        go_on(&mut queue, second);
        assert_eq!(which(&pieces(&mut queue)), [], "the first chunk's experts have not answered");
        go_on(&mut queue, under_way.pop().unwrap());
        let under_way = pieces(&mut queue);
        assert_eq!(which(&under_way), [(1, 1), (2, 1), (3, 1)], "in order");
        queue.left(&under_way[0].0.forward);
        assert_eq!(which(&pieces(&mut queue)), [(4, 0)], "there is room for another one");
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
