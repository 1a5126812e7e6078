//! Who may send what. Every frame from another peer passes [`may`] before any state machine sees it; the sender is the
//! one that its session has proved.

use potluck_plan::{ExpertHolder, PeerId, Plan, PlanEpoch, StageId};
use potluck_protocol::{
    ExpertCall, Frame, Hold, LogitsResult, Residency, RowHashes, Rows, RowsRequest, StageFault, StageFaultKind,
};

use crate::mutation::{Mutation, has_mutation};

/// What the room is to a sender. What work it has, the plans say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SenderRole {
    /// Not let in, or not yet.
    Stranger,
    /// Let in by the host to ask questions.
    Chatter,
    /// Let in by the host. It may ask questions, and works for the plans that name it.
    Member,
    /// Owns the room.
    Host,
}

/// Why a frame is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The host has not let the sender in.
    NotAdmitted,
    /// The host let the sender in to chat only.
    ChatsOnly,
    /// Only the host says that.
    NotTheHost,
    /// It was sent to the host, and this peer is not.
    NotHosting,
    /// No plan of this epoch runs here: it is an old one's, or nobody's.
    NoSuchPlan,
    /// The plan gives the sender another part.
    NotItsPart,
    /// Nobody asked the sender for it.
    NotAsked,
}

/// The plans as far as they say who may send what.
pub(crate) trait Plans {
    /// This peer.
    fn me(&self) -> PeerId;
    /// This peer is the host.
    fn hosts(&self) -> bool;
    /// The plan of this epoch that this device computes for, or is ready to.
    fn on_device(&self, epoch: PlanEpoch) -> Option<&Plan>;
    /// The plan of this epoch whose results the coordinator here waits for.
    fn in_room(&self, epoch: PlanEpoch) -> Option<&Plan>;
    /// This device waits for the holder's answer to this call.
    fn awaits_result(&self, epoch: PlanEpoch, call: u64, holder: PeerId) -> bool;
}

/// Decides whether a frame of another peer is heard.
///
/// # Errors
/// Why not. The frame is dropped; whose numbers are wrong is decided later, and only among those that get this far.
pub(crate) fn may(from: PeerId, role: SenderRole, plans: &impl Plans, frame: &Frame) -> Result<(), Refusal> {
    match frame {
        // Before it is let in, a peer talks to the host: who it is, and how far away.
        Frame::Hello(_) | Frame::Heartbeat { .. } | Frame::HeartbeatBack { .. } | Frame::Bye if plans.hosts() => Ok(()),
        // Whoever only chats has sessions with nobody else.
        Frame::Probe { .. } | Frame::Unknown if plans.hosts() => chatter(role),
        Frame::Hello(_)
        | Frame::Heartbeat { .. }
        | Frame::HeartbeatBack { .. }
        | Frame::Bye
        | Frame::Probe { .. }
        | Frame::Unknown => member(role),
        // Orders and answers.
        Frame::Refused(_)
        | Frame::Room(_)
        | Frame::RoomUpdate(..)
        | Frame::Closed(_)
        | Frame::Checkers(_)
        | Frame::Calibrate(_)
        | Frame::Prepare(_)
        | Frame::Commit(_)
        | Frame::Abandon(_)
        | Frame::StandBy(_)
        | Frame::Expect
        | Frame::Answer(..)
        | Frame::Deputy(_)
        | Frame::Follow(_)
        | Frame::Piece { .. } => host(role),
        // Reports and questions. The coordinator knows from whom it awaits a report, and whose question it is.
        Frame::Writing | Frame::Prompt(_) | Frame::Resume(..) | Frame::Stop(_) => {
            if plans.hosts() {
                chatter(role)
            } else {
                Err(Refusal::NotHosting)
            }
        }
        Frame::Calibrated(..)
        | Frame::Prepared(_)
        | Frame::PrepareFailed(..)
        | Frame::Committed(_)
        | Frame::PieceRequest(_) => to_host(role, plans),
        // The connection to the room keeps these for itself.
        Frame::Signal(_) => Err(Refusal::NotAsked),
        // A token on its way.
        Frame::Forward(forward) => {
            member(role)?;
            let plan = plans.on_device(forward.epoch).ok_or(Refusal::NoSuchPlan)?;
            // Where a deliberate bug takes old rows for new ones, it takes them from whoever has them.
            its_part(has_mutation(Mutation::StaleEpoch) || hands_to(plan, from, role, forward.stage, plans.me()))
        }
        Frame::ExpertCall(call) => {
            member(role)?;
            let plan = plans.on_device(call.epoch).ok_or(Refusal::NoSuchPlan)?;
            its_part(calls(plan, from, call))
        }
        // Nothing happens unless it is the sender's own call.
        Frame::ExpertCancel(cancel) => {
            member(role)?;
            let plan = plans.on_device(cancel.epoch).ok_or(Refusal::NoSuchPlan)?;
            its_part(plan.stages.iter().any(|stage| stage.peer == from && !stage.remote.is_empty()))
        }
        // Loads nothing but what the plan names this device for.
        Frame::ExpertHint(hint) => {
            member(role)?;
            let plan = plans.on_device(hint.epoch).ok_or(Refusal::NoSuchPlan)?;
            its_part(plan.stages.iter().any(|stage| stage.peer == from && !stage.remote.is_empty()))
        }
        Frame::ExpertResult(result) => {
            member(role)?;
            plans.awaits_result(result.epoch, result.call, from).then_some(()).ok_or(Refusal::NotAsked)
        }
        // Where experts lie is the host's decision, about the plan that computes here.
        Frame::Residency(Residency { epoch, .. }) | Frame::Hold(Hold { epoch, .. }) => {
            host(role)?;
            plans.on_device(*epoch).map(|_| ()).ok_or(Refusal::NoSuchPlan)
        }
        Frame::Holding(holding) => {
            to_host(role, plans)?;
            plans.in_room(holding.epoch).map(|_| ()).ok_or(Refusal::NoSuchPlan)
        }
        // Only the host checks, and a stage shows only its own work.
        Frame::CommitRows(range) | Frame::RowsRequest(RowsRequest { range, .. }) => {
            host(role)?;
            let plan = plans.on_device(range.epoch).ok_or(Refusal::NoSuchPlan)?;
            its_part(plan.stage(range.stage).is_some_and(|(_, stage)| stage.peer == plans.me()))
        }
        Frame::RowHashes(RowHashes { range, .. }) | Frame::Rows(Rows { request: RowsRequest { range, .. }, .. }) => {
            to_host(role, plans)?;
            let plan = plans.in_room(range.epoch).ok_or(Refusal::NoSuchPlan)?;
            its_part(plan.stage(range.stage).is_some_and(|(_, stage)| stage.peer == from))
        }
        Frame::LogitsResult(LogitsResult { epoch, .. }) => {
            to_host(role, plans)?;
            let plan = plans.in_room(*epoch).ok_or(Refusal::NoSuchPlan)?;
            its_part(plan.stages.last().is_some_and(|last| last.peer == from))
        }
        Frame::StageFault(fault) => {
            to_host(role, plans)?;
            let plan = plans.in_room(fault.epoch).ok_or(Refusal::NoSuchPlan)?;
            its_part(reports(plan, from, fault))
        }
    }
}

