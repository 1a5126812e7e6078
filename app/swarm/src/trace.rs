//! The last events and actions, for `potluck.trace()`.

mod fact;
mod placement;

use std::collections::VecDeque;

use potluck_panel::Decision;
use potluck_plan::Millis;
use potluck_protocol::Frame;
use serde::Serialize;

pub use fact::{ExpertWait, Fact};
pub(crate) use placement::placement;

use crate::may::Refusal;
use crate::{Action, Event};

const KEPT: usize = 4_000;
/// Decisions that are kept besides: tokens do not push them out.
const KEPT_DECISIONS: usize = 256;

/// One line of the trace.
#[derive(Clone, Debug, Serialize)]
pub struct TraceLine {
    /// The peer's clock.
    pub millis: f64,
    /// `event` or `action`; `note`: what neither tells; `decision`: what the host decided; `plan`: where experts lie now.
    pub kind: &'static str,
    /// What it was, without texts and numbers of a conversation. Empty for a decision: whoever shows it words it.
    pub what: String,
    /// The decision, with the numbers that were compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<Box<Decision>>,
    /// The same as `what` for programs, of what begins a question or happens with every token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fact: Option<Fact>,
}

impl TraceLine {
    /// A line in words.
    pub(crate) fn told(kind: &'static str, what: String, now: Millis) -> Self {
        Self { millis: now.0, kind, what, decision: None, fact: None }
    }
}

/// What is chosen while tokens are written.
fn is_running_choice(line: &TraceLine) -> bool {
    let decision = line.decision.as_deref();
    decision.is_some_and(|decision| !matches!(decision, Decision::Plan(_) | Decision::Device(_) | Decision::Standby(_)))
}

pub(crate) struct Trace {
    lines: VecDeque<TraceLine>,
    decisions: VecDeque<TraceLine>,
    kept: usize,
    /// How many decisions there were in all.
    decided: u64,
}

impl Default for Trace {
    fn default() -> Self {
        Self { lines: VecDeque::new(), decisions: VecDeque::new(), kept: KEPT, decided: 0 }
    }
}

impl Trace {
    /// Keeps so many lines.
    pub fn keep(&mut self, lines: usize) {
        self.kept = lines.max(1);
    }

    /// All lines in the order of their times.
    pub fn lines(&self) -> Vec<&TraceLine> {
        let mut lines: Vec<&TraceLine> = self.lines.iter().chain(&self.decisions).collect();
        lines.sort_by(|a, b| a.millis.total_cmp(&b.millis));
        lines
    }

    pub fn event(&mut self, event: &Event, now: Millis) {
        if let Some(what) = describe_event(event) {
            self.push("event", what, Fact::of_event(event), now);
        }
    }

    /// The last stage's result for a coordinator on the same device: with it the recording has every token.
    pub fn own(&mut self, frame: &Frame, now: Millis) {
        if let (Frame::LogitsResult(_), Some(what)) = (frame, describe_frame(frame)) {
            self.push("event", format!("from itself: {what}"), Fact::of_frame(frame), now);
        }
    }

    /// A frame that its sender may not send.
    pub fn refused(&mut self, frame: &Frame, refusal: Refusal, now: Millis) {
        if let Some(what) = describe_frame(frame) {
            self.push("event", format!("refused, {refusal:?}: {what}"), None, now);
        }
    }

    pub fn action(&mut self, action: &Action, now: Millis) {
        if let Some(what) = describe_action(action) {
            self.push("action", what, Fact::of_action(action), now);
        }
    }

    pub fn note(&mut self, what: String, now: Millis) {
        self.push("note", what, None, now);
    }

    /// How the experts of a block came.
    pub fn experts(&mut self, wait: ExpertWait, now: Millis) {
        self.push("note", wait.to_string(), Some(Fact::Experts(wait)), now);
    }

