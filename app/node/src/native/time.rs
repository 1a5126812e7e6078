//! Time and tasks, by tokio.

use std::time::{Duration, Instant, SystemTime};

use futures::future::LocalBoxFuture;
use potluck_plan::Millis;

use crate::platform::{Clock, Spawn};

/// The monotonic clock, from the node's start.
pub struct MonotonicClock(Instant);

impl Default for MonotonicClock {
    fn default() -> Self {
        Self(Instant::now())
    }
}

impl Clock for MonotonicClock {
    fn now(&self) -> Millis {
        Millis(self.0.elapsed().as_secs_f64() * 1000.0)
    }

    fn unix_seconds(&self) -> u64 {
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
    }

    fn sleep(&self, millis: f64) -> LocalBoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(Duration::from_secs_f64(millis.max(0.0) / 1000.0)))
    }
}

/// Tasks of the current `LocalSet`.
pub struct LocalSpawn;

impl Spawn for LocalSpawn {
    fn spawn(&self, task: LocalBoxFuture<'static, ()>) {
        tokio::task::spawn_local(task);
    }
}
