//! Times two ranges of a model's blocks on this device, so that a planner can separate overhead from speed
//! (dynamic-partitioning.txt 4.3.2). The blocks have the model's real shapes and types, but no weights unless they are loaded:
//! how long our kernels take does not depend on the values. A router of zeros selects as many experts as a real one.

mod error;
mod pauses;
mod ranges;
mod stored;
mod trial;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use futures::channel::mpsc::{self, UnboundedReceiver, UnboundedSender};
use potluck_engine::{Engine, fixed_overhead};
use potluck_plan::{
    BlockRange, Bytes, Computed, KernelClass, KvCacheType, LmHeadRequest, LmHeadTokens, LogitsRequest, Then, WeightUnit,
};
use potluck_planner::measures::typical;
use potluck_protocol::CalibrationRuns;

pub use self::error::CalibrateError;
use self::pauses::time_pauses;
use self::ranges::{Ranges, longest_run, ranges, ranges_with_lm_head, units_of};
use self::stored::StoredTimes;
use self::trial::{EngineOwner, Trial, forward};
use super::keep_alive::KeepAlive;
use super::room_engine::RoomEngine;
use crate::blob::{BlobKey, BlobName};
use crate::open::{Model, settings};
use crate::platform::Platform;

/// Tokens of a prompt chunk: one page of the KV cache.
const CHUNK: u32 = 64;
/// Positions of context of the timed blocks.
const CONTEXT: u32 = 128;
/// Maximum bytes of blocks that are timed without weights.
const MAX_BYTES: u64 = 3 << 29;
/// Milliseconds for which prompt chunks and decoded tokens are timed; a slow device stops early.
const CHUNK_MILLIS: f64 = 500.0;
const DECODE_MILLIS: f64 = 900.0;
/// Milliseconds between two checks of a load under way, and how many checks.
const LOAD_CHECK_MILLIS: f64 = 200.0;
const LOAD_CHECKS: u32 = 600;
/// Whoever times a GPU holds this lock.
const LOCK: &str = "potluck-calibration";

/// Times blocks on this device.
pub(super) struct Calibrator {
    platform: Platform,
    keep_alive: Rc<KeepAlive>,
    room: Rc<RoomEngine>,
    /// Pieces of work that were timed.
    trials: Rc<Cell<u64>>,
    stored: StoredTimes,
    /// Receives the results of what is timed on the room's engine.
    results: RefCell<Option<UnboundedSender<Computed>>>,
}

impl Calibrator {
    pub fn new(platform: Platform, keep_alive: Rc<KeepAlive>, room: Rc<RoomEngine>) -> Self {
        let stored = StoredTimes { platform: platform.clone(), keep_alive: keep_alive.clone(), room: room.clone() };
        Self { platform, keep_alive, room, trials: Rc::default(), stored, results: RefCell::default() }
    }

    /// A result of timed work on the room's engine.
    pub fn deliver(&self, computed: Computed) {
        if let Some(results) = self.results.borrow().as_ref() {
            // Fails if the trial was given up.
            let _ = results.unbounded_send(computed);
        }
    }

    /// Times of two ranges of the model's blocks, stored for each adapter, build and model. Uses at most `budget` bytes.
    /// `early` receives what is known before pauses are timed, which takes longer than others should wait. While `has_slots`, slots
    /// take all memory.
    ///
    /// # Errors
    /// [`CalibrateError`]; the planner then uses what the device declares.
    pub async fn calibrate(
        &self,
        model: &Model,
        budget: Bytes,
        has_slots: &dyn Fn() -> bool,
        early: &dyn Fn(CalibrationRuns),
    ) -> Result<CalibrationRuns, CalibrateError> {
        let key = BlobKey { model: model.card.id, name: BlobName::Calibration };
        for _ in 0..LOAD_CHECKS {
            if let Some(runs) = self.stored.get(key).await {
                return Ok(runs);
            }
            // Slots take all memory until another plan comes.
            if has_slots() {
                self.platform.clock.sleep(LOAD_CHECK_MILLIS).await;
                continue;
            }
            let room_engine = match self.room.get() {
                Some(loaded) if loaded.model != model.card.id => return Err(CalibrateError::Busy),
                Some(loaded) => Some(loaded.engine),
                None => None,
            };
            // Wait for a load under way: the blocks it loads are timed.
            let is_loading = |engine: &Engine| !engine.missing().is_empty() || engine.reserved().is_empty();
            if room_engine.as_ref().is_some_and(is_loading) {
                self.platform.clock.sleep(LOAD_CHECK_MILLIS).await;
                continue;
            }
            // Two tabs on one GPU would disturb each other's times. Without locks they may.
            let _turn = self.platform.store.lock(LOCK.to_owned()).await;
            if let Some(runs) = self.stored.get(key).await {
                return Ok(runs);
            }
            let runs = match room_engine {
                Some(engine) => self.time_loaded(model, engine, early).await?,
                None => self.time_without_weights(model, budget, early).await?,
            };
            let Some(runs) = runs else { continue };
            if model.source.fetch_policy().cache {
                self.stored.put(key, runs.clone()).await;
            }
            return Ok(runs);
        }
        Err(CalibrateError::Busy)
    }

    fn trial(&self, engine: Engine, results: UnboundedReceiver<Computed>, owner: EngineOwner) -> Trial {
        let (platform, trials, room) = (self.platform.clone(), self.trials.clone(), self.room.clone());
        Trial { platform, trials, room, engine, results, owner }
    }

