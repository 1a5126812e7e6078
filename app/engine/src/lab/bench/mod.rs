//! Times whole prompts and answers on this device: what a user waits for, without network and tokenizer.
//!
//! `/bench`, `potluck-node run --bench` and `cargo bench --bench model` share this code.

pub(crate) mod kernels;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Poll, Waker};

use potluck_plan::{
    BatchToken, BlockRange, Candidates, Computed, ConversationId, FirstToken, Input, KernelClass, LmHeadRequest,
    LmHeadTokens, LogitsRequest, Outcome, Position, SampledSteps, Sampling, Task, Then, Ticket, WeightUnit, Work,
};

pub use kernels::{Clocked, KernelTime, KernelTimes};

use crate::runtime::clock;
use crate::runtime::core::Core;
use crate::runtime::engine::Engine;
use crate::runtime::error::EngineError;
use crate::runtime::kv_pages::Rows;
use crate::runtime::kv_sizes::kv_cache_bytes_per_position;

/// What to time: a prompt after a context of a given depth, and an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Positions already in the conversation before the prompt; not timed.
    pub depth: u32,
    /// Prompt tokens.
    pub prompt: u32,
    /// Answer tokens.
    pub answer: u32,
}

impl Workload {
    /// Positions needed in all.
    pub fn positions(self) -> u32 {
        self.depth + self.prompt + self.answer
    }
}

/// One timed run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// Milliseconds from the first submit of the prompt to the readback of the answer's first token.
    pub first_token: f64,
    /// Milliseconds from the answer's first token to its last.
    pub decode: f64,
    /// The answer.
    pub tokens: Vec<u32>,
}

impl Run {
    /// Prompt tokens per second. The time includes the answer's first token, which comes from the prompt's last batch
    /// row.
    pub fn prefill_rate(&self, workload: Workload) -> f64 {
        f64::from(workload.prompt) * 1e3 / self.first_token
    }

    /// Answer tokens per second, without the first token, whose time counts as prefill; 0 for an answer of one token.
    pub fn decode_rate(&self) -> f64 {
        if self.tokens.len() < 2 { 0.0 } else { (self.tokens.len() - 1) as f64 * 1e3 / self.decode }
    }
}

/// One engine's results, in order of arrival.
#[derive(Clone, Default)]
pub struct Answers(Rc<RefCell<Waiting>>);

#[derive(Default)]
struct Waiting {
    computed: VecDeque<Computed>,
    waker: Option<Waker>,
}

impl Answers {
    /// The callback through which an engine delivers its results.
    pub fn receiver(&self) -> Box<dyn Fn(Computed)> {
        let waiting = self.0.clone();
        Box::new(move |computed| {
            let waker = {
                let mut waiting = waiting.borrow_mut();
                waiting.computed.push_back(computed);
                waiting.waker.take()
            };
            if let Some(waker) = waker {
                waker.wake();
            }
        })
    }

    async fn next(&self, engine: &Engine) -> Computed {
        // Native builds have to poll the device themselves.
        #[cfg(not(target_arch = "wasm32"))]
        while self.0.borrow().computed.is_empty() && engine.pending() > 0 {
            engine.poll_for(std::time::Duration::from_millis(50));
        }
        #[cfg(target_arch = "wasm32")]
        let _moves_itself = engine;
        std::future::poll_fn(|context| {
            let mut waiting = self.0.borrow_mut();
            waiting.computed.pop_front().map_or_else(
                || {
                    waiting.waker = Some(context.waker().clone());
                    Poll::Pending
                },
                Poll::Ready,
            )
        })
        .await
    }
}

/// Runs workloads on an engine that holds a whole model.
pub struct Bench {
    engine: Engine,
    answers: Answers,
    tickets: Cell<u64>,
}

const CONVERSATION: ConversationId = ConversationId(0);
/// Tokens per piece of work, and pieces submitted before the first is read back.
const STEPS: u32 = 4;
const AHEAD: usize = 2;

