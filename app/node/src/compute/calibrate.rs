//! Timing two ranges of a model's blocks on this device, so that a planner can tell overhead and speed apart
//! (dynamic-partitioning.txt 4.3.2). The blocks have the model's real shapes and types, and no weights unless they are
//! loaded: how long our kernels take does not depend on the numbers. A router of zeros chooses as many experts as a real one.

mod pauses;

use std::collections::BTreeSet;
use std::rc::Rc;

use futures::StreamExt;
use futures::channel::mpsc::{self, UnboundedReceiver};
use futures::future::{Either, select};
use potluck_engine::{Engine, EngineError, fixed_overhead};
use potluck_model::UnitMap;
use potluck_plan::{
    BatchToken, BlockIndex, BlockRange, Bytes, Computed, ConversationId, Input, KernelClass, KvCacheType,
    LmHeadRequest, LmHeadTokens, LogitsRequest, Outcome, Position, Task, Then, Ticket, WeightUnit, Work,
};
use potluck_planner::measures::{MIN_RUNS, RUNS, typical};
use potluck_protocol::CalibrationRuns;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{Compute, FIRST_TRIAL, MEASURED_SECONDS};
use crate::blob::{BlobKey, BlobName};
use crate::open::{Model, settings};

/// Blocks of the short range and of the long one: the first pair that has room.
const RANGES: [(u16, u16); 3] = [(2, 6), (1, 3), (1, 2)];
/// Rows of a prompt's chunk: one page of state.
const CHUNK: u32 = 64;
/// Positions of context that the timed blocks get.
const CONTEXT: u32 = 128;
/// Most bytes of blocks that are timed without weights.
const MOST_BYTES: u64 = 3 << 29;
/// So long chunks are timed, and so long decoded rows, in milliseconds; a slow device stops early.
const CHUNK_MILLIS: f64 = 500.0;
const DECODE_MILLIS: f64 = 900.0;
/// So long a device works before it is timed, milliseconds.
const WARM_UP_MILLIS: f64 = 700.0;
/// A quick device repeats a range so often while less than so many milliseconds have passed.
const MOST_RUNS: usize = 25;
const ENOUGH_MILLIS: f64 = 150.0;
/// A piece of work that takes longer than this, milliseconds, will not come.
const PATIENCE: f64 = 5_000.0;
/// Looks at a load that is under way this often, milliseconds, and so many times.
const LOOK: f64 = 200.0;
const LOOKS: u32 = 600;
/// Who times a GPU holds this lock.
const LOCK: &str = "potluck-calibration";
/// No conversation of a room has this number.
const TRIAL: ConversationId = ConversationId(u32::MAX);

/// Why a device has no times.
#[derive(Debug, Error)]
pub enum CalibrateError {
    /// There is no GPU.
    #[error("{0}")]
    NoGpu(String),
    /// Its memory belongs to something else.
    #[error("this device's GPU is busy with another model")]
    Busy,
    /// Overhead and speed cannot be told apart.
    #[error("fewer than two blocks of the model fit on this device")]
    TooFewBlocks,
    /// The engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A piece of work failed, in one sentence.
    #[error("{0}")]
    Failed(String),
}

/// Times that are kept between visits, with the model's weights.
#[derive(Serialize, Deserialize)]
struct Kept {
    adapter: String,
    build: String,
    /// A device that is slowed for a measurement is another one.
    slow: u32,
    unix_seconds: u64,
    /// After pauses rows are quicker where the GPU is kept warm, and were timed so.
    #[serde(default)]
    warm: bool,
    runs: CalibrationRuns,
}

/// Which blocks are timed.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ranges {
    short: BlockRange,
    long: BlockRange,
    head: bool,
}

/// An engine that is timed, and where its results come.
struct Trial {
    engine: Engine,
    results: UnboundedReceiver<Computed>,
    /// It was made for this; otherwise it is the room's.
    own: bool,
}

impl Drop for Trial {
    fn drop(&mut self) {
        if self.own {
            self.engine.destroy();
        } else {
            self.engine.forget(TRIAL);
        }
    }
}