    pub fn decision(&mut self, decision: Decision, now: Millis) {
        self.decided += 1;
        let decision = Some(Box::new(decision));
        if self.decisions.len() >= KEPT_DECISIONS {
            // What is chosen while tokens are written changes often, so it makes room first.
            let oldest = self.decisions.iter().position(is_running_choice).unwrap_or(0);
            self.decisions.remove(oldest);
        }
        self.decisions.push_back(TraceLine { decision, ..TraceLine::told("decision", String::new(), now) });
    }

    /// How many decisions there were.
    pub fn decided(&self) -> u64 {
        self.decided
    }

    /// The decisions after the first `known` ones, as far as they are kept, oldest first.
    pub fn decisions_after(&self, known: u64) -> Vec<&Decision> {
        let new = usize::try_from(self.decided.saturating_sub(known)).unwrap_or(usize::MAX);
        let decisions = self.decisions.iter().skip(self.decisions.len().saturating_sub(new));
        decisions.filter_map(|line| line.decision.as_deref()).collect()
    }

    fn push(&mut self, kind: &'static str, what: String, fact: Option<Fact>, now: Millis) {
        while self.lines.len() >= self.kept {
            self.lines.pop_front();
        }
        self.lines.push_back(TraceLine { fact, ..TraceLine::told(kind, what, now) });
    }
}

fn describe_event(event: &Event) -> Option<String> {
    Some(match event {
        Event::Tick | Event::Wake | Event::LoadProgress { .. } | Event::Writing | Event::Foreseen(..) => return None,
        Event::LeaseRenewed { .. } => return None,
        Event::Host(command) => format!("host {:?} context {}", command.source, command.context),
        Event::Join => "join".into(),
        Event::Contribute(contribution) => format!("contribute {contribution:?}"),
        Event::StopContributing => "stop contributing".into(),
        Event::Leave(leaving) => format!("leave: {leaving:?}"),
        Event::Rename(_) => "rename".into(),
        Event::Visibility { hidden } => format!("hidden {hidden}"),
        Event::Admit { peer, allow } => format!("admit {peer:?} {allow}"),
        Event::Remove(peer) => format!("remove {peer:?}"),
        Event::Ban(peer) => format!("ban {peer:?}"),
        Event::Unban(device) => format!("unban {device:?}"),
        Event::Invite(invite) => format!("invite {:?} {:?}", invite.id, invite.kind),
        Event::Revoke(id) => format!("revoke {id:?}"),
        Event::Renew => "renew the link".into(),
        Event::DoorsKept(link) => format!("doors with link {link} kept"),
        Event::DoorsLost(link) => format!("doors with link {link} not kept"),
        Event::SetSharing(share) => format!("share {share:?}"),
        Event::SetDeputy(choice) => format!("deputy {choice:?}"),
        Event::Prompt(prompt) => format!("prompt {:?}, {} messages", prompt.request, prompt.messages.len()),
        Event::Stop(request) => format!("stop {request:?}"),
        Event::Connected => "connected".into(),
        Event::PeerConnected { route, peer, proof, .. } => format!("session with {peer:?} at {route:?}, {proof:?}"),
        Event::Replaced => "replaced as host".into(),
        Event::Superseded => "superseded as host".into(),
        Event::HostPresent => "the host is there".into(),
        Event::RouteLeft(route) => format!("left {route:?}"),
        Event::Disconnected => "disconnected".into(),
        Event::Frame { from, frame, .. } => format!("from {from:?}: {}", describe_frame(frame)?),
        Event::ModelOpened(model) => format!("opened {}", model.card.name),
        Event::ModelFailed(sentence) => format!("model failed: {sentence}"),
        Event::Loaded(epoch) => format!("loaded {epoch:?}"),
        Event::LoadFailed(epoch, fault) => format!("load failed {epoch:?}: {}", fault.sentence()),
        Event::Computed(computed) => format!("computed {:?} in {:.2} ms", computed.ticket, computed.millis),
        Event::Calibrated(_, Ok(runs)) => format!("timed {:?} and {:?}", runs.short, runs.long),
        Event::Calibrated(_, Err(sentence)) => format!("not timed: {sentence}"),
        Event::DeviceLost(sentence) => format!("device lost: {sentence}"),
        Event::PieceWanted(request) => format!("piece wanted {request:?}"),
        Event::PieceRead { id, .. } => format!("piece read {id}"),
    })
}