impl Bench {
    /// Deepest context that is computed before a run.
    pub const READ: u32 = 4096;

    /// `answers` must be the receiver the engine was created with. Nothing else may use the engine.
    pub fn new(engine: Engine, answers: Answers) -> Self {
        Self { engine, answers, tickets: Cell::default() }
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The token at a position of every benchmark's text. It comes from the middle half of the vocabulary, which has no
    /// control tokens. `e2e/peers` generates the same tokens.
    pub fn token(position: u32, vocabulary: u32) -> u32 {
        let (first, span) = (vocabulary / 4, (vocabulary / 2).max(1));
        first + ((u64::from(position) * 7919 + 13) % u64::from(span)) as u32
    }

    /// Starts a new conversation with a context of `depth` positions. Any number of runs may follow; with recurrent state each
    /// needs a context of its own. A context deeper than [`Bench::READ`] is not computed unless the model has
    /// recurrent state: its keys and values are what the memory holds, and reading them takes as long.
    ///
    /// # Errors
    /// The device is gone, or the context is larger than the engine's.
    pub async fn deepen(&self, depth: u32) -> Result<(), EngineError> {
        self.engine.forget(CONVERSATION);
        let is_recurrent =
            |core: &Core| (0..core.model.spec.blocks.len()).any(|block| core.model.spec.recurrent(block).is_some());
        if depth > Self::READ && !is_recurrent(&self.engine.inner.core.borrow()) {
            let mut core = self.engine.inner.core.borrow_mut();
            let blocks = BlockRange::new(0, core.model.spec.blocks.len() as u16);
            return core
                .conversations_mut()
                .place(&rows(0, depth), &blocks.iter().collect::<Vec<_>>(), KernelClass::Prefill, Rows::Together)
                .map(drop);
        }
        if depth > 0 { self.read(0, depth, Then::Nothing).await.map(drop) } else { Ok(()) }
    }

    /// Prefills the prompt after the context and decodes the answer greedily, submitting tokens ahead. Ignores
    /// end-of-text tokens, so every run counts the same number of tokens.
    ///
    /// # Errors
    /// The device is gone, or the context is too small.
    pub async fn run(&self, workload: Workload) -> Result<Run, EngineError> {
        self.run_by(workload, None).await.map(|(run, _)| run)
    }

    /// The same with sampled tokens: the GPU samples ahead, and the processor samples again from the candidates, as in a room.
    /// `None` if the GPU samples otherwise than the processor, or not at all: rooms then sample token by token.
    ///
    /// # Errors
    /// Those of [`Bench::run`].
    pub async fn run_sampled(&self, workload: Workload, sampling: Sampling) -> Result<Option<Run>, EngineError> {
        let (run, is_confirmed) = self.run_by(workload, Some(sampling)).await?;
        Ok(is_confirmed.then_some(run))
    }

    /// The run, and whether the processor confirmed every sampled token.
    async fn run_by(&self, workload: Workload, sampling: Option<Sampling>) -> Result<(Run, bool), EngineError> {
        let most = u32::from(LogitsRequest::MAX_TOP).min(self.vocabulary()) as u16;
        let logits = LogitsRequest::Top(if sampling.is_some() { most } else { 1 });
        let first = workload.depth + workload.prompt;
        let mut log = self.tokens(0, first);
        let started = clock::now();
        let head = Then::LmHead(LmHeadRequest { tokens: LmHeadTokens::Last, logits });
        let best = self.read(workload.depth, workload.prompt, head).await?;
        let read = clock::now();
        let mut tokens = Vec::with_capacity(workload.answer as usize);
        if let Some(row) = &best {
            tokens.push(chosen(row, sampling.as_ref(), &log));
            log.extend(tokens.last());
        }
        let mut next = first;
        let end = first + workload.answer.saturating_sub(1);
        let mut under_way = VecDeque::new();
        let mut is_confirmed = true;
        while tokens.len() < workload.answer as usize {
            while next < end && under_way.len() < AHEAD {
                let steps = STEPS.min(end - next);
                let row = BatchToken { conversation: CONVERSATION, position: Position(next) };
                let token = match (sampling, tokens.first()) {
                    (Some(_), Some(token)) if next == first => FirstToken::Given(*token),
                    _ => FirstToken::Sampled,
                };
                let sampling = sampling.and_then(|sampling| SampledSteps::after(sampling, &log));
                let task = Task::Continue { row, token, steps: steps as u16, sampling };
                under_way.push_back(self.submit(task)?);
                next += steps;
            }
            let Some(ticket) = under_way.pop_front() else { break };
            for row in candidates(self.outcome(ticket).await?) {
                let token = chosen(&row, sampling.as_ref(), &log);
                is_confirmed &= sampling.is_none() || row.sampled == Some(token);
                tokens.push(token);
                log.push(token);
            }
        }
        Ok((Run { first_token: read - started, decode: clock::now() - read, tokens }, is_confirmed))
    }

    /// Time per kernel class for one token after `depth` positions.
    ///
    /// # Errors
    /// The device is gone. The conversation must be at least `depth` positions long.
    pub async fn decode_kernels(&self, depth: u32) -> Result<KernelTimes, EngineError> {
        let head = Then::LmHead(LmHeadRequest { tokens: LmHeadTokens::Last, logits: LogitsRequest::Top(1) });
        let token = Self::token(depth, self.vocabulary());
        self.engine.kernel_times(&rows(depth, 1), KernelClass::Decode, vec![token], head).await
    }

    /// Time per kernel class for one full prompt chunk after `depth` positions, with the number of tokens in the chunk.
    ///
    /// # Errors
    /// The device is gone. The conversation must be at least `depth` positions long.
    pub async fn prefill_kernels(&self, depth: u32) -> Result<(u32, KernelTimes), EngineError> {
        let count = self.chunk();
        let tokens = self.tokens(depth, count);
        let times = self.engine.kernel_times(&rows(depth, count), KernelClass::Prefill, tokens, Then::Nothing).await?;
        Ok((count, times))
    }

    /// Bytes that a token at a position has to read: the weights it passes (only as many experts as it uses), and the
    /// keys and values before it. Leaves out its single row of the embedding table.
    pub fn token_bytes(&self, position: u32) -> u64 {
        let core = self.engine.inner.core.borrow();
        let weights: u64 = core
            .model
            .units
            .units()
            .filter(|unit| *unit != WeightUnit::Embedding)
            .map(|unit| {
                let bytes = core.model.units.bytes(unit).0;
                match unit {
                    WeightUnit::Expert(block, _) => {
                        let (used, count) = core.model.routing(block).unwrap_or((1, 1));
                        bytes * u64::from(used) / u64::from(count.max(1))
                    }
                    _ => bytes,
                }
            })
            .sum();
        let blocks = BlockRange::new(0, core.model.spec.blocks.len() as u16);
        let kv_type = core.model.settings.kv_cache;
        let cached: u64 =
            blocks.iter().map(|block| kv_cache_bytes_per_position(&core.model.spec, block, kv_type).0).sum();
        weights + cached * u64::from(position)
    }

    fn vocabulary(&self) -> u32 {
        self.engine.inner.core.borrow().model.spec.vocabulary
    }

    /// Tokens per prompt chunk.
    fn chunk(&self) -> u32 {
        self.engine.inner.core.borrow().model.memory.layout().prefill_tokens.max(1)
    }

    fn tokens(&self, first: u32, count: u32) -> Vec<u32> {
        let vocabulary = self.vocabulary();
        (first..first + count).map(|position| Self::token(position, vocabulary)).collect()
    }

    /// Prefills text in chunks, submitting the next before the last is done. Returns the candidates of the next token if
    /// `then` asks for them.
    async fn read(&self, first: u32, count: u32, then: Then) -> Result<Option<Candidates>, EngineError> {
        let tokens = self.tokens(first, count);
        let chunk = self.chunk() as usize;
        let chunks = tokens.chunks(chunk).count();
        let mut tickets = Vec::with_capacity(chunks);
        for (number, tokens) in tokens.chunks(chunk).enumerate() {
            let then = if number + 1 == chunks { then } else { Then::Nothing };
            let at = first + (number * chunk) as u32;
            tickets.push(self.submit(self.forward(at, tokens.to_vec(), KernelClass::Prefill, then))?);
        }
        let mut best = None;
        for ticket in tickets {
            best = candidates(self.outcome(ticket).await?).pop().or(best);
        }
        Ok(best)
    }

    fn forward(&self, first: u32, tokens: Vec<u32>, class: KernelClass, then: Then) -> Task {
        let blocks = BlockRange::new(0, self.engine.inner.core.borrow().model.spec.blocks.len() as u16);
        Task::Forward {
            batch: rows(first, tokens.len() as u32),
            class,
            input: Input::Tokens(tokens),
            blocks,
            then,
            biases: Vec::new(),
        }
    }

    fn submit(&self, task: Task) -> Result<Ticket, EngineError> {
        let ticket = Ticket(self.tickets.get());
        self.tickets.set(ticket.0 + 1);
        self.engine.submit(Work { ticket, task })?;
        Ok(ticket)
    }

    /// Waits for a ticket's outcome. Results arrive in the order of their work, except that work that cannot start
    /// fails at once. Leftovers of a failed run have lower tickets.
    async fn outcome(&self, ticket: Ticket) -> Result<Outcome, EngineError> {
        loop {
            let computed = self.answers.next(&self.engine).await;
            match computed.outcome {
                _ if computed.ticket < ticket => {}
                Outcome::DeviceLost | Outcome::Cancelled => return Err(EngineError::Lost),
                Outcome::Failed(sentence) => return Err(EngineError::Gpu(sentence)),
                outcome => return Ok(outcome),
            }
        }
    }
}

fn rows(first: u32, count: u32) -> Vec<BatchToken> {
    (first..first + count).map(|at| BatchToken { conversation: CONVERSATION, position: Position(at) }).collect()
}

/// The candidates of each batch row that went through the LM head.
fn candidates(outcome: Outcome) -> Vec<Candidates> {
    if let Outcome::Candidates(rows) = outcome { rows } else { Vec::new() }
}

/// The token after a log: sampled, or the best one.
fn chosen(row: &Candidates, sampling: Option<&Sampling>, log: &[u32]) -> u32 {
    let best = row.ids.first().copied().unwrap_or_default();
    sampling.and_then(|sampling| sampling.sample(row, log)).unwrap_or(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_count_every_token_once() {
        let workload = Workload { depth: 0, prompt: 100, answer: 11 };
        let run = Run { first_token: 500.0, decode: 2000.0, tokens: vec![0; 11] };
        // The first token's time counts as prefill.
        assert_eq!((run.prefill_rate(workload), run.decode_rate()), (200.0, 5.0));
        assert_eq!(Run { tokens: vec![0], ..run }.decode_rate(), 0.0);
    }

    #[test]
    fn the_text_keeps_away_from_the_ends_of_the_vocabulary() {
        for vocabulary in [512, 32_000, 151_936] {
            let tokens: Vec<u32> = (0..4096).map(|position| Bench::token(position, vocabulary)).collect();
            assert!(tokens.iter().all(|&token| token >= vocabulary / 4 && token < vocabulary * 3 / 4));
            assert!(tokens.windows(2).all(|pair| pair[0] != pair[1]), "neighbours differ");
        }
        // Other programs generate the same text.
        assert_eq!([0, 1, 2].map(|position| Bench::token(position, 32_000)), [8013, 15932, 23851]);
    }
}
