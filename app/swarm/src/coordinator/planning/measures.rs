//! What the planner is told of the members: what they promise, corrected by what was measured.

use std::collections::BTreeSet;

use potluck_plan::{BlockIndex, Bytes, Millis, PeerId, PlanEpoch};
use potluck_planner::Device;

use super::Planning;
use super::question::Question;
use crate::event::{HostCommand, OpenedModel};
use crate::members::{Member, Members};

/// A stage that takes so many times as long as expected, or so many times less, is worth another plan.
const DRIFT: f64 = 2.0;
/// It must do so for a while: a first token is slow, and devices are busy now and then.
const DRIFT_MILLIS: f64 = 4_000.0;
/// Measured speeds are believed within these bounds.
const PACES: (f64, f64) = (0.2, 50.0);

impl Planning {
    /// Everyone who can be given work; `pace`: so many times as long as it promised a device takes.
    pub(super) fn devices(&self, members: &Members, pace: impl Fn(&Member) -> f64) -> Vec<Device> {
        let lending = members.known.iter().filter(|(_, member)| member.lends());
        lending
            .filter_map(|(peer, member)| {
                let contribution = member.hello.contribution.as_ref()?;
                let pace = pace(member);
                let budget = Bytes((contribution.budget.0 as f64 * member.trust) as u64);
                let (bandwidth, sync_millis) = (contribution.bandwidth / pace, contribution.sync_millis * pace);
                let mut device = Device::declared(*peer, budget, bandwidth, sync_millis);
                device.holds = self.held_blocks(*peer);
                device.presence.hidden = member.hello.hidden;
                Some(device)
            })
            .collect()
    }

    fn held_blocks(&self, peer: PeerId) -> BTreeSet<BlockIndex> {
        let active = self.active.iter().map(|active| &active.planned);
        let plans = active.chain(self.inactive.iter().map(|inactive| &inactive.planned));
        let stages = plans.flat_map(|planned| &planned.plan.stages).filter(|stage| stage.peer == peer);
        stages.flat_map(|stage| stage.blocks.iter()).collect()
    }

    /// Compares the stages of the active plan with what their devices promised. True if one drifted far from what the
    /// plan was made with.
    pub(super) fn learn_paces(
        &self,
        model: &OpenedModel,
        command: &HostCommand,
        members: &mut Members,
        now: Millis,
    ) -> bool {
        let Some(plan) = self.up() else { return false };
        let promised = self.devices(members, |_| 1.0);
        let question = Question::new(model, command, promised, members);
        let stage_millis = potluck_planner::predict(&question.room(PlanEpoch::default()), plan).stage_millis();
        let mut drifted = false;
        for (stage, promised) in plan.stages.iter().zip(stage_millis) {
            let alone = plan.stages.iter().filter(|other| other.peer == stage.peer).count() == 1;
            let Some(member) = members.known.get_mut(&stage.peer).filter(|_| alone && stage.remote.is_empty()) else {
                continue;
            };
            let measured = member.status.decode_millis;
            if measured <= 0.0 || promised <= 0.0 || member.status.prepared != Some(plan.epoch) {
                continue;
            }
            let pace = (measured / promised).clamp(PACES.0, PACES.1);
            if (1.0 / DRIFT..=DRIFT).contains(&(pace / member.pace)) {
                member.drifts_since = None;
            } else if now.0 - member.drifts_since.get_or_insert(now).0 >= DRIFT_MILLIS {
                member.drifts_since = None;
                member.pace = pace;
                drifted = true;
            }
        }
        drifted
    }
}
