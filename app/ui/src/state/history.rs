//! The room over time, derived from successive snapshots: tokens, joins, leaves, plans.

use std::collections::BTreeMap;

use potluck_panel::{MarkKind, MemberStatus, MemberView, PeerId, PlanEpoch, PlanStatus, Status, Timeline};
use potluck_text::texts;

/// What happened since this tab entered the room.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// What happened.
    pub timeline: Timeline,
    room: Option<String>,
    began: f64,
    tokens: Option<u64>,
    members: BTreeMap<PeerId, (String, Presence)>,
    plan: Option<PlanEpoch>,
}

/// How the others see a member's seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    /// It lends and works, or only asks.
    Here,
    /// Silent, or its device failed.
    Away,
}

impl History {
    /// Processes a snapshot taken at `now` (milliseconds of any monotonic clock). True if there is something new to
    /// draw.
    pub fn observe(&mut self, status: &Status, now: f64) -> bool {
        let room = status.room.as_ref().map(|room| room.id.clone());
        if room != self.room {
            *self = Self { room, began: now, ..Self::default() };
        }
        if self.room.is_none() {
            return false;
        }
        let at = now - self.began;
        let before = (self.timeline.samples.len(), self.timeline.marks.len(), self.tokens);
        self.observe_members(&status.peers, at);
        self.observe_plan(status, at);
        // A tab that enters later counts from the room's current total; the total of a reloaded host starts at zero.
        let known = self.tokens.replace(status.tokens).unwrap_or(status.tokens);
        let new = status.tokens.saturating_sub(known);
        self.timeline.tokens(at, u32::try_from(new).unwrap_or(u32::MAX));
        before != (self.timeline.samples.len(), self.timeline.marks.len(), self.tokens)
    }

    fn observe_members(&mut self, members: &[MemberView], at: f64) {
        let texts = &texts().timeline;
        // The first snapshot lists members who joined before us.
        let first = self.members.is_empty();
        let here: Vec<&MemberView> = members.iter().filter(|member| member.status != MemberStatus::Asking).collect();
        for member in &here {
            let presence = match member.status {
                MemberStatus::Silent | MemberStatus::Failed => Presence::Away,
                _ => Presence::Here,
            };
            let known = self.members.insert(member.peer, (member.name.clone(), presence));
            let (kind, what) = match (known.map(|(_, known)| known), presence) {
                (None, _) if first => continue,
                (None, _) => (MarkKind::Join, texts.joins(&member.name)),
                (Some(Presence::Here), Presence::Away) => (MarkKind::Pause, texts.silent(&member.name)),
                (Some(Presence::Away), Presence::Here) => (MarkKind::Join, texts.back(&member.name)),
                _ => continue,
            };
            self.timeline.mark(at, kind, what);
        }
        let gone = |peer: &PeerId| !here.iter().any(|member| member.peer == *peer);
        let left: Vec<PeerId> = self.members.keys().filter(|peer| gone(peer)).copied().collect();
        for peer in left {
            if let Some((name, _)) = self.members.remove(&peer) {
                self.timeline.mark(at, MarkKind::Leave, texts.leaves(name));
            }
        }
    }

    fn observe_plan(&mut self, status: &Status, at: f64) {
        let Some(plan) = status.plan.as_ref().filter(|plan| plan.state == PlanStatus::Up) else { return };
        if self.plan.replace(plan.epoch) == Some(plan.epoch) {
            return;
        }
        let name = |peer: PeerId| self.members.get(&peer).map_or(texts().timeline.unnamed(), |(name, _)| name.as_str());
        let stages = plan.stages.iter().map(|stage| {
            let blocks = stage.end_block.saturating_sub(stage.first_block);
            format!("{} {blocks}", name(stage.peer))
        });
        let stages = stages.collect::<Vec<_>>().join(", ");
        self.timeline.mark(at, MarkKind::Plan, texts().timeline.plan(stages));
    }
}

#[cfg(test)]
mod tests {
    use potluck_panel::RoomReport;

    use super::*;
    use crate::table::fixtures::{member, plan_of};

    fn snapshot(tokens: u64, names: &[&str]) -> Status {
        let room = RoomReport { id: "r".into(), key: None, link: String::new(), visible: false, chat_only: false };
        let peers = names.iter().enumerate().map(|(index, name)| member(name, index == 0)).collect();
        Status { room: Some(room), tokens, peers, plan: Some(plan_of(names)), ..Status::default() }
    }

    fn texts(history: &History) -> Vec<&str> {
        history.timeline.marks.iter().map(|mark| mark.text.as_str()).collect()
    }

    #[test]
    fn tokens_joins_and_leaves_are_kept() {
        let mut history = History::default();
        history.observe(&snapshot(7, &["a"]), 1_000.0);
        history.observe(&snapshot(12, &["a"]), 2_000.0);
        let mut longer = snapshot(14, &["a", "b"]);
        longer.plan = Some(potluck_panel::PlanReport { epoch: potluck_panel::PlanEpoch(2), ..plan_of(&["a", "b"]) });
        history.observe(&longer, 3_000.0);
        history.observe(&Status { peers: vec![member("a", true)], ..longer }, 4_000.0);
        assert_eq!(texts(&history), ["new plan, blocks: a 6", "b joins", "new plan, blocks: a 6, b 6", "b leaves"]);
        let samples: Vec<(f64, u32)> = history.timeline.samples.iter().map(|s| (s.at_ms, s.count)).collect();
        assert_eq!(samples, [(1_000.0, 5), (2_000.0, 2)], "what was written before we came is not ours to draw");
    }

    #[test]
    fn another_room_begins_anew() {
        let mut history = History::default();
        history.observe(&snapshot(7, &["a"]), 1_000.0);
        let mut other = snapshot(0, &["a"]);
        if let Some(room) = &mut other.room {
            room.id = "other".into();
        }
        history.observe(&other, 9_000.0);
        assert_eq!(history.timeline.marks.len(), 1);
        assert!(history.timeline.end_ms < 1.0, "{}", history.timeline.end_ms);
        assert!(!history.observe(&Status::default(), 10_000.0), "no room, nothing to draw");
    }

    #[test]
    fn a_silent_device_is_a_pause() {
        let mut history = History::default();
        let mut status = snapshot(0, &["a", "b"]);
        history.observe(&status, 0.0);
        status.peers[1].status = MemberStatus::Silent;
        history.observe(&status, 1.0);
        status.peers[1].status = MemberStatus::Ready;
        history.observe(&status, 2.0);
        assert_eq!(texts(&history)[1..], ["b does not answer", "b is back"]);
    }
}
