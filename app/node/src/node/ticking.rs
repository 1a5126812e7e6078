//! Time for the state machine, and for a GPU that has to be polled.

#[cfg(not(target_arch = "wasm32"))]
use std::rc::Rc;

use potluck_plan::Millis;
use potluck_swarm::Event;

use super::Node;

/// Milliseconds between two ticks.
const TICK_MILLIS: f64 = 200.0;

impl Node {
    pub(super) fn start_ticking(&self) {
        let (clock, inputs) = (self.platform.clock.clone(), self.inputs.clone());
        self.platform.spawn.spawn(Box::pin(async move {
            while inputs.is_open() {
                inputs.event(Event::Tick);
                clock.sleep(TICK_MILLIS).await;
            }
        }));
        // A native GPU returns results only when polled; in a browser they arrive by themselves.
        #[cfg(not(target_arch = "wasm32"))]
        {
            let compute = Rc::downgrade(&self.compute);
            self.platform.spawn.spawn(Box::pin(async move {
                while let Some(compute) = compute.upgrade() {
                    if compute.poller.poll() {
                        // Let others run: frames, ticks, and the work that follows from a result.
                        tokio::task::yield_now().await;
                    } else {
                        compute.poller.busy().await;
                    }
                }
            }));
        }
    }

    /// Sends the state machine a wake-up at this time of the clock.
    pub(super) fn wake_at(&self, at: Millis) {
        let (clock, inputs) = (self.platform.clock.clone(), self.inputs.clone());
        self.platform.spawn.spawn(Box::pin(async move {
            clock.sleep((at.0 - clock.now().0).max(0.0)).await;
            inputs.event(Event::Wake);
        }));
    }
}