fn describe_action(action: &Action) -> Option<String> {
    Some(match action {
        Action::ViewChanged | Action::Expect | Action::WakeAt(_) => return None,
        Action::Send { to, frame } => format!("to {to:?}: {}", describe_frame(frame)?),
        Action::OpenModel(source) => format!("open {source:?}"),
        Action::Load(load) => format!("load {:?}, {} units", load.epoch, load.units.len()),
        Action::Calibrate { model, .. } => format!("time {}", model.name),
        Action::Unload => "unload".into(),
        Action::Compute(work) => format!("compute {:?}", work.ticket),
        Action::LoadAhead(experts) => format!("load ahead {experts:?}"),
        Action::Foresee(wanted) => format!("foresee {wanted}"),
        Action::Cancel(ticket) => format!("cancel {ticket:?}"),
        Action::Forget(conversation) => format!("forget {conversation:?}"),
        Action::Answer(request, _) => format!("answer part {request:?}"),
        Action::Notice { sentence, .. } => format!("notice: {sentence}"),
        Action::LetIn(peer) => format!("let in {peer:?}"),
        Action::PutOut(route) => format!("put out {route:?}"),
        Action::Admitted(peer) => format!("admitted {peer:?}"),
        Action::Regroup(generation) => format!("group secret {generation}"),
        Action::Renewed { link, generation } => format!("link {link}, group secret {generation}"),
        Action::GiveRenewed(peer) => format!("renewed keys to {peer:?}"),
        Action::DoorsChanged(_) => "doors changed".into(),
        Action::TakeOver(succession) => format!("take over after {:?}", succession.term),
        Action::StepDown => "step down".into(),
        Action::Close { reason } => format!("close: {reason:?}"),
        Action::ReadPiece { peer, request } => format!("read piece for {peer:?} {request:?}"),
        Action::DeliverPiece { id, .. } => format!("deliver piece {id}"),
    })
}

