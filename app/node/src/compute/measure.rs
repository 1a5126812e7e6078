//! Measures what this device can do, for the planner.

use std::cell::Cell;
use std::rc::Rc;

use futures::StreamExt;
use futures::channel::mpsc;
use futures::future::{Either, select};
use potluck_engine::{Engine, Gpu};
use potluck_gguf::synthetic::Synthetic;
use potluck_plan::{
    BatchToken, BlockRange, Computed, ConversationId, Input as Start, KernelClass, Position, Task, Then, Ticket, Work,
};
use serde::{Deserialize, Serialize};

use super::device::{Device, adapter};
#[cfg(not(target_arch = "wasm32"))]
use super::room_engine::POLL_TIMEOUT;
use super::self_test::probe;
use super::tuning::KernelTuning;
use crate::blob::BlobKey;
pub use crate::platform::Measured;
use crate::platform::Platform;

/// Seconds for which a measurement is valid: thirty days.
pub(super) const MEASUREMENT_SECONDS: u64 = 30 * 86_400;
/// How many empty pieces of work are timed to measure a submission with its readback.
const SYNC_SAMPLES: usize = 5;
/// Assumed if it cannot be measured, in milliseconds.
const SYNC_MILLIS: f64 = 3.0;

/// A stored measurement. The next visit must lead to the same plan: another split of the blocks would mean other downloads.
#[derive(Serialize, Deserialize)]
struct StoredMeasurement {
    adapter: String,
    build: String,
    unix_seconds: u64,
    measured: Measured,
}

/// Measures this device, once while its GPU is open.
pub struct Measurement {
    platform: Platform,
    device: Rc<Device>,
    tuning: Rc<KernelTuning>,
    measured: Cell<Option<Measured>>,
}

impl Measurement {
    /// Nothing is measured yet.
    pub(super) fn new(platform: Platform, device: Rc<Device>, tuning: Rc<KernelTuning>) -> Self {
        Self { platform, device, tuning, measured: Cell::default() }
    }

    /// What was measured.
    pub(super) fn known(&self) -> Option<Measured> {
        self.measured.get()
    }

    /// The GPU was closed.
    pub(super) fn forget(&self) {
        self.measured.set(None);
    }

    /// What this device can do; measured once per device and build, and stored between visits.
    ///
    /// # Errors
    /// A sentence: there is no GPU, or it failed.
    pub async fn measure(&self) -> Result<Measured, String> {
        if let Some(measured) = self.measured.get() {
            return Ok(measured);
        }
        let gpu = self.device.gpu().ok_or_else(|| self.device.no_gpu())?;
        self.tuning.recall().await;
        let adapter = adapter(gpu.capabilities());
        let measured = match self.stored_measurement(&adapter).await {
            Some(measured) => measured,
            None => {
                let measured = self.measure_now(&gpu).await?;
                self.store_measurement(adapter, measured).await;
                measured
            }
        };
        let measured = self.platform.compute.measured(measured);
        self.measured.set(Some(measured));
        Ok(measured)
    }

    async fn stored_measurement(&self, adapter: &str) -> Option<Measured> {
        let store = &self.platform.store;
        let len = store.len(BlobKey::DEVICE).await.ok().filter(|len| *len > 0)?;
        let json = store.read(BlobKey::DEVICE, 0, len).await.ok()?;
        let stored: StoredMeasurement = serde_json::from_slice(&json).ok()?;
        let age = self.platform.clock.unix_seconds().saturating_sub(stored.unix_seconds);
        let same = stored.adapter == adapter && stored.build == potluck_panel::BUILD;
        (same && age < MEASUREMENT_SECONDS).then_some(stored.measured)
    }

    /// Best effort: without it the next visit measures again.
    async fn store_measurement(&self, adapter: String, measured: Measured) {
        let unix_seconds = self.platform.clock.unix_seconds();
        let stored = StoredMeasurement { adapter, build: potluck_panel::BUILD.to_owned(), unix_seconds, measured };
        let Ok(json) = serde_json::to_vec(&stored) else { return };
        let store = &self.platform.store;
        let result = match store.delete(BlobKey::DEVICE).await {
            Ok(()) => store.append(BlobKey::DEVICE, 0, json).await,
            Err(error) => Err(error),
        };
        if let Err(error) = result {
            log::info!("the measurement cannot be stored: {error}");
        }
    }

    async fn measure_now(&self, gpu: &Gpu) -> Result<Measured, String> {
        let (results, mut answers) = mpsc::unbounded();
        let probe = probe(gpu, move |computed| {
            // The receiver lives as long as the probe.
            let _ = results.unbounded_send(computed);
        })?;
        let bandwidth = probe.bandwidth().await.map_err(|error| error.to_string())? * 1e9;
        let mut waits = Vec::new();
        for ticket in 0..SYNC_SAMPLES {
            if probe.submit(empty_work(ticket as u64)).is_err() {
                break;
            }
            let Some(computed) = self.next_result(&probe, &mut answers).await else { break };
            waits.push(computed.millis);
        }
        probe.destroy();
        waits.sort_by(f64::total_cmp);
        let sync_millis = waits.get(waits.len() / 2).copied().unwrap_or(SYNC_MILLIS);
        Ok(Measured { bandwidth, sync_millis })
    }

    async fn next_result(&self, probe: &Engine, answers: &mut mpsc::UnboundedReceiver<Computed>) -> Option<Computed> {
        let waiting = async {
            loop {
                #[cfg(not(target_arch = "wasm32"))]
                probe.poll_for(POLL_TIMEOUT);
                #[cfg(target_arch = "wasm32")]
                probe.poll();
                self.platform.clock.sleep(1.0).await;
            }
        };
        let timeout = self.platform.clock.sleep(2_000.0);
        let waiting = std::pin::pin!(waiting);
        match select(answers.next(), select(waiting, timeout)).await {
            Either::Left((computed, _)) => computed,
            Either::Right(_) => None,
        }
    }
}

/// One token through no block at all: a submission and a readback.
fn empty_work(ticket: u64) -> Work {
    let hidden = Synthetic::default().hidden as usize;
    let task = Task::Forward {
        batch: vec![BatchToken { conversation: ConversationId(0), position: Position(0) }],
        class: KernelClass::Decode,
        input: Start::Hidden(vec![0.0; hidden]),
        blocks: BlockRange::new(0, 0),
        then: Then::Hidden,
        biases: Vec::new(),
    };
    Work { ticket: Ticket(ticket), task }
}