impl Compute {
    /// Times of two ranges of the model's blocks, kept for each adapter, build and model. At most `budget` bytes are used.
    /// `early` hears what is known before pauses are timed, which takes longer than others should wait.
    ///
    /// # Errors
    /// [`CalibrateError`]; the device is planned with what it declares.
    pub async fn calibrate(
        self: &Rc<Self>,
        model: &Model,
        budget: Bytes,
        early: &dyn Fn(CalibrationRuns),
    ) -> Result<CalibrationRuns, CalibrateError> {
        let key = BlobKey { model: model.card.id, name: BlobName::Calibration };
        for _ in 0..LOOKS {
            if let Some(runs) = self.kept_runs(key).await {
                return Ok(runs);
            }
            let room = match self.slot.borrow().as_ref() {
                Some(slot) if slot.model != model.card.id => return Err(CalibrateError::Busy),
                Some(slot) => Some(slot.engine.clone()),
                None => None,
            };
            // A load that is under way is waited for: what it brings is timed.
            if room.as_ref().is_some_and(|engine| !engine.missing().is_empty() || engine.reserved().is_empty()) {
                self.platform.clock.sleep(LOOK).await;
                continue;
            }
            // Two tabs on one GPU would time each other. Without locks here they may.
            let _turn = self.platform.store.lock(LOCK.to_owned()).await;
            if let Some(runs) = self.kept_runs(key).await {
                return Ok(runs);
            }
            let runs = match room {
                Some(engine) => self.time_loaded(model, engine, early).await?,
                None => self.time_without_weights(model, budget, early).await?,
            };
            let Some(runs) = runs else { continue };
            if model.source.manners().keep {
                self.keep_runs(key, runs.clone()).await;
            }
            return Ok(runs);
        }
        Err(CalibrateError::Busy)
    }

    async fn all_kept(&self, key: BlobKey) -> Vec<Kept> {
        let store = &self.platform.store;
        let len = store.len(key).await.unwrap_or(0);
        let json = if len > 0 { store.read(key, 0, len).await.unwrap_or_default() } else { Vec::new() };
        serde_json::from_slice(&json).unwrap_or_default()
    }

    fn is_ours(&self, kept: &Kept) -> bool {
        kept.adapter == self.adapter() && kept.build == potluck_panel::BUILD && kept.slow == self.slow
    }

    async fn kept_runs(&self, key: BlobKey) -> Option<CalibrationRuns> {
        let kept = self.all_kept(key).await.into_iter().find(|kept| self.is_ours(kept))?;
        // What was timed without the head, for lack of room, is timed again where the head is loaded.
        let has_lm_head = |slot: &super::Slot| {
            slot.model == key.model
                && slot.engine.missing().is_empty()
                && slot.engine.reserved().contains(&WeightUnit::LmHead)
        };
        if kept.runs.decode_lm_head.is_empty() && self.slot.borrow().as_ref().is_some_and(has_lm_head) {
            return None;
        }
        let age = self.platform.clock.unix_seconds().saturating_sub(kept.unix_seconds);
        if age >= MEASURED_SECONDS {
            return None;
        }
        self.warmth.pays(kept.warm);
        Some(kept.runs)
    }

    /// Best effort: without it the next visit times again.
    async fn keep_runs(&self, key: BlobKey, runs: CalibrationRuns) {
        let unix_seconds = self.platform.clock.unix_seconds();
        let build = potluck_panel::BUILD.to_owned();
        let mut all = self.all_kept(key).await;
        all.retain(|kept| !self.is_ours(kept) && kept.build == build);
        all.push(Kept {
            adapter: self.adapter(),
            build,
            slow: self.slow,
            unix_seconds,
            warm: self.warmth.is_worth_it(),
            runs,
        });
        let Ok(json) = serde_json::to_vec(&all) else { return };
        let store = &self.platform.store;
        let kept = match store.delete(key).await {
            Ok(()) => store.append(key, 0, json).await,
            Err(error) => Err(error),
        };
        if let Err(error) = kept {
            log::info!("the times are not kept: {error}");
        }
    }

