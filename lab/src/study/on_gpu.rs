//! A model on the engine. Its experts run like those of other devices, because only then do routes come back.

use std::cell::RefCell;
use std::rc::Rc;

use potluck_engine::{Engine, EngineError, Gpu, Settings};
use potluck_model::{FeedForwardSpec, ModelSpec};
use potluck_node::native::{ModelFile, load_unit};
use potluck_plan::{
    BatchToken, BlockIndex, BlockRange, ConversationId, ExpertId, ExpertOutputs, ExpertRoute, Input, KernelClass,
    LmHeadRequest, LmHeadTokens, LogitsRequest, Outcome, Position, Task, Then, Ticket, Work,
};

use super::StudyError;
use super::runner::{Appended, Runner};

const CONVERSATION: ConversationId = ConversationId(0);

/// An engine that holds a whole model.
pub struct OnGpu {
    engine: Engine,
    outcome: Rc<RefCell<Option<Outcome>>>,
    spec: ModelSpec,
    positions: u32,
}

impl OnGpu {
    /// Loads a model for conversations of up to `context` positions.
    ///
    /// # Errors
    /// The model cannot be read, does not fit, or the device is lost.
    pub fn load(gpu: &Gpu, file: &ModelFile, context: u32) -> Result<Self, StudyError> {
        let (spec, units) = file.spec()?;
        let outcome = Rc::new(RefCell::new(None));
        let inbox = outcome.clone();
        let receive = Box::new(move |computed: potluck_plan::Computed| {
            inbox.borrow_mut().replace(computed.outcome);
        });
        let settings = Settings { context, ..Settings::default() };
        let engine = Engine::new(gpu, spec.clone(), units.clone(), settings, receive)?;
        engine.reserve(&units.units().collect())?;
        for unit in engine.missing() {
            load_unit(&engine, file, &units, unit)?;
        }
        engine.close_staging();
        Ok(Self { engine, outcome, spec, positions: 0 })
    }

    fn run(&self, task: Task) -> Result<Outcome, StudyError> {
        self.engine.submit(Work { ticket: Ticket(0), task })?;
        self.engine.wait();
        match self.outcome.borrow_mut().take() {
            Some(Outcome::Failed(sentence)) => Err(StudyError::Gpu(sentence)),
            Some(outcome) if !self.engine.lost() => Ok(outcome),
            _ => Err(EngineError::Lost.into()),
        }
    }

    /// Runs a batch up to the router of a block and its experts; returns their outputs.
    fn block(&self, batch: &Batch, input: Input, first: u16, block: u16) -> Result<ExpertOutputs, StudyError> {
        let block = BlockIndex(block);
        let outcome = self.run(batch.forward(input, BlockRange::new(first, block.0), Then::Route(block)))?;
        let Outcome::Routed { residual, normed, routes } = outcome else { return Err(unexpected()) };
        let experts = routes.iter().map(chosen).collect();
        let outcome = self.run(Task::Experts { block, class: batch.class, normed, experts, sum: None })?;
        let Outcome::ExpertOutputs(outputs) = outcome else { return Err(unexpected()) };
        Ok(ExpertOutputs { block, residual, routes, outputs })
    }
}

/// The tokens of one append.
struct Batch {
    tokens: Vec<BatchToken>,
    class: KernelClass,
}

impl Batch {
    fn forward(&self, input: Input, blocks: BlockRange, then: Then) -> Task {
        Task::Forward { batch: self.tokens.clone(), class: self.class, input, blocks, then, biases: Vec::new() }
    }
}

impl Runner for OnGpu {
    fn restart(&mut self) {
        self.engine.forget(CONVERSATION);
        self.positions = 0;
    }

    fn append(&mut self, tokens: &[u32]) -> Result<Appended, StudyError> {
        let mut appended = Appended::default();
        for tokens in tokens.chunks(Work::PREFILL_TOKENS) {
            let row = |at| BatchToken { conversation: CONVERSATION, position: Position(at) };
            let end = self.positions + tokens.len() as u32;
            let class = if tokens.len() == 1 { KernelClass::Decode } else { KernelClass::Prefill };
            let batch = Batch { tokens: (self.positions..end).map(row).collect(), class };
            self.positions = end;
            let mut input = Input::Tokens(tokens.to_vec());
            let mut first = 0;
            let mut routed: Vec<Vec<ExpertRoute>> = Vec::new();
            for (block, spec) in (0..).zip(&self.spec.blocks) {
                if matches!(spec.feed_forward, FeedForwardSpec::Experts { .. }) {
                    let outputs = self.block(&batch, input, first, block)?;
                    routed.push(outputs.routes.clone());
                    input = Input::Experts(outputs);
                    first = block + 1;
                }
            }
            let head = Then::LmHead(LmHeadRequest { tokens: LmHeadTokens::Last, logits: LogitsRequest::Top(1) });
            let rest = BlockRange::new(first, self.spec.blocks.len() as u16);
            let Outcome::Candidates(best) = self.run(batch.forward(input, rest, head))? else {
                return Err(unexpected());
            };
            appended.next = best.first().and_then(|best| best.ids.first()).copied().ok_or_else(unexpected)?;
            // By block, then token; a trace has them by token, then block.
            for token in 0..tokens.len() {
                appended.experts.extend(routed.iter().flat_map(|routes| chosen(&routes[token])));
            }
        }
        Ok(appended)
    }

    fn align_kv(&mut self, _: &Self) -> Result<(), StudyError> {
        Err(StudyError::NoKvAlignment)
    }

    fn foresight(&self) -> usize {
        0
    }
}

impl Drop for OnGpu {
    fn drop(&mut self) {
        self.engine.destroy();
    }
}

fn chosen(route: &ExpertRoute) -> Vec<ExpertId> {
    route.experts.iter().map(|(expert, _)| *expert).collect()
}

fn unexpected() -> StudyError {
    StudyError::Gpu("The engine returned another result than asked for.".to_owned())
}
