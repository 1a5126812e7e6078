//! Measures this device, and contributes it.

use potluck_panel::NoticeLevel;
use potluck_plan::Bytes;
use potluck_protocol::Contribution;
use potluck_swarm::Event;

use super::{Input, Node};
use crate::compute::Measured;

impl Node {
    /// Measures this device and then contributes `budget` bytes. If its GPU is being reopened, that happens afterwards.
    pub(super) fn contribute(&mut self, budget: u64) {
        let Some(generation) = self.contribution.offer(Bytes(budget)) else { return };
        let (compute, inputs) = (self.compute.clone(), self.inputs.clone());
        self.platform.spawn.spawn(Box::pin(async move {
            inputs.send(Input::Measured(generation, compute.measurement.measure().await));
        }));
    }

    pub(super) fn measured(&mut self, generation: u64, measured: Result<Measured, String>) {
        let Some(budget) = self.contribution.measured(generation) else { return };
        match measured {
            Ok(measured) => {
                self.contribution.made_with(measured);
                self.lend(budget, measured);
            }
            // The loss is told once, and the contribution is measured again when the GPU is back.
            Err(_) if self.compute.device.lost() => self.device_lost(),
            Err(sentence) => self.notice(NoticeLevel::Error, sentence),
        }
    }

    /// Lends `budget` bytes, less what a shadow takes of them.
    fn lend(&mut self, budget: Bytes, Measured { bandwidth, sync_millis }: Measured) {
        let budget = budget.saturating_sub(self.shadow_bytes(budget));
        let binding = self.compute.device.binding().unwrap_or(Bytes(u64::MAX));
        self.event(Event::Contribute(Contribution { budget, binding, bandwidth, sync_millis }));
    }

    /// The hosted model is open, so it is known what a shadow of it takes.
    pub(super) fn lend_beside_shadow(&mut self) {
        if let Some((budget, measured)) = self.contribution.made().filter(|_| self.guessers.chose_own_shadow()) {
            self.lend(budget, measured);
        }
    }
}