    /// On the engine that the room uses.
    async fn time_loaded(
        &self,
        model: &Model,
        engine: Engine,
        early: &dyn Fn(CalibrationRuns),
    ) -> Result<Option<CalibrationRuns>, CalibrateError> {
        let held = engine.reserved();
        let has = |block| units_of(&model.units, block).iter().all(|unit| held.contains(unit));
        let run = longest_run(model.card.blocks, has);
        let ranges = ranges(run, held.contains(&WeightUnit::LmHead), |_| true).ok_or(CalibrateError::TooFewBlocks)?;
        let (sender, results) = mpsc::unbounded();
        *self.trial.borrow_mut() = Some(sender);
        let mut trial = Trial { engine, results, own: false };
        self.time_ranges(&mut trial, ranges, model.spec.hidden as usize, early).await
    }

    /// On an engine of its own. `None` if a load began meanwhile.
    async fn time_without_weights(
        &self,
        model: &Model,
        budget: Bytes,
        early: &dyn Fn(CalibrationRuns),
    ) -> Result<Option<CalibrationRuns>, CalibrateError> {
        let gpu = self.gpu.borrow().clone().ok_or_else(|| CalibrateError::NoGpu(self.no_gpu()))?;
        let bytes = |units: &[WeightUnit]| units.iter().map(|unit| model.units.bytes(*unit).0).sum::<u64>();
        let settings = settings(budget, CONTEXT, KvCacheType::F32);
        let free = budget.saturating_sub(fixed_overhead(&model.spec, &settings)).0;
        let most = MOST_BYTES.min(free / 4 * 3);
        let blocks = |range: BlockRange| range.iter().map(|block| bytes(&units_of(&model.units, block))).sum::<u64>();
        let all = BlockRange::new(0, model.card.blocks);
        let head = bytes(&[WeightUnit::LmHead]);
        let ranges = ranges_with_head(all, blocks, head, most, free / 10 * 9).ok_or(CalibrateError::TooFewBlocks)?;
        let (sender, results) = mpsc::unbounded();
        let on_result = move |computed: Computed| {
            // The receiver lives as long as the engine.
            let _ = sender.unbounded_send(computed);
        };
        let (spec, map) = (model.spec.clone(), model.units.clone());
        let engine = Engine::new(&gpu, spec, map, settings, Box::new(on_result))?;
        let mut trial = Trial { engine, results, own: true };
        let mut units: BTreeSet<WeightUnit> =
            ranges.long.iter().flat_map(|block| units_of(&model.units, block)).collect();
        if ranges.head {
            units.insert(WeightUnit::LmHead);
        }
        trial.engine.reserve(&units)?;
        units.iter().try_for_each(|unit| trial.engine.finish(*unit))?;
        trial.engine.prepare().await?;
        self.time_ranges(&mut trial, ranges, model.spec.hidden as usize, early).await
    }

