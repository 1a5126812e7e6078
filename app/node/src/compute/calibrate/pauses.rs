//! Times tokens after pauses: a GPU that waits for other devices lowers its clock, unless a keep-alive keeps it busy.

use potluck_engine::AdapterKind;
use potluck_plan::Task;
use potluck_planner::measures::typical;
use potluck_protocol::CalibrationRuns;

use super::error::CalibrateError;
use super::trial::Trial;
use crate::compute::keep_alive::{KeepAlive, MIN_SPEEDUP, TOKEN_MILLIS};

/// Milliseconds without work before a token (what a stage waits while others compute and hidden states travel), and for how
/// many milliseconds such tokens are timed. A clock drops after about two seconds of low load, and each series begins with the
/// clock of the one before.
const PAUSES: [(f64, f64); 3] = [(10.0, 3_600.0), (30.0, 4_200.0), (90.0, 2_700.0)];
/// How long tokens are timed after each pause with a keep-alive, in milliseconds: the clock rises within one second.
const KEEP_ALIVE_MILLIS: f64 = 1_800.0;

/// What the GPU does between two tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meanwhile {
    Idle,
    KeepAlive,
}

/// Times tokens after pauses, with a keep-alive if that makes them faster.
///
/// # Errors
/// The device is lost, or the work failed.
pub(super) async fn time_pauses(
    trial: &mut Trial,
    keep_alive: &KeepAlive,
    tokens: &[Task],
    mut runs: CalibrationRuns,
) -> Result<Option<CalibrationRuns>, CalibrateError> {
    let mut pauses = Pauses { trial, keep_alive };
    let mut meanwhile = Meanwhile::Idle;
    for (index, (pause, duration)) in PAUSES.into_iter().enumerate() {
        let middle = index == CalibrationRuns::middle_pause(PAUSES.len());
        let tasks = if middle { tokens } else { &tokens[..1] };
        let duration = if meanwhile == Meanwhile::KeepAlive { KEEP_ALIVE_MILLIS } else { duration };
        let Some(mut times) = pauses.after_pauses(tasks, pause, duration, meanwhile).await? else {
            return Ok(None);
        };
        if index == 0 && pauses.has_clock() {
            let with_keep_alive = pauses.after_pauses(tasks, pause, KEEP_ALIVE_MILLIS, Meanwhile::KeepAlive).await?;
            let Some(with_keep_alive) = with_keep_alive else { return Ok(None) };
            if settled_millis(&times[0]) > MIN_SPEEDUP * settled_millis(&with_keep_alive[0]) {
                (meanwhile, times) = (Meanwhile::KeepAlive, with_keep_alive);
            }
        }
        let mut times = times.into_iter();
        runs.decode_paused.push((pause, times.next().unwrap_or_default()));
        if middle {
            runs.short_paused = times.next().unwrap_or_default();
            runs.lm_head_paused = times.next().unwrap_or_default();
        }
    }
    keep_alive.set_enabled(meanwhile == Meanwhile::KeepAlive);
    Ok(Some(runs))
}

/// Timing after pauses.
struct Pauses<'a> {
    trial: &'a mut Trial,
    keep_alive: &'a KeepAlive,
}

impl Pauses<'_> {
    /// False for adapters that compute on the CPU: a keep-alive would only take its cores.
    fn has_clock(&self) -> bool {
        self.keep_alive.device().gpu().is_some_and(|gpu| gpu.capabilities().kind != AdapterKind::Software)
    }

    /// Runs tasks in turn for `duration` milliseconds, each after a pause. While the engine has other work
    /// nothing is timed.
    async fn after_pauses(
        &mut self,
        tasks: &[Task],
        pause: f64,
        duration: f64,
        meanwhile: Meanwhile,
    ) -> Result<Option<Vec<Vec<f64>>>, CalibrateError> {
        let started = self.trial.platform.clock.now().0;
        let mut times = vec![Vec::new(); tasks.len()];
        while self.trial.platform.clock.now().0 - started < duration {
            for (task, times) in tasks.iter().zip(&mut times) {
                self.pause(pause, meanwhile).await;
                if self.trial.must_make_room() {
                    return Ok(None);
                }
                if self.trial.engine.pending() == 0 {
                    times.push(self.trial.run_timed(task.clone()).await?);
                }
            }
        }
        // The next series may be one without a keep-alive.
        self.keep_alive.stop();
        Ok(Some(times))
    }

    /// Pauses. A keep-alive may be in the middle of its work at the end, as it is when a token arrives from another device.
    async fn pause(&self, millis: f64, meanwhile: Meanwhile) {
        if let Some(gpu) = self.keep_alive.device().gpu().filter(|_| meanwhile == Meanwhile::KeepAlive) {
            // It lasts through the token that follows; if it ended just before, it could not delay the token.
            gpu.keep_alive(millis + TOKEN_MILLIS);
        }
        self.trial.platform.clock.sleep(millis).await;
    }
}

/// Milliseconds of a token once the clock has settled: the median of the last third.
fn settled_millis(times: &[f64]) -> f64 {
    typical(&times[times.len() * 2 / 3..])
}
