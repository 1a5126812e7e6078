//! Losing the GPU, and opening it again.

use potluck_panel::{Condition, NoticeLevel};
use potluck_swarm::Event;

use super::{Input, Node};

impl Node {
    /// Every piece of work under way reports a lost device; the first report counts. Until the GPU is open again this peer
    /// contributes nothing, so that no plan uses it and no load of its own fails for lack of a GPU.
    pub(super) fn device_lost(&mut self) {
        if !self.compute.device.lost() {
            return;
        }
        let Some(contributes) = self.contribution.gpu_lost() else { return };
        self.tasks.abort_load();
        self.compute.close();
        if contributes {
            let sentence = "This device's GPU was lost. It is being opened again, then its part is loaded again.";
            self.warn_while(Condition::GpuLost, sentence.to_owned());
            self.event(Event::DeviceLost(sentence.to_owned()));
            self.event(Event::StopContributing);
        }
        self.page.mark_changed();
        let (compute, inputs) = (self.compute.clone(), self.inputs.clone());
        self.platform.spawn.spawn(Box::pin(async move {
            compute.device.reopen().await;
            inputs.send(Input::GpuReopened);
        }));
    }

    /// Contributes again what it contributed before.
    pub(super) fn gpu_reopened(&mut self) {
        let trouble = self.compute.report().trouble;
        let budget = self.contribution.gpu_reopened(trouble.is_some());
        self.page.mark_changed();
        match (trouble, budget) {
            (Some(trouble), budget) => {
                let consequence = if budget.is_some() { " This device no longer contributes." } else { "" };
                let sentence = format!("The GPU did not come back. {trouble}{consequence}");
                self.notice_of(NoticeLevel::Error, sentence, Some(Condition::GpuLost));
            }
            (None, Some(budget)) => self.contribute(budget.0),
            (None, None) => {}
        }
    }
}