    /// `None` if the engine has to make room for a load.
    async fn time_ranges(
        &self,
        trial: &mut Trial,
        ranges: Ranges,
        width: usize,
        early: &dyn Fn(CalibrationRuns),
    ) -> Result<Option<CalibrationRuns>, CalibrateError> {
        let Ranges { short, long, head } = ranges;
        let chunk = |blocks| forward(KernelClass::Prefill, CHUNK, width, blocks, Then::Hidden);
        let row = |blocks, then| forward(KernelClass::Decode, 1, width, blocks, then);
        let pick = LmHeadRequest { tokens: LmHeadTokens::Last, logits: LogitsRequest::Top(LogitsRequest::MAX_TOP) };
        let mut rows = vec![row(long, Then::Hidden), row(short, Then::Hidden)];
        rows.extend(head.then(|| row(short, Then::LmHead(pick))));
        self.warm_up(trial, &rows[0]).await?;
        let Some(decode) = self.rounds(trial, &rows, DECODE_MILLIS).await? else { return Ok(None) };
        let mut decode = decode.into_iter();
        let mut next = || decode.next().unwrap_or_default();
        let (decode_long, decode_short, decode_lm_head) = (next(), next(), next());
        let is_quick = typical(&decode_long) < CHUNK_MILLIS / f64::from(CHUNK);
        let mut prefill = [Vec::new(), Vec::new()];
        // Others wait: a device on which this takes seconds is taken to gain as much by chunks as others do.
        if is_quick {
            let Some(times) = self.rounds(trial, &[chunk(long), chunk(short)], CHUNK_MILLIS).await? else {
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
            pauses_follow: is_quick,
            chunk,
            prefill_short,
            prefill_long,
        };
        if is_quick {
            early(runs.clone());
            runs.pauses_follow = false;
            return self.time_pauses(trial, &rows, runs).await;
        }
        Ok(Some(runs))
    }

    /// Runs tasks in turn, so that whatever else the device does meanwhile meets all of them; milliseconds of each.
    async fn rounds(
        &self,
        trial: &mut Trial,
        tasks: &[Task],
        most_millis: f64,
    ) -> Result<Option<Vec<Vec<f64>>>, CalibrateError> {
        let started = self.platform.clock.now().0;
        let mut times = vec![Vec::new(); tasks.len()];
        for round in 0..MOST_RUNS {
            let spent = self.platform.clock.now().0 - started;
            let enough = round >= RUNS && spent >= ENOUGH_MILLIS;
            if enough || round >= MIN_RUNS && spent >= most_millis {
                break;
            }
            for (task, times) in tasks.iter().zip(&mut times) {
                if trial.own && self.slot.borrow().is_some() {
                    return Ok(None);
                }
                times.push(self.run(trial, task.clone()).await?);
            }
        }
        Ok(Some(times))
    }

    /// Works for a moment: an idle GPU's clock rises only then.
    async fn warm_up(&self, trial: &mut Trial, task: &Task) -> Result<(), CalibrateError> {
        let started = self.platform.clock.now().0;
        while self.platform.clock.now().0 - started < WARM_UP_MILLIS {
            self.run(trial, task.clone()).await?;
        }
        Ok(())
    }

    async fn run(&self, trial: &mut Trial, task: Task) -> Result<f64, CalibrateError> {
        let ticket = Ticket(FIRST_TRIAL + self.repetitions.get());
        self.repetitions.set(self.repetitions.get() + 1);
        let late = self.repeat_on(&trial.engine, &task);
        trial.engine.submit(Work { ticket, task })?;
        loop {
            let computed = self.result(trial).await?;
            if computed.ticket != ticket {
                continue;
            }
            return match computed.outcome {
                Outcome::Failed(sentence) => Err(CalibrateError::Failed(sentence)),
                Outcome::DeviceLost | Outcome::Cancelled => Err(EngineError::Lost.into()),
                _ => Ok(computed.millis + late),
            };
        }
    }

    async fn result(&self, trial: &mut Trial) -> Result<Computed, CalibrateError> {
        let patience = self.platform.clock.sleep(PATIENCE);
        #[cfg(not(target_arch = "wasm32"))]
        let moving = {
            let (engine, own) = (trial.engine.clone(), trial.own);
            async move {
                // The room's engine is moved by the driver.
                if !own {
                    return std::future::pending::<()>().await;
                }
                loop {
                    engine.poll_for(super::PATIENCE);
                    tokio::task::yield_now().await;
                }
            }
        };
        #[cfg(target_arch = "wasm32")]
        let moving = std::future::pending::<()>();
        let moving = std::pin::pin!(moving);
        match select(trial.results.next(), select(moving, patience)).await {
            Either::Left((Some(computed), _)) => Ok(computed),
            Either::Left((None, _)) => Err(CalibrateError::Busy),
            Either::Right(_) => Err(CalibrateError::Failed("the GPU takes too long for a few blocks".to_owned())),
        }
    }
}

/// Everything a block has.
fn units_of(units: &UnitMap, block: BlockIndex) -> Vec<WeightUnit> {
    units.units().filter(|unit| unit.block() == Some(block)).collect()
}

/// The longest run of blocks that are there.
fn longest_run(blocks: u16, has: impl Fn(BlockIndex) -> bool) -> BlockRange {
    let (mut best, mut start) = (BlockRange::default(), 0);
    for block in 0..blocks {
        if !has(BlockIndex(block)) {
            start = block + 1;
        } else if block + 1 - start > best.end - best.start {
            best = BlockRange::new(start, block + 1);
        }
    }
    best
}

/// Two ranges from the middle of the blocks there are: the first and last blocks of a model are at times of other types.
fn ranges(blocks: BlockRange, head: bool, fits: impl Fn(BlockRange) -> bool) -> Option<Ranges> {
    let count = blocks.end - blocks.start;
    RANGES.iter().find_map(|(short, long)| {
        let start = blocks.start + count.checked_sub(*long)? / 2;
        let long = BlockRange::new(start, start + long);
        fits(long).then_some(Ranges { short: BlockRange::new(start, start + short), long, head })
    })
}

/// The longest ranges of at most `most` bytes beside which the head has room in `free` bytes, if there are some of more than
/// two blocks; else without the head.
fn ranges_with_head(
    all: BlockRange,
    bytes: impl Fn(BlockRange) -> u64,
    head: u64,
    most: u64,
    free: u64,
) -> Option<Ranges> {
    let fits = |range: BlockRange| bytes(range) <= most;
    let beside = ranges(all, true, |range| fits(range) && bytes(range) + head <= free);
    let found = ranges(all, false, fits)?;
    let blocks = |ranges: &Ranges| ranges.long.end - ranges.long.start;
    beside.filter(|beside| blocks(beside) > 2 || blocks(beside) == blocks(&found)).or(Some(found))
}

/// The first rows of a conversation, zeros, through blocks.
fn forward(class: KernelClass, count: u32, width: usize, blocks: BlockRange, then: Then) -> Task {
    let input = Input::Hidden(vec![0.0; width * count as usize]);
    let rows = (0..count).map(|position| BatchToken { conversation: TRIAL, position: Position(position) }).collect();
    Task::Forward { batch: rows, class, input, blocks, then }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_middle_of_the_model_is_timed_and_as_much_of_it_as_has_room() {
        let of =
            |count: u16, most: u16| ranges(BlockRange::new(0, count), true, |range| range.end - range.start <= most);
        let wide = of(28, 28).unwrap();
        assert_eq!((wide.short, wide.long), (BlockRange::new(11, 13), BlockRange::new(11, 17)));
        let narrow = of(28, 4).unwrap();
        assert_eq!((narrow.short, narrow.long), (BlockRange::new(12, 13), BlockRange::new(12, 15)));
        assert_eq!(of(2, 2).map(|ranges| ranges.long), Some(BlockRange::new(0, 2)));
        assert_eq!(of(28, 1), None, "two ranges need two blocks");
        assert_eq!(of(1, 9), None);
    }

    #[test]
    fn fewer_blocks_are_timed_where_the_head_has_room_beside_them() {
        let of = |free| {
            let found =
                ranges_with_head(BlockRange::new(0, 28), |range| 10 * u64::from(range.end - range.start), 25, 75, free);
            found.map(|found| (found.long.end - found.long.start, found.head))
        };
        assert_eq!(of(85), Some((6, true)));
        assert_eq!(of(75), Some((3, true)), "the head's cost is worth more than three blocks");
        assert_eq!(of(50), Some((6, false)), "two blocks tell too little");
    }

    #[test]
    fn of_a_stage_the_blocks_that_are_there_are_timed() {
        let has = |block: BlockIndex| [1, 4, 5, 6, 9].contains(&block.0);
        assert_eq!(longest_run(10, has), BlockRange::new(4, 7));
        assert_eq!(longest_run(10, |_| false), BlockRange::default());
    }
}
