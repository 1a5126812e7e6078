//! A shadow model: the same model in a type of fewer bits, on the same GPU, a few tokens ahead of its base. It says which
//! tokens it expects, and block by block what its routers choose (od-moe.txt 3.2). It follows one conversation, the one whose
//! prompt came last. If it fails, the next predictor in line is believed, and no answer changes.

use std::cell::{Cell, RefCell};
#[cfg(not(target_arch = "wasm32"))]
use std::path::PathBuf;
use std::rc::Rc;

use futures::channel::{mpsc, oneshot};
use futures::{FutureExt, StreamExt};
use potluck_engine::{Engine, EngineError, Gpu, Settings};
use potluck_gguf::TensorType;
use potluck_model::{FeedForwardSpec, ModelSpec, UnitMap};
use potluck_plan::{
    BatchToken, BlockIndex, BlockRange, ConversationId, ExpertOutputs, Input, KernelClass, LmHeadRequest, LmHeadTokens,
    LogitsRequest, Outcome, Position, Task, Then, Ticket, Work,
};
use potluck_predict::{Alignment, ShadowWord};

use super::following::{Expected, Following, Taken};

/// What a shadow is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShadowSource {
    /// A file of its own.
    #[cfg(not(target_arch = "wasm32"))]
    File(PathBuf),
    /// The room's model, requantized to this type; by default to one of far fewer bits than it has.
    Own(Option<TensorType>),
}

/// Which shadow, and when it takes over what its base did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShadowOptions {
    /// What it is made from.
    pub source: ShadowSource,
    /// Every how many tokens it takes over its base's token and KV cache.
    pub alignment: Alignment,
    /// For tests: the shadow is gone after so many tokens of answers.
    pub tokens: Option<u32>,
}

/// Hears what a shadow says of a conversation's tokens.
pub(in crate::compute) type Listener = Rc<dyn Fn(ConversationId, ShadowWord)>;

/// What its base computes.
enum Told {
    Prompt(Vec<BatchToken>, Vec<u32>),
    Pass(Pass),
}

impl Told {
    fn conversation(&self) -> Option<ConversationId> {
        match self {
            Self::Prompt(batch, _) => batch.last().map(|row| row.conversation),
            Self::Pass(pass) => Some(pass.row.conversation),
        }
    }
}

/// A token of an answer, and drafts that pass together with it.
struct Pass {
    row: BatchToken,
    token: u32,
    drafts: Vec<(BatchToken, u32)>,
    /// Somebody wants to know what comes next.
    wanted: bool,
}

impl Pass {
    /// The passes of a batch, one for each conversation.
    fn all(batch: &[BatchToken], tokens: &[u32], wanted: bool) -> Vec<Self> {
        let mut passes: Vec<Self> = Vec::new();
        for (row, token) in batch.iter().zip(tokens).map(|(row, token)| (*row, *token)) {
            match passes.iter_mut().find(|pass| pass.row.conversation == row.conversation) {
                Some(pass) => pass.drafts.push((row, token)),
                None => passes.push(Self { row, token, drafts: Vec::new(), wanted }),
            }
        }
        passes
    }
}

/// A shadow model on an engine of its own.
pub(in crate::compute) struct Shadow {
    engine: Engine,
    base: Engine,
    spec: ModelSpec,
    alignment: Alignment,
    listener: RefCell<Listener>,
    /// The base waits for other devices within a token, so the shadow may pass it there: its word counts also for a token that
    /// the base has begun.
    pub overtakes: Cell<bool>,
    /// Tokens of answers that it may still hear of.
    left: Cell<u32>,
    result: Rc<RefCell<Option<oneshot::Sender<Outcome>>>>,
    told: mpsc::UnboundedSender<Told>,
    hears: RefCell<Option<mpsc::UnboundedReceiver<Told>>>,
    /// It has all of its weights. Before, it hears nothing.
    is_ready: Cell<bool>,
    /// Bytes of its weights.
    pub bytes: u64,
}

