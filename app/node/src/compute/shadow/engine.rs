//! The engine of a shadow: its model, computed one piece of work at a time.

use std::cell::RefCell;
use std::rc::Rc;

use futures::channel::oneshot;
use potluck_engine::{Engine, EngineError, Gpu, Settings};
use potluck_model::{FeedForwardSpec, ModelSpec, UnitMap};
use potluck_plan::{
    BatchToken, BlockIndex, BlockRange, ExpertId, ExpertOutputs, Input, KernelClass, LmHeadRequest, LmHeadTokens,
    LogitsRequest, Outcome, Task, Then, Ticket, Work,
};

/// A shadow's engine; its memory is free once this is dropped.
pub(super) struct ShadowEngine {
    pub engine: Engine,
    spec: ModelSpec,
    result: Rc<RefCell<Option<oneshot::Sender<Outcome>>>>,
    /// Bytes of its weights.
    pub bytes: u64,
}

impl ShadowEngine {
    /// Reserves memory for a model, whose weights are still to be loaded.
    ///
    /// # Errors
    /// It does not fit.
    pub fn new(gpu: &Gpu, spec: ModelSpec, units: UnitMap, settings: Settings) -> Result<Self, EngineError> {
        let result = Rc::<RefCell<Option<oneshot::Sender<Outcome>>>>::default();
        let inbox = result.clone();
        let receive = Box::new(move |computed: potluck_plan::Computed| {
            if let Some(sender) = inbox.borrow_mut().take() {
                // Fails if nobody waits any more.
                let _ = sender.send(computed.outcome);
            }
        });
        let all = units.units().collect();
        let engine = Engine::new(gpu, spec.clone(), units, settings, receive)?;
        // From here on the engine ends with it.
        let mut shadow = Self { engine, spec, result, bytes: 0 };
        shadow.bytes = shadow.engine.reserve(&all)?.weights().0;
        Ok(shadow)
    }

    /// A prompt's chunk; the best next token.
    pub async fn prompt(&self, batch: &[BatchToken], tokens: Vec<u32>) -> Result<u32, Outcome> {
        let input = Input::Tokens(tokens);
        let blocks = BlockRange::new(0, self.spec.blocks.len() as u16);
        best(self.run(forward(batch, KernelClass::Prefill, input, blocks, HEAD)).await?)
    }

    /// Tokens of an answer together, without asking the routers; the best next token, if there were any.
    pub async fn tokens(&self, tokens: &[(BatchToken, u32)]) -> Result<Option<u32>, Outcome> {
        let mut next = None;
        let blocks = BlockRange::new(0, self.spec.blocks.len() as u16);
        for chunk in tokens.chunks(Work::DECODE_TOKENS) {
            let batch: Vec<BatchToken> = chunk.iter().map(|(row, _)| *row).collect();
            let input = Input::Tokens(chunk.iter().map(|(_, token)| *token).collect());
            next = Some(best(self.run(forward(&batch, KernelClass::Decode, input, blocks, HEAD)).await?)?);
        }
        Ok(next)
    }

    /// One token through all blocks. `chosen` hears what each router chooses; returns the best next token.
    pub async fn step(
        &self,
        row: BatchToken,
        token: u32,
        chosen: impl Fn(BlockIndex, Vec<ExpertId>),
    ) -> Result<u32, Outcome> {
        let class = KernelClass::Decode;
        let batch = [row];
        let (mut input, mut first) = (Input::Tokens(vec![token]), 0);
        for (block, spec) in (0..).map(BlockIndex).zip(&self.spec.blocks) {
            if matches!(spec.feed_forward, FeedForwardSpec::Dense(_)) {
                continue;
            }
            let to_router = forward(&batch, class, input, BlockRange::new(first, block.0), Then::Route(block));
            let Outcome::Routed { residual, normed, routes } = self.run(to_router).await? else {
                return Err(unexpected());
            };
            let ids = |route: &potluck_plan::ExpertRoute| route.experts.iter().map(|(id, _)| *id).collect::<Vec<_>>();
            let experts: Vec<_> = routes.iter().map(ids).collect();
            chosen(block, experts.concat());
            let Outcome::ExpertOutputs(outputs) =
                self.run(Task::Experts { block, class, normed, experts, sum: None }).await?
            else {
                return Err(unexpected());
            };
            input = Input::Experts(ExpertOutputs { block, residual, routes, outputs });
            first = block.0 + 1;
        }
        let rest = BlockRange::new(first, self.spec.blocks.len() as u16);
        best(self.run(forward(&batch, class, input, rest, HEAD)).await?)
    }

    async fn run(&self, task: Task) -> Result<Outcome, Outcome> {
        let (sender, result) = oneshot::channel();
        self.result.replace(Some(sender));
        self.engine.submit(Work { ticket: Ticket(0), task }).map_err(|error| Outcome::Failed(error.to_string()))?;
        match result.await.unwrap_or(Outcome::Cancelled) {
            lost @ (Outcome::DeviceLost | Outcome::Cancelled | Outcome::Failed(_)) => Err(lost),
            outcome => Ok(outcome),
        }
    }
}

impl Drop for ShadowEngine {
    fn drop(&mut self) {
        self.engine.destroy();
    }
}

const HEAD: Then = Then::LmHead(LmHeadRequest { tokens: LmHeadTokens::Last, logits: LogitsRequest::Top(1) });

fn forward(batch: &[BatchToken], class: KernelClass, input: Input, blocks: BlockRange, then: Then) -> Task {
    Task::Forward { batch: batch.to_vec(), class, input, blocks, then, biases: Vec::new() }
}

fn best(outcome: Outcome) -> Result<u32, Outcome> {
    let Outcome::Candidates(all) = outcome else { return Err(unexpected()) };
    all.first().and_then(|best| best.ids.first()).copied().ok_or_else(unexpected)
}

fn unexpected() -> Outcome {
    Outcome::Failed("The shadow's engine returned another result than asked for.".to_owned())
}
