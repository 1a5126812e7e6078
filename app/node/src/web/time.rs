//! Time and tasks in a page or a worker.

use futures::future::LocalBoxFuture;
use js_sys::Promise;
use potluck_plan::Millis;
use wasm_bindgen_futures::JsFuture;

use super::js;
use crate::platform::{Clock, Spawn};

/// Resolves after so many milliseconds.
pub async fn pause_for(millis: i32) {
    let promise = Promise::new(&mut |resolve, _| {
        if js::call(&js_sys::global(), "setTimeout", &[&resolve, &millis.into()]).is_err() {
            log::error!("this browser gives no timers");
        }
    });
    // A timer is never rejected.
    let _ = JsFuture::from(promise).await;
}

/// The clock of the worker.
pub struct WorkerClock;

impl Clock for WorkerClock {
    fn now(&self) -> Millis {
        // Every worker has a performance object; without one the wall clock does.
        Millis(js::worker().performance().map_or_else(js_sys::Date::now, |performance| performance.now()))
    }

    fn unix_seconds(&self) -> u64 {
        (js_sys::Date::now() / 1000.0) as u64
    }

    fn sleep(&self, millis: f64) -> LocalBoxFuture<'static, ()> {
        Box::pin(async move {
            pause_for(millis.clamp(0.0, f64::from(i32::MAX)) as i32).await;
        })
    }
}

/// Tasks of the worker.
pub struct WorkerSpawn;

impl Spawn for WorkerSpawn {
    fn spawn(&self, task: LocalBoxFuture<'static, ()>) {
        wasm_bindgen_futures::spawn_local(task);
    }
}