impl Shadow {
    /// Reserves memory for a shadow, whose weights are still to be loaded. It hears its base once it is [`Shadow::ready`].
    ///
    /// # Errors
    /// A sentence: it does not fit.
    pub fn new(
        gpu: &Gpu,
        (spec, units): (ModelSpec, UnitMap),
        options: &ShadowOptions,
        base: &Engine,
        settings: Settings,
        listener: Listener,
    ) -> Result<Self, String> {
        let failed = |error: EngineError| format!("The shadow cannot run: {error}");
        let result = Rc::<RefCell<Option<oneshot::Sender<Outcome>>>>::default();
        let inbox = result.clone();
        let receive = Box::new(move |computed: potluck_plan::Computed| {
            if let Some(sender) = inbox.borrow_mut().take() {
                // Fails if nobody waits any more.
                let _ = sender.send(computed.outcome);
            }
        });
        let all = units.units().collect();
        let engine = Engine::new(gpu, spec.clone(), units, settings, receive).map_err(failed)?;
        let (told, hears) = mpsc::unbounded();
        // From here on its engine ends with it.
        let mut shadow = Self {
            engine,
            base: base.clone(),
            spec,
            alignment: options.alignment,
            listener: RefCell::new(listener),
            overtakes: Cell::new(false),
            left: Cell::new(options.tokens.unwrap_or(u32::MAX)),
            result,
            told,
            hears: RefCell::new(Some(hears)),
            is_ready: Cell::new(false),
            bytes: 0,
        };
        shadow.bytes = shadow.engine.reserve(&all).map_err(failed)?.weights().0;
        Ok(shadow)
    }

    /// It has all of its weights: from now on it hears its base.
    pub fn ready(&self) {
        self.is_ready.set(true);
    }

    pub fn is_ready(&self) -> bool {
        self.is_ready.get()
    }

    /// Its engine, which has to be polled.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// From now on it speaks to somebody else.
    pub fn set_listener(&self, listener: Listener) {
        self.listener.replace(listener);
    }

    fn say(&self, conversation: ConversationId, word: ShadowWord) {
        let listener = self.listener.borrow().clone();
        listener(conversation, word);
    }

    /// Its base begins a task. `wanted`: guesses are loaded for its tokens.
    pub fn tell(&self, task: &Task, wanted: bool) {
        let Task::Forward { batch, class, input: Input::Tokens(tokens), .. } = task else { return };
        if !self.is_ready() {
            return;
        }
        match class {
            // It ends with the driver.
            KernelClass::Prefill => {
                let _ = self.told.unbounded_send(Told::Prompt(batch.clone(), tokens.clone()));
            }
            KernelClass::Decode => {
                for pass in Pass::all(batch, tokens, wanted) {
                    let _ = self.told.unbounded_send(Told::Pass(pass));
                }
            }
        }
    }

    /// Follows its base until the driver ends.
    pub async fn follow(&self) {
        let Some(mut hears) = self.hears.borrow_mut().take() else { return };
        let mut following: Option<Following> = None;
        loop {
            let may = |now: &&Following| {
                now.wanted && now.expected.len() <= now.ahead() && (now.is_trusted() || !self.overtakes.get())
            };
            let ahead = following.as_ref().filter(may).and_then(Following::last);
            let told = match ahead {
                None => hears.next().await,
                Some(last) => match hears.next().now_or_never() {
                    Some(told) => told,
                    // Nothing new: a token further ahead.
                    None => {
                        let done = self.ahead(&mut following, last).await;
                        self.unless_lost(done, &mut following);
                        continue;
                    }
                },
            };
            let Some(mut told) = told else { return };
            // What its base has passed meanwhile is computed together, without asking the routers.
            while let Some(Some(newer)) = hears.next().now_or_never() {
                let followed = following.as_ref().map(|now| now.conversation);
                if matches!(newer, Told::Pass(_)) && ![followed, told.conversation()].contains(&newer.conversation()) {
                    // Of another answer.
                    continue;
                }
                let done = self.hear(told, true, &mut following).await;
                self.unless_lost(done, &mut following);
                told = newer;
            }
            let done = self.hear(told, false, &mut following).await;
            self.unless_lost(done, &mut following);
        }
    }