fn chatter(role: SenderRole) -> Result<(), Refusal> {
    (role >= SenderRole::Chatter).then_some(()).ok_or(Refusal::NotAdmitted)
}

fn member(role: SenderRole) -> Result<(), Refusal> {
    match role {
        SenderRole::Stranger => Err(Refusal::NotAdmitted),
        SenderRole::Chatter => Err(Refusal::ChatsOnly),
        SenderRole::Member | SenderRole::Host => Ok(()),
    }
}

fn host(role: SenderRole) -> Result<(), Refusal> {
    (role == SenderRole::Host).then_some(()).ok_or(Refusal::NotTheHost)
}

fn to_host(role: SenderRole, plans: &impl Plans) -> Result<(), Refusal> {
    if plans.hosts() { member(role) } else { Err(Refusal::NotHosting) }
}

fn its_part(is_its: bool) -> Result<(), Refusal> {
    is_its.then_some(()).ok_or(Refusal::NotItsPart)
}

/// Rows for stage `to` come from the stage before, and the first stage's from the host.
fn hands_to(plan: &Plan, from: PeerId, role: SenderRole, to: StageId, me: PeerId) -> bool {
    let Some((index, _)) = plan.stage(to).filter(|(_, stage)| stage.peer == me) else { return false };
    match index.checked_sub(1) {
        None => role == SenderRole::Host,
        Some(before) => plan.stages[before].peer == from,
    }
}

/// The caller runs the block, whose experts are not (only) its own. Where they are changes while a plan runs: whoever
/// does not have one says so.
fn calls(plan: &Plan, from: PeerId, call: &ExpertCall) -> bool {
    let stage = plan.stages.iter().find(|stage| stage.peer == from && stage.blocks.contains(call.block));
    stage.is_some_and(|stage| stage.remote_experts(call.block).is_some())
}

/// A stage reports its own faults, and wrong numbers of those that it takes numbers from. A device that lost its GPU may
/// have no stage, only experts.
fn reports(plan: &Plan, from: PeerId, fault: &StageFault) -> bool {
    if fault.kind == StageFaultKind::DeviceLost {
        return plan.peers().contains(&from);
    }
    let Some((index, stage)) = plan.stage(fault.stage).filter(|(_, stage)| stage.peer == from) else { return false };
    let Some(accused) = fault.kind.accused() else { return true };
    let before = index.checked_sub(1).map(|before| plan.stages[before].peer);
    let mut holders = stage.remote.iter().flat_map(|remote| &remote.holders).flatten();
    let is_holder = holders.any(|holder| *holder == ExpertHolder::Peer(accused));
    let sends_rows = accused == from || before == Some(accused);
    is_holder || (sends_rows && matches!(fault.kind, StageFaultKind::BadResult(_)))
}

#[cfg(test)]
mod tests;
