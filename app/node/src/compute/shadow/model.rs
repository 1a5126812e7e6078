//! A shadow model: the same model in a type of fewer bits, on the same GPU, a few tokens ahead of its base. It says which
//! tokens it expects, and block by block what its routers choose (od-moe.txt 3.2). It follows one conversation, the one whose
//! prompt came last. If it fails, the next predictor in line is believed, and no answer changes.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use futures::channel::mpsc;
use futures::{FutureExt, StreamExt};
use potluck_engine::{Engine, EngineError, Gpu, Settings};
use potluck_model::{ModelSpec, UnitMap};
use potluck_plan::{BatchToken, ConversationId, Input, KernelClass, Outcome, Position, Task};
use potluck_predict::{Alignment, ShadowWord};

use super::base_work::{BaseWork, Pass};
use super::engine::ShadowEngine;
use super::following::{Expected, FollowedToken, Following};
use super::options::ShadowOptions;

/// Hears what a shadow says of a conversation's tokens.
pub(super) type Listener = Rc<dyn Fn(ConversationId, ShadowWord)>;

/// The model of a shadow, and what it runs with.
pub(super) struct ShadowModel {
    pub spec: ModelSpec,
    pub units: UnitMap,
    pub settings: Settings,
}

/// A shadow model on an engine of its own.
pub(in crate::compute) struct Shadow {
    engine: ShadowEngine,
    base: Engine,
    alignment: Alignment,
    listener: RefCell<Listener>,
    /// The base waits for other devices within a token, so the shadow may pass it there: its word counts also for a token that
    /// the base has begun.
    pub overtakes: Cell<bool>,
    /// Tokens of answers that it may still hear of.
    left: Cell<u32>,
    base_work: mpsc::UnboundedSender<BaseWork>,
    hears: RefCell<Option<mpsc::UnboundedReceiver<BaseWork>>>,
    /// It has all of its weights. Before, it hears nothing.
    is_ready: Cell<bool>,
}

impl Shadow {
    /// Reserves memory for a shadow, whose weights are still to be loaded. It hears its base once it is [`Shadow::ready`].
    ///
    /// # Errors
    /// A sentence: it does not fit.
    pub(super) fn new(
        gpu: &Gpu,
        model: ShadowModel,
        options: &ShadowOptions,
        base: &Engine,
        listener: Listener,
    ) -> Result<Self, String> {
        let failed = |error: EngineError| format!("The shadow cannot run: {error}");
        let ShadowModel { spec, units, settings } = model;
        let engine = ShadowEngine::new(gpu, spec, units, settings).map_err(failed)?;
        let (base_work, hears) = mpsc::unbounded();
        Ok(Self {
            engine,
            base: base.clone(),
            alignment: options.alignment,
            listener: RefCell::new(listener),
            overtakes: Cell::new(false),
            left: Cell::new(options.tokens.unwrap_or(u32::MAX)),
            base_work,
            hears: RefCell::new(Some(hears)),
            is_ready: Cell::new(false),
        })
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
        &self.engine.engine
    }

    /// Bytes of its weights.
    pub fn bytes(&self) -> u64 {
        self.engine.bytes
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
                let _ = self.base_work.unbounded_send(BaseWork::Prompt(batch.clone(), tokens.clone()));
            }
            KernelClass::Decode => {
                for pass in Pass::all(batch, tokens, wanted) {
                    let _ = self.base_work.unbounded_send(BaseWork::Pass(pass));
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
            let work = match ahead {
                None => hears.next().await,
                Some(last) => match hears.next().now_or_never() {
                    Some(work) => work,
                    // Nothing new: a token further ahead.
                    None => {
                        let done = self.ahead(&mut following, last).await;
                        self.unless_lost(done, &mut following);
                        continue;
                    }
                },
            };
            let Some(mut work) = work else { return };
            // What its base has passed meanwhile is computed together, without asking the routers.
            while let Some(Some(newer)) = hears.next().now_or_never() {
                let followed = following.as_ref().map(|now| now.conversation);
                if matches!(newer, BaseWork::Pass(_))
                    && ![followed, work.conversation()].contains(&newer.conversation())
                {
                    // Of another answer.
                    continue;
                }
                let done = self.hear(work, true, &mut following).await;
                self.unless_lost(done, &mut following);
                work = newer;
            }
            let done = self.hear(work, false, &mut following).await;
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
    async fn hear(&self, work: BaseWork, has_passed: bool, following: &mut Option<Following>) -> Result<(), Outcome> {
        match work {
            BaseWork::Prompt(batch, tokens) => {
                let (Some(first), Some(last)) = (batch.first().copied(), batch.last().copied()) else { return Ok(()) };
                let before = following.take();
                let mut now = match before {
                    Some(before) if before.conversation == last.conversation => before,
                    before if first.position.0 == 0 => {
                        before.into_iter().for_each(|before| self.engine().forget(before.conversation));
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
                let token = self.engine.prompt(&batch, tokens).await?;
                now.first = Position(last.position.0 + 1);
                self.say(now.conversation, ShadowWord::Begins(now.first));
                now.expected.clear();
                let first = now.first;
                self.expect(&mut now, first, token);
                now.wanted = false;
                *following = Some(now);
                Ok(())
            }
            BaseWork::Pass(Pass { row, token, drafts, wanted }) => {
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
        let FollowedToken { token, own } = now.take(self.alignment, row, token);
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
                    let copied = self.engine().copy_kv_cache(&self.base, row.conversation, row.position.0);
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

    /// Computes tokens that were not followed one by one; the best next token, if there were any.
    async fn catch_up(&self, now: &mut Following) -> Result<Option<u32>, Outcome> {
        self.engine.tokens(&std::mem::take(&mut now.skipped)).await
    }

    /// One token through all blocks; publishes what each router chooses, and returns the best next token.
    async fn step(&self, row: BatchToken, token: u32) -> Result<u32, Outcome> {
        let publish = |block, experts| self.say(row.conversation, ShadowWord::Chose(row.position, block, experts));
        self.engine.step(row, token, publish).await
    }
}
