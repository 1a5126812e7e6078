//! Annotations on the world's timeline.

use potluck_panel::MarkKind;
use potluck_protocol::PlanStatus;

use super::fault::Fault;
use super::world::World;

impl World {
    pub(super) fn annotate_entry(&mut self, index: usize) {
        let name = self.peers[index].name();
        self.timeline.mark(self.now, MarkKind::Join, format!("{name} enters"));
    }

    pub(super) fn annotate(&mut self, fault: Fault) {
        let device = fault.device().or_else(|| self.host_now().filter(|_| fault == Fault::KillHost));
        let name = device.map_or_else(|| "The relay".to_owned(), |index| self.peers[index].name());
        let (kind, what) = match fault {
            Fault::Kill(_) | Fault::KillHost => (MarkKind::Leave, "is killed"),
            Fault::Vanish(_) => (MarkKind::Leave, "vanishes"),
            Fault::Reload(..) => (MarkKind::Leave, "is reloaded"),
            Fault::Outage(..) => (MarkKind::Leave, "loses its line"),
            Fault::RelayRestart(_) => (MarkKind::Leave, "restarts"),
            Fault::DeviceLost(_) => (MarkKind::Leave, "loses its GPU"),
            Fault::Freeze(..) => (MarkKind::Pause, "stands still"),
            Fault::Cut(..) => (MarkKind::Pause, "is cut off"),
            Fault::Slow(_, factor) if factor > 1.0 => (MarkKind::Pause, "slows down"),
            Fault::Slow(..) => (MarkKind::Join, "is at full speed again"),
            Fault::Wrong(..) => (MarkKind::Pause, "computes wrongly"),
            Fault::StopContributing(_) => (MarkKind::Leave, "stops lending"),
            Fault::SetBudget(..) => (MarkKind::Join, "lends another amount"),
            Fault::ContributeAgain(_) => (MarkKind::Join, "lends again"),
            Fault::Leave(_) => (MarkKind::Leave, "leaves"),
            Fault::CloseForNow(_) => (MarkKind::Leave, "closes the room for now"),
            Fault::Forge(..) => (MarkKind::Pause, "forges frames"),
            Fault::StuckLoad(_) | Fault::Trickle(_) => (MarkKind::Pause, "loads for ever"),
            Fault::Sharing(_) => (MarkKind::Plan, "wants the work shared otherwise"),
        };
        self.timeline.mark(self.now, kind, format!("{name} {what}"));
    }

    /// The host's plan, when it changed.
    pub(super) fn annotate_plan(&mut self) {
        let Some(room) = self.peers[0].machine.view().room else { return };
        let Some(plan) = room.plan.plan.as_ref() else {
            if self.shown_plan.take().is_some() {
                self.timeline.mark(self.now, MarkKind::Plan, "no plan".to_owned());
            }
            return;
        };
        let shown = (plan.epoch, room.plan.status == PlanStatus::Up);
        if !shown.1 || self.shown_plan == Some(shown) {
            return;
        }
        let stages = plan.stages.iter().map(|stage| format!("{}: {}", stage.peer.0[0], stage.blocks.len()));
        let stages = stages.collect::<Vec<_>>().join(", ");
        self.shown_plan = Some(shown);
        self.timeline.mark(self.now, MarkKind::Plan, format!("plan {} ({stages})", shown.0.0));
    }
}