    /// Gives a conversation up that cannot be followed: the next predictor in line is believed.
    fn unless_lost(&self, done: Result<(), Outcome>, following: &mut Option<Following>) {
        if let Err(outcome) = done {
            log::warn!("the shadow lost its base: {outcome:?}");
            if let Some(lost) = following.take() {
                self.say(lost.conversation, ShadowWord::TakenBack(Position(0)));
            }
        }
    }

    /// Computes the last token that the shadow expects.
    async fn ahead(&self, following: &mut Option<Following>, last: Expected) -> Result<(), Outcome> {
        let Some(now) = following else { return Ok(()) };
        let row = BatchToken { conversation: now.conversation, position: last.position };
        let after = self.step(row, last.token).await?;
        if let Some(last) = now.expected.back_mut() {
            last.after = Some(after);
        }
        self.expect(now, Position(last.position.0 + 1), after);
        Ok(())
    }

    /// From now on this token is expected at a position, and somebody may take it as a draft.
    fn expect(&self, now: &mut Following, position: Position, token: u32) {
        now.expected.push_back(Expected { position, token, after: None });
        self.say(now.conversation, ShadowWord::Expects(position, token));
    }

    /// `has_passed`: its base is further already, at another pass.
    async fn hear(&self, told: Told, has_passed: bool, following: &mut Option<Following>) -> Result<(), Outcome> {
        match told {
            Told::Prompt(batch, tokens) => {
                let (Some(first), Some(last)) = (batch.first().copied(), batch.last().copied()) else { return Ok(()) };
                let before = following.take();
                let mut now = match before {
                    Some(before) if before.conversation == last.conversation => before,
                    before if first.position.0 == 0 => {
                        before.into_iter().for_each(|before| self.engine.forget(before.conversation));
                        Following::new(last.conversation)
                    }
                    before => {
                        // Its beginning was not heard.
                        *following = before;
                        return Ok(());
                    }
                };
                now.accept(self.alignment, first.position);
                now.skipped.retain(|(row, _)| row.position < first.position);
                self.catch_up(&mut now).await?;
                let token = self.prompt(&batch, tokens).await?;
                now.first = Position(last.position.0 + 1);
                self.say(now.conversation, ShadowWord::Begins(now.first));
                now.expected.clear();
                let first = now.first;
                self.expect(&mut now, first, token);
                now.wanted = false;
                *following = Some(now);
                Ok(())
            }
            Told::Pass(Pass { row, token, drafts, wanted }) => {
                let Some(now) = following.as_mut().filter(|now| now.conversation == row.conversation) else {
                    return Ok(());
                };
                let accepted = now.accept(self.alignment, row.position);
                now.drafts = drafts;
                if !wanted || (has_passed && !now.has_computed(row.position, token)) {
                    now.skip(self.alignment, row, token);
                    return Ok(());
                }
                self.count(1 + accepted)?;
                now.skipped.retain(|(at, _)| at.position < row.position);
                now.wanted = true;
                self.token(now, row, token).await
            }
        }
    }

    /// For tests: it is gone after so many tokens of answers.
    fn count(&self, tokens: u32) -> Result<(), Outcome> {
        let left = self.left.get().checked_sub(tokens);
        self.left.set(left.ok_or_else(|| Outcome::Failed("it is gone, as was asked for".to_owned()))?);
        Ok(())
    }