/// Describes a frame; periodic frames are left out.
fn describe_frame(frame: &Frame) -> Option<String> {
    Some(match frame {
        Frame::Heartbeat { .. }
        | Frame::HeartbeatBack { .. }
        | Frame::Probe { .. }
        | Frame::Room(_)
        | Frame::RoomUpdate(..) => return None,
        Frame::Writing | Frame::Expect => return None,
        Frame::Calibrate(model) => format!("calibrate {}", model.name),
        Frame::Calibrated(_, answer) => format!("calibrated, {}", if answer.is_ok() { "timed" } else { "not timed" }),
        Frame::Hello(hello) => format!("hello {:?} lends {:?}", hello.start, hello.contribution),
        Frame::Refused(sentence) => format!("refused: {sentence}"),
        Frame::Bye => "bye".into(),
        Frame::Closed(leaving) => format!("closed {leaving:?}"),
        Frame::Checkers(checkers) => format!("checkers {:?}", checkers.lineages),
        Frame::CommitRows(range) => format!("commit to {range:?}"),
        Frame::RowHashes(hashes) => format!("committed to {:?}", hashes.range),
        Frame::RowsRequest(request) => format!("show {request:?}"),
        Frame::Rows(rows) => format!("shows {:?}, {} values", rows.request, rows.values.len()),
        Frame::Signal(_) => "signal".into(),
        Frame::Unknown => "unknown".into(),
        Frame::Prepare(prepare) => {
            let stages = prepare.plan.stages.iter().map(|stage| (stage.peer, stage.blocks)).collect::<Vec<_>>();
            format!("prepare {:?} {stages:?} keep {:?}", prepare.plan.epoch, prepare.keep)
        }
        Frame::Prepared(epoch) => format!("prepared {epoch:?}"),
        Frame::PrepareFailed(epoch, fault) => format!("prepare failed {epoch:?}: {}", fault.sentence()),
        Frame::Commit(epoch) => format!("commit {epoch:?}"),
        Frame::Committed(epoch) => format!("committed {epoch:?}"),
        Frame::Abandon(epoch) => format!("abandon {epoch:?}"),
        Frame::StandBy(order) => format!("stand by {:?} with {} units", order.epoch, order.units.len()),
        Frame::Forward(forward) => format!(
            "forward {:?} {:?} {:?} of {:?} base {} rows {} {:?}",
            forward.pass,
            forward.epoch,
            forward.stage,
            forward.conversation,
            forward.base.0,
            forward.count,
            forward.class
        ),
        Frame::ExpertCall(call) => {
            format!("expert call {} block {} rows {}", call.call, call.block.0, call.rows.len())
        }
        Frame::ExpertResult(result) => match result.failed {
            None => format!("expert result {} in {:.2} ms", result.call, result.millis),
            Some(failure) => format!("expert result {}: {failure:?}", result.call),
        },
        Frame::ExpertCancel(cancel) => format!("expert cancel {}", cancel.call),
        Frame::ExpertHint(hint) => format!("expert hint {:?}", hint.experts),
        Frame::Residency(residency) => {
            format!("residency {:?} version {} {:?}", residency.epoch, residency.version, residency.changes)
        }
        Frame::Hold(hold) => format!("hold {:?} version {} {:?}", hold.epoch, hold.version, hold.experts),
        Frame::Holding(holding) => format!("holding {:?} version {}", holding.epoch, holding.version),
        Frame::LogitsResult(reply) => {
            let (pass, base, rows, stages) = (reply.pass, reply.base.0, reply.tokens, &reply.stage_millis);
            format!("picked {pass:?} base {base} rows {rows} stages {stages:.3?} ms")
        }
        Frame::StageFault(fault) => format!("fault {:?} {:?} {:?}", fault.stage, fault.pass, fault.kind),
        Frame::Prompt(prompt) => format!("prompt {:?}", prompt.request),
        Frame::Resume(request, received) => format!("resume {request:?} from piece {}", received.pieces),
        Frame::Deputy(succession) => format!("deputy: {}", if succession.is_some() { "yes" } else { "no" }),
        Frame::Follow(_) => "news for the deputy".into(),
        Frame::Stop(request) => format!("stop {request:?}"),
        Frame::Answer(request, _) => format!("answer part {request:?}"),
        Frame::PieceRequest(request) => format!("piece request {request:?}"),
        Frame::Piece { id, bytes, .. } => format!("piece {id}, {} bytes", bytes.len()),
    })
}

#[cfg(test)]
mod tests {
    use potluck_panel::{DeferredReason, PlanDecision};

    use super::*;

    fn deferred(reason: DeferredReason) -> Decision {
        Decision::Plan(PlanDecision::Deferred { reason })
    }

    #[test]
    fn decisions_lie_between_the_other_lines_and_are_not_pushed_out_by_them() {
        let mut trace = Trace::default();
        trace.keep(3);
        trace.decision(deferred(DeferredReason::Measuring), Millis(1.0));
        trace.note("a note".into(), Millis(2.0));
        trace.decision(deferred(DeferredReason::DeviceAway), Millis(3.0));
        assert_eq!(trace.decisions_after(1), [&deferred(DeferredReason::DeviceAway)]);
        assert_eq!(trace.decisions_after(0).len(), 2);
        let kinds = |trace: &Trace| trace.lines().iter().map(|line| line.kind).collect::<Vec<_>>();
        assert_eq!(kinds(&trace), ["decision", "note", "decision"]);
        (0..9).for_each(|_| trace.note("another".into(), Millis(4.0)));
        assert_eq!(kinds(&trace), ["decision", "decision", "note", "note", "note"]);
        (0..300).for_each(|_| trace.decision(deferred(DeferredReason::DeviceAway), Millis(5.0)));
        assert_eq!((trace.decided(), trace.decisions_after(0).len()), (302, KEPT_DECISIONS), "they are bounded, too");
    }
}
