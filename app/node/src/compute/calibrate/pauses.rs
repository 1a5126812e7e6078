//! Timing rows after pauses: a GPU that waits for other devices lowers its clock, unless it is kept warm meanwhile.

use potluck_engine::AdapterKind;
use potluck_plan::Task;
use potluck_planner::measures::typical;
use potluck_protocol::CalibrationRuns;

use super::super::Compute;
use super::super::warmth::{LASTING, WORTH};
use super::{CalibrateError, Trial};

/// Milliseconds without work before a row: what a stage waits while others compute, and while rows are on their way; and how
/// many milliseconds such rows are timed. A clock falls after about two seconds of little use, and the later series begin with
/// the clock of the one before.
const PAUSES: [(f64, f64); 3] = [(10.0, 3_600.0), (30.0, 4_200.0), (90.0, 2_700.0)];
/// So long rows are timed after each pause where the GPU is kept warm meanwhile, milliseconds: its clock rises within one second.
const WARM_MILLIS: f64 = 1_800.0;

/// What becomes of the GPU between two rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meanwhile {
    /// Nothing.
    Alone,
    /// It is kept warm.
    Warm,
}

impl Compute {
    /// Times rows after pauses: on a GPU that is left alone, or kept warm where that is worth it.
    pub(super) async fn time_pauses(
        &self,
        trial: &mut Trial,
        rows: &[Task],
        mut runs: CalibrationRuns,
    ) -> Result<Option<CalibrationRuns>, CalibrateError> {
        let mut meanwhile = Meanwhile::Alone;
        for (index, (pause, lasting)) in PAUSES.into_iter().enumerate() {
            let middle = index == CalibrationRuns::middle_pause(PAUSES.len());
            let tasks = if middle { rows } else { &rows[..1] };
            let lasting = if meanwhile == Meanwhile::Warm { WARM_MILLIS } else { lasting };
            let Some(mut times) = self.after_pauses(trial, tasks, pause, lasting, meanwhile).await? else {
                return Ok(None);
            };
            if index == 0 && self.has_clock() {
                let kept = self.after_pauses(trial, tasks, pause, WARM_MILLIS, Meanwhile::Warm).await?;
                let Some(kept) = kept else { return Ok(None) };
                if settled(&times[0]) > WORTH * settled(&kept[0]) {
                    (meanwhile, times) = (Meanwhile::Warm, kept);
                }
            }
            let mut times = times.into_iter();
            runs.decode_paused.push((pause, times.next().unwrap_or_default()));
            if middle {
                runs.short_paused = times.next().unwrap_or_default();
                runs.lm_head_paused = times.next().unwrap_or_default();
            }
        }
        self.warmth.pays(meanwhile == Meanwhile::Warm);
        Ok(Some(runs))
    }

    /// False for adapters that compute on the processor: what keeps a GPU warm would only take its cores.
    fn has_clock(&self) -> bool {
        let gpu = self.gpu.borrow();
        gpu.as_ref().is_some_and(|gpu| gpu.capabilities().kind != AdapterKind::Software)
    }

    /// Runs tasks in turn for `lasting` milliseconds, each time after a pause, in which the GPU is kept warm or left
    /// alone. While the engine has other work to do nothing is timed.
    async fn after_pauses(
        &self,
        trial: &mut Trial,
        tasks: &[Task],
        pause: f64,
        lasting: f64,
        meanwhile: Meanwhile,
    ) -> Result<Option<Vec<Vec<f64>>>, CalibrateError> {
        let started = self.platform.clock.now().0;
        let mut times = vec![Vec::new(); tasks.len()];
        while self.platform.clock.now().0 - started < lasting {
            for (task, times) in tasks.iter().zip(&mut times) {
                self.rest(pause, meanwhile).await;
                if trial.own && self.slot.borrow().is_some() {
                    return Ok(None);
                }
                if trial.engine.pending() == 0 {
                    times.push(self.run(trial, task.clone()).await?);
                }
            }
        }
        // The next series may be one without.
        self.end_warming();
        Ok(Some(times))
    }

    /// Lets time pass without rows, the GPU kept warm meanwhile or left alone. It may be in the middle of that at the end, as it is
    /// when a row comes from elsewhere.
    async fn rest(&self, millis: f64, meanwhile: Meanwhile) {
        let gpu = self.gpu.borrow().clone().filter(|_| meanwhile == Meanwhile::Warm);
        if let Some(gpu) = gpu {
            // Through the row that follows: what ends just before it would not be in its way.
            gpu.keep_alive(millis + LASTING);
        }
        self.platform.clock.sleep(millis).await;
    }
}

/// What rows take once the clock has settled: the median of their last third.
fn settled(times: &[f64]) -> f64 {
    typical(&times[times.len() * 2 / 3..])
}
