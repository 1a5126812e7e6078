//! Running timed work on an engine.

use futures::StreamExt;
use futures::channel::mpsc::UnboundedReceiver;
use futures::future::{Either, select};
use potluck_engine::{Engine, EngineError};
use potluck_plan::{
    BatchToken, BlockRange, Computed, ConversationId, Input, KernelClass, Outcome, Position, Task, Then, Work,
};
use potluck_planner::measures::{MIN_RUNS, RUNS};

use super::super::Compute;
use super::CalibrateError;

/// How long to run before timing starts, in milliseconds: the clock of an idle GPU rises only under load.
const WARM_UP_MILLIS: f64 = 700.0;
/// Maximum repetitions, for fast devices, and the milliseconds after which they suffice.
const MAX_RUNS: usize = 25;
const ENOUGH_MILLIS: f64 = 150.0;
/// Milliseconds after which a piece of work counts as failed.
const TIMEOUT: f64 = 5_000.0;

/// An engine that is timed, and its results.
pub struct Trial {
    pub engine: Engine,
    pub results: UnboundedReceiver<Computed>,
    /// The engine was created for the trial; otherwise it is the room's.
    pub own_engine: bool,
}

impl Drop for Trial {
    fn drop(&mut self) {
        if self.own_engine {
            self.engine.destroy();
        } else {
            self.engine.forget(ConversationId::TRIAL);
        }
    }
}

/// The first `count` tokens of a conversation, with zeros as hidden states of `width` floats, through some blocks.
pub fn forward(class: KernelClass, count: u32, width: usize, blocks: BlockRange, then: Then) -> Task {
    let input = Input::Hidden(vec![0.0; width * count as usize]);
    let conversation = ConversationId::TRIAL;
    let batch = (0..count).map(|position| BatchToken { conversation, position: Position(position) }).collect();
    Task::Forward { batch, class, input, blocks, then }
}

impl Compute {
    /// Runs the tasks in turn, so that whatever else the device does meanwhile affects all of them alike. Returns the
    /// milliseconds of each, or `None` if the engine must make room for a load.
    ///
    /// # Errors
    /// The device is lost, or the work failed.
    pub(super) async fn rounds(
        &self,
        trial: &mut Trial,
        tasks: &[Task],
        max_millis: f64,
    ) -> Result<Option<Vec<Vec<f64>>>, CalibrateError> {
        let started = self.platform.clock.now().0;
        let mut times = vec![Vec::new(); tasks.len()];
        for round in 0..MAX_RUNS {
            let spent = self.platform.clock.now().0 - started;
            let enough = round >= RUNS && spent >= ENOUGH_MILLIS;
            if enough || round >= MIN_RUNS && spent >= max_millis {
                break;
            }
            for (task, times) in tasks.iter().zip(&mut times) {
                if self.must_make_room(trial) {
                    return Ok(None);
                }
                times.push(self.run_timed(trial, task.clone()).await?);
            }
        }
        Ok(Some(times))
    }

    /// True if the trial has an engine of its own and a load began meanwhile.
    pub(super) fn must_make_room(&self, trial: &Trial) -> bool {
        trial.own_engine && self.model_engine.borrow().is_some()
    }

    /// Runs a task for a moment so that the GPU's clock rises.
    ///
    /// # Errors
    /// The device is lost, or the work failed.
    pub(super) async fn warm_up(&self, trial: &mut Trial, task: &Task) -> Result<(), CalibrateError> {
        let started = self.platform.clock.now().0;
        while self.platform.clock.now().0 - started < WARM_UP_MILLIS {
            self.run_timed(trial, task.clone()).await?;
        }
        Ok(())
    }

    /// Runs a task; returns its milliseconds.
    ///
    /// # Errors
    /// The device is lost, or the work failed.
    pub(super) async fn run_timed(&self, trial: &mut Trial, task: Task) -> Result<f64, CalibrateError> {
        let ticket = self.slow_down.trial_ticket();
        let head_start = self.slow_down.repeat_task(&trial.engine, &task, self.platform.clock.as_ref());
        trial.engine.submit(Work { ticket, task })?;
        loop {
            let computed = self.next_trial_result(trial).await?;
            if computed.ticket != ticket {
                continue;
            }
            return match computed.outcome {
                Outcome::Failed(sentence) => Err(CalibrateError::Failed(sentence)),
                Outcome::DeviceLost | Outcome::Cancelled => Err(EngineError::Lost.into()),
                _ => Ok(computed.millis + head_start),
            };
        }
    }

    async fn next_trial_result(&self, trial: &mut Trial) -> Result<Computed, CalibrateError> {
        let timeout = self.platform.clock.sleep(TIMEOUT);
        #[cfg(not(target_arch = "wasm32"))]
        let polling = {
            let (engine, own_engine) = (trial.engine.clone(), trial.own_engine);
            async move {
                // The driver polls the room's engine.
                if !own_engine {
                    return std::future::pending::<()>().await;
                }
                loop {
                    engine.poll_for(super::super::POLL_TIMEOUT);
                    tokio::task::yield_now().await;
                }
            }
        };
        #[cfg(target_arch = "wasm32")]
        let polling = std::future::pending::<()>();
        let polling = std::pin::pin!(polling);
        match select(trial.results.next(), select(polling, timeout)).await {
            Either::Left((Some(computed), _)) => Ok(computed),
            Either::Left((None, _)) => Err(CalibrateError::Busy),
            Either::Right(_) => Err(CalibrateError::Failed("the GPU takes too long for a few blocks".to_owned())),
        }
    }
}
