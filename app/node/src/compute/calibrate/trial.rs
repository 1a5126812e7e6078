//! Running timed work on an engine.

use std::cell::Cell;
use std::rc::Rc;

use futures::StreamExt;
use futures::channel::mpsc::UnboundedReceiver;
use futures::future::{Either, select};
use potluck_engine::{Engine, EngineError};
use potluck_plan::{
    BatchToken, BlockRange, Computed, ConversationId, Input, KernelClass, Outcome, Position, Task, Then, Ticket, Work,
};
use potluck_planner::measures::{MIN_RUNS, RUNS};

use super::error::CalibrateError;
use crate::compute::FIRST_TRIAL;
#[cfg(not(target_arch = "wasm32"))]
use crate::compute::room_engine::POLL_TIMEOUT;
use crate::compute::room_engine::RoomEngine;
use crate::platform::Platform;

/// How long to run before timing starts, in milliseconds: the clock of an idle GPU rises only under load.
const WARM_UP_MILLIS: f64 = 700.0;
/// Maximum repetitions, for fast devices, and the milliseconds after which they suffice.
const MAX_RUNS: usize = 25;
const ENOUGH_MILLIS: f64 = 150.0;
/// Milliseconds after which a piece of work counts as failed.
const TIMEOUT: f64 = 5_000.0;

/// An engine that is timed, and its results.
pub(super) struct Trial {
    pub platform: Platform,
    /// Pieces of work that were timed on this device.
    pub trials: Rc<Cell<u64>>,
    pub room: Rc<RoomEngine>,
    pub engine: Engine,
    pub results: UnboundedReceiver<Computed>,
    pub owner: EngineOwner,
}

/// Whose engine is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EngineOwner {
    /// The room's, which others use meanwhile.
    Room,
    /// One that was created for the trial.
    Trial,
}

impl Drop for Trial {
    fn drop(&mut self) {
        match self.owner {
            EngineOwner::Trial => self.engine.destroy(),
            EngineOwner::Room => self.engine.forget(ConversationId::TRIAL),
        }
    }
}

/// The first `count` tokens of a conversation, with zeros as hidden states of `width` floats, through some blocks.
pub(super) fn forward(class: KernelClass, count: u32, width: usize, blocks: BlockRange, then: Then) -> Task {
    let input = Input::Hidden(vec![0.0; width * count as usize]);
    let conversation = ConversationId::TRIAL;
    let batch = (0..count).map(|position| BatchToken { conversation, position: Position(position) }).collect();
    Task::Forward { batch, class, input, blocks, then, biases: Vec::new() }
}

impl Trial {
    /// Runs the tasks in turn, so that whatever else the device does meanwhile affects all of them alike. Returns the
    /// milliseconds of each, or `None` if the engine must make room for a load.
    ///
    /// # Errors
    /// The device is lost, or the work failed.
    pub async fn rounds(&mut self, tasks: &[Task], max_millis: f64) -> Result<Option<Vec<Vec<f64>>>, CalibrateError> {
        let started = self.platform.clock.now().0;
        let mut times = vec![Vec::new(); tasks.len()];
        for round in 0..MAX_RUNS {
            let spent = self.platform.clock.now().0 - started;
            let enough = round >= RUNS && spent >= ENOUGH_MILLIS;
            if enough || round >= MIN_RUNS && spent >= max_millis {
                break;
            }
            for (task, times) in tasks.iter().zip(&mut times) {
                if self.must_make_room() {
                    return Ok(None);
                }
                times.push(self.run_timed(task.clone()).await?);
            }
        }
        Ok(Some(times))
    }

    /// True if the trial has an engine of its own and a load began meanwhile.
    pub fn must_make_room(&self) -> bool {
        self.owner == EngineOwner::Trial && self.room.is_some()
    }

    /// Runs a task for a moment so that the GPU's clock rises.
    ///
    /// # Errors
    /// The device is lost, or the work failed.
    pub async fn warm_up(&mut self, task: &Task) -> Result<(), CalibrateError> {
        let started = self.platform.clock.now().0;
        while self.platform.clock.now().0 - started < WARM_UP_MILLIS {
            self.run_timed(task.clone()).await?;
        }
        Ok(())
    }

    /// Runs a task; returns its milliseconds.
    ///
    /// # Errors
    /// The device is lost, or the work failed.
    pub async fn run_timed(&mut self, task: Task) -> Result<f64, CalibrateError> {
        let number = self.trials.replace(self.trials.get() + 1);
        let ticket = Ticket(FIRST_TRIAL + number);
        self.platform.compute.submit(&self.engine, Work { ticket, task })?;
        loop {
            let computed = self.next_result().await?;
            if computed.ticket != ticket {
                continue;
            }
            return match computed.outcome {
                Outcome::Failed(sentence) => Err(CalibrateError::Failed(sentence)),
                Outcome::DeviceLost | Outcome::Cancelled => Err(EngineError::Lost.into()),
                _ => Ok(computed.millis),
            };
        }
    }

    async fn next_result(&mut self) -> Result<Computed, CalibrateError> {
        let timeout = self.platform.clock.sleep(TIMEOUT);
        #[cfg(not(target_arch = "wasm32"))]
        let polling = {
            let (engine, owner) = (self.engine.clone(), self.owner);
            async move {
                // The driver polls the room's engine.
                if owner == EngineOwner::Room {
                    return std::future::pending::<()>().await;
                }
                loop {
                    engine.poll_for(POLL_TIMEOUT);
                    tokio::task::yield_now().await;
                }
            }
        };
        #[cfg(target_arch = "wasm32")]
        let polling = std::future::pending::<()>();
        let polling = std::pin::pin!(polling);
        match select(self.results.next(), select(polling, timeout)).await {
            Either::Left((Some(computed), _)) => Ok(computed),
            Either::Left((None, _)) => Err(CalibrateError::Busy),
            Either::Right(_) => Err(CalibrateError::Failed("the GPU takes too long for a few blocks".to_owned())),
        }
    }
}