    /// Times blocks on the engine that the room uses.
    async fn time_loaded(
        &self,
        model: &Model,
        engine: Engine,
        early: &dyn Fn(CalibrationRuns),
    ) -> Result<Option<CalibrationRuns>, CalibrateError> {
        let loaded = engine.reserved();
        let has = |block| units_of(&model.units, block).iter().all(|unit| loaded.contains(unit));
        let run = longest_run(model.card.blocks, has);
        let ranges = ranges(run, loaded.contains(&WeightUnit::LmHead), |_| true).ok_or(CalibrateError::TooFewBlocks)?;
        let (sender, results) = mpsc::unbounded();
        *self.results.borrow_mut() = Some(sender);
        let mut trial = self.trial(engine, results, EngineOwner::Room);
        self.time_ranges(&mut trial, ranges, model.spec.hidden as usize, early).await
    }

    /// Times blocks on an engine of its own. `None` if a load began meanwhile.
    async fn time_without_weights(
        &self,
        model: &Model,
        budget: Bytes,
        early: &dyn Fn(CalibrationRuns),
    ) -> Result<Option<CalibrationRuns>, CalibrateError> {
        let device = self.keep_alive.device();
        let gpu = device.gpu().ok_or_else(|| CalibrateError::NoGpu(device.no_gpu()))?;
        let bytes = |units: &[WeightUnit]| units.iter().map(|unit| model.units.bytes(*unit).0).sum::<u64>();
        let settings = settings(budget, CONTEXT, KvCacheType::F32);
        let free = budget.saturating_sub(fixed_overhead(&model.spec, &settings)).0;
        let max = MAX_BYTES.min(free / 4 * 3);
        let blocks = |range: BlockRange| range.iter().map(|block| bytes(&units_of(&model.units, block))).sum::<u64>();
        let all = BlockRange::new(0, model.card.blocks);
        let lm_head = bytes(&[WeightUnit::LmHead]);
        let ranges =
            ranges_with_lm_head(all, blocks, lm_head, max, free / 10 * 9).ok_or(CalibrateError::TooFewBlocks)?;
        let (sender, results) = mpsc::unbounded();
        let on_result = move |computed: Computed| {
            // The receiver lives as long as the engine.
            let _ = sender.unbounded_send(computed);
        };
        let (spec, map) = (model.spec.clone(), model.units.clone());
        let engine = Engine::new(&gpu, spec, map, settings, self.platform.compute.results(Box::new(on_result)))?;
        let mut trial = self.trial(engine, results, EngineOwner::Trial);
        let mut units: BTreeSet<WeightUnit> =
            ranges.long.iter().flat_map(|block| units_of(&model.units, block)).collect();
        if ranges.lm_head {
            units.insert(WeightUnit::LmHead);
        }
        trial.engine.reserve(&units)?;
        units.iter().try_for_each(|unit| trial.engine.finish(*unit))?;
        trial.engine.prepare().await?;
        self.time_ranges(&mut trial, ranges, model.spec.hidden as usize, early).await
    }

    /// `None` if the engine must make room for a load.
    async fn time_ranges(
        &self,
        trial: &mut Trial,
        ranges: Ranges,
        width: usize,
        early: &dyn Fn(CalibrationRuns),
    ) -> Result<Option<CalibrationRuns>, CalibrateError> {
        let Ranges { short, long, lm_head } = ranges;
        let chunk = |blocks| forward(KernelClass::Prefill, CHUNK, width, blocks, Then::Hidden);
        let token = |blocks, then| forward(KernelClass::Decode, 1, width, blocks, then);
        let logits = LmHeadRequest { tokens: LmHeadTokens::Last, logits: LogitsRequest::Top(LogitsRequest::MAX_TOP) };
        let mut tokens = vec![token(long, Then::Hidden), token(short, Then::Hidden)];
        tokens.extend(lm_head.then(|| token(short, Then::LmHead(logits))));
        trial.warm_up(&tokens[0]).await?;
        let Some(decode) = trial.rounds(&tokens, DECODE_MILLIS).await? else { return Ok(None) };
        let mut decode = decode.into_iter();
        let mut next = || decode.next().unwrap_or_default();
        let (decode_long, decode_short, decode_lm_head) = (next(), next(), next());
        let is_fast = typical(&decode_long) < CHUNK_MILLIS / f64::from(CHUNK);
        let mut prefill = [Vec::new(), Vec::new()];
        // Others wait. If this would take seconds, the planner assumes that the device gains as much from chunks as others.
        if is_fast {
            let Some(times) = trial.rounds(&[chunk(long), chunk(short)], CHUNK_MILLIS).await? else {
                return Ok(None);
            };
            prefill = <[Vec<f64>; 2]>::try_from(times).unwrap_or_default();
        }
        let ([prefill_long, prefill_short], chunk) = (prefill, CHUNK);
        let mut runs = CalibrationRuns {
            short,
            long,
            decode_short,
            decode_long,
            decode_lm_head,
            decode_paused: Vec::new(),
            short_paused: Vec::new(),
            lm_head_paused: Vec::new(),
            pauses_follow: is_fast,
            chunk,
            prefill_short,
            prefill_long,
        };
        if is_fast {
            early(runs.clone());
            runs.pauses_follow = false;
            return time_pauses(trial, &self.keep_alive, &tokens, runs).await;
        }
        Ok(Some(runs))
    }
}
