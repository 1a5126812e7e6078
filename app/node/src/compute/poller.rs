//! A native GPU returns results only when polled.

use std::rc::Rc;

use futures::future::select;

use super::room_engine::{POLL_TIMEOUT, RoomEngine};
use super::shadow::Shadows;
use crate::platform::Clock;

/// How long waiting for a shadow's results, which nobody's answer waits for, may block everything else on this thread.
const SHADOW_POLL_TIMEOUT: std::time::Duration = std::time::Duration::from_micros(100);
/// How long an idle engine sleeps before it checks whether it was replaced.
const IDLE_MILLIS: f64 = 4.0;

/// Polls the engines of this device.
pub struct Poller {
    pub(super) clock: Rc<dyn Clock>,
    pub(super) room: Rc<RoomEngine>,
    pub(super) shadows: Rc<Shadows>,
}

impl Poller {
    /// Waits a moment for the engine's oldest work and delivers results. True while work is under way.
    pub fn poll(&self) -> bool {
        let shadow = self.shadows.engine();
        let base = self.room.engine().is_some_and(|engine| {
            engine.poll_for(POLL_TIMEOUT);
            engine.pending() > 0
        });
        shadow.is_some_and(|shadow| {
            shadow.poll_for(SHADOW_POLL_TIMEOUT);
            shadow.pending() > 0
        }) || base
    }

    /// Waits until the engine has work, or a few milliseconds.
    pub async fn busy(&self) {
        let idle = self.clock.sleep(IDLE_MILLIS);
        let Some(engine) = self.room.engine() else { return idle.await };
        let shadow = self.shadows.engine();
        let shadow_busy = async {
            match shadow {
                Some(shadow) => shadow.busy().await,
                None => std::future::pending().await,
            }
        };
        let (busy, shadow_busy) = (std::pin::pin!(engine.busy()), std::pin::pin!(shadow_busy));
        select(select(busy, shadow_busy), idle).await;
    }
}