    /// Its base is at this token: computes it unless that was done a token ahead with the right one.
    async fn token(&self, now: &mut Following, row: BatchToken, token: u32) -> Result<(), Outcome> {
        let Taken { token, own } = now.take(self.alignment, row, token);
        let takes_kv = std::mem::take(&mut now.takes_kv);
        let is_right = own.is_some_and(|own| own.token == token);
        let after = own.filter(|_| is_right).and_then(|own| own.after);
        match after.filter(|_| !takes_kv) {
            // What comes after it is in line.
            Some(_) => {
                now.expected.pop_front();
            }
            None => {
                // With other keys and values other tokens follow.
                let from = if is_right { row.position.0 + 1 } else { row.position.0 };
                if !is_right || takes_kv {
                    self.say(now.conversation, ShadowWord::TakenBack(Position(from)));
                }
                now.expected.clear();
                if takes_kv {
                    self.catch_up(now).await?;
                    let copied = self.engine.copy_kv_cache(&self.base, row.conversation, row.position.0);
                    copied.map_err(|error| Outcome::Failed(error.to_string()))?;
                }
                let after = if self.overtakes.get() && after.is_none() {
                    // Nothing was said of it yet, as with sampled text, or where the token before was another than expected.
                    self.catch_up(now).await?;
                    Some(self.step(row, token).await?)
                } else {
                    // Its base has begun this token, so its routers would come too late. The next one may be in time.
                    now.skipped.push((row, token));
                    self.catch_up(now).await?
                };
                if let Some(after) = after {
                    self.expect(now, Position(row.position.0 + 1), after);
                }
            }
        }
        Ok(())
    }

    /// A prompt's chunk; the best next token.
    async fn prompt(&self, batch: &[BatchToken], tokens: Vec<u32>) -> Result<u32, Outcome> {
        let input = Input::Tokens(tokens);
        let blocks = BlockRange::new(0, self.spec.blocks.len() as u16);
        best(self.run(forward(batch, KernelClass::Prefill, input, blocks, HEAD)).await?)
    }

    /// Computes tokens that were not followed one by one; the best next token, if there were any.
    async fn catch_up(&self, now: &mut Following) -> Result<Option<u32>, Outcome> {
        let (skipped, mut next) = (std::mem::take(&mut now.skipped), None);
        let blocks = BlockRange::new(0, self.spec.blocks.len() as u16);
        for chunk in skipped.chunks(Work::DECODE_TOKENS) {
            let batch: Vec<BatchToken> = chunk.iter().map(|(row, _)| *row).collect();
            let input = Input::Tokens(chunk.iter().map(|(_, token)| *token).collect());
            next = Some(best(self.run(forward(&batch, KernelClass::Decode, input, blocks, HEAD)).await?)?);
        }
        Ok(next)
    }

    /// One token through all blocks; publishes what each router chooses, and returns the best next token.
    async fn step(&self, row: BatchToken, token: u32) -> Result<u32, Outcome> {
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
            let ids = |route: &potluck_plan::Route| route.experts.iter().map(|(id, _)| *id).collect::<Vec<_>>();
            let experts: Vec<_> = routes.iter().map(ids).collect();
            self.say(row.conversation, ShadowWord::Chose(row.position, block, experts.concat()));
            let Outcome::ExpertOutputs(outputs) = self.run(Task::Experts { block, class, normed, experts }).await?
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

impl Drop for Shadow {
    fn drop(&mut self) {
        self.engine.destroy();
    }
}

const HEAD: Then = Then::LmHead(LmHeadRequest { tokens: LmHeadTokens::Last, logits: LogitsRequest::Top(1) });

fn forward(batch: &[BatchToken], class: KernelClass, input: Input, blocks: BlockRange, then: Then) -> Task {
    Task::Forward { batch: batch.to_vec(), class, input, blocks, then }
}

fn best(outcome: Outcome) -> Result<u32, Outcome> {
    let Outcome::Candidates(all) = outcome else { return Err(unexpected()) };
    all.first().and_then(|best| best.ids.first()).copied().ok_or_else(unexpected)
}

fn unexpected() -> Outcome {
    Outcome::Failed("The shadow's engine returned another result than asked for.".to_owned())
}
