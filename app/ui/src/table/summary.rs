//! The room in one line: devices, plan, speed. On narrow screens this line opens the table.

use potluck_panel::{Connection, MemberStatus, MemberView, PlanStatus, Status};
use potluck_text::texts;

use crate::text::{percent, tokens_per_second};

/// "3 devices · ready · 6.1 tok/s".
#[must_use]
pub fn summary(status: &Status) -> String {
    let seated = status.peers.iter().filter(|member| member.status != MemberStatus::Asking).count();
    let mut parts = Vec::new();
    if seated > 0 {
        parts.push(texts().table.devices(seated));
    }
    parts.push(room_text(status));
    if status.tokens_per_second > 0.0 {
        parts.push(tokens_per_second(status.tokens_per_second));
    }
    parts.join(" · ")
}

/// The room's progress in a few words.
#[must_use]
pub fn room_text(status: &Status) -> String {
    if let Some(outside) = texts().connection.of(&status.connection) {
        return outside;
    }
    match &status.plan {
        Some(plan) => texts().plan.of(plan.state, plan.waiting.is_some(), all_loading(status)),
        None if status.role.coordinator => texts().plan.opening_model().into(),
        None => texts().plan.joining().into(),
    }
}

/// Percentage loaded, over all devices that are loading.
fn all_loading(status: &Status) -> Option<u64> {
    // What this device knows of itself is newer than what the host tells of it, and its bar shows it.
    let of = |member: &'_ MemberView| match &status.loading {
        Some(own) if status.is_self(member) => Some(*own),
        _ => member.loading,
    };
    let loading = status.peers.iter().filter_map(of);
    // The bytes of headers and hashes have no total.
    let loading = loading.filter(|loading| loading.total.0 > 0);
    let (done, total) = loading.fold((0_u64, 0_u64), |(done, total), loading| {
        (done.saturating_add(loading.done.0), total.saturating_add(loading.total.0))
    });
    (total > 0).then(|| percent(done, total))
}

/// Why Send is disabled, as a sentence for the composer; `None` if it is enabled.
#[must_use]
pub fn why_not_yet(status: &Status) -> Option<String> {
    let texts = &texts().not_yet;
    match &status.connection {
        Connection::Connecting => return Some(texts.connecting().into()),
        Connection::Reconnecting { .. } => return Some(texts.reconnecting().into()),
        Connection::SocketsRefused { .. } => return Some(texts.sockets_refused().into()),
        Connection::WaitingForHost => return Some(texts.waiting_for_host().into()),
        Connection::Closed { reason } => return Some(reason.clone()),
        Connection::Idle | Connection::Connected => {}
    }
    let plan = match &status.plan {
        None if status.role.coordinator => return Some(texts.opening_model().into()),
        None => return Some(texts.joining().into()),
        Some(plan) => plan,
    };
    match plan.state {
        PlanStatus::Up => None,
        PlanStatus::Waiting => {
            let sentence = plan.waiting.as_ref().map_or(&plan.reason, |waiting| &waiting.sentence);
            Some(if sentence.is_empty() { texts.waiting().into() } else { sentence.clone() })
        }
        PlanStatus::Failed => Some(texts.no_model().into()),
        PlanStatus::Preparing | PlanStatus::Committing => Some(match all_loading(status) {
            Some(share) => texts.loading_share(share),
            None => texts.loading().into(),
        }),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;
    use crate::table::{
        failure,
        fixtures::{member, plan_of},
    };
    use potluck_panel::{Bytes, LoadPhase, LoadReport, PlanReport, Waiting};

    fn status(state: PlanStatus) -> Status {
        Status {
            connection: Connection::Connected,
            plan: Some(PlanReport { state, ..plan_of(&[]) }),
            peers: vec![member("a", true)],
            ..Status::default()
        }
    }

    #[test]
    fn the_strip_tells_devices_state_and_pace() {
        let mut ready = status(PlanStatus::Up);
        ready.tokens_per_second = 6.13;
        assert_eq!(summary(&ready), "1 device · ready · 6.1 tok/s");
        assert_eq!(why_not_yet(&ready), None);
    }

    #[test]
    fn a_room_that_opens_is_not_said_to_be_short_of_memory() {
        let mut opening = status(PlanStatus::Waiting);
        opening.plan.as_mut().unwrap().reason = "Opening the model.".into();
        assert_eq!(room_text(&opening), "getting ready");
        assert_eq!(why_not_yet(&opening).as_deref(), Some("Opening the model."));
        let waiting = Waiting { needed: 80, lent: 0, sentence: "80 bytes more.".into() };
        opening.plan.as_mut().unwrap().waiting = Some(waiting);
        assert_eq!(room_text(&opening), "waiting for more memory");
        assert_eq!(why_not_yet(&opening).as_deref(), Some("80 bytes more."));
        assert_eq!(failure(&opening), None);
        *opening.plan.as_mut().unwrap() =
            PlanReport { state: PlanStatus::Failed, reason: "It is truncated.".into(), ..plan_of(&[]) };
        assert_eq!(room_text(&opening), "no model");
        assert_eq!(
            why_not_yet(&opening).as_deref(),
            Some("This room could not open its model. The host can choose another one.")
        );
        assert_eq!(failure(&opening), Some("It is truncated."));
    }

    #[test]
    fn loading_is_summed_over_all_devices() {
        let mut loading = status(PlanStatus::Preparing);
        loading.peers[0].loading =
            Some(LoadReport { done: Bytes(41), total: Bytes(100), ..LoadReport::begin(LoadPhase::Download) });
        assert_eq!(room_text(&loading), "loading 41%");
        let mut finding = member("b", false);
        finding.loading = Some(LoadReport { done: Bytes(900), ..LoadReport::begin(LoadPhase::Find) });
        loading.peers.push(finding);
        assert_eq!(room_text(&loading), "loading 41%", "a header's bytes are not the model's");
        assert!(why_not_yet(&loading).unwrap().contains("41%"));
    }

    #[test]
    fn a_lost_line_comes_before_the_plan() {
        let lost = Status {
            connection: Connection::Reconnecting { attempt: 3, cause: String::new() },
            ..status(PlanStatus::Up)
        };
        assert_eq!(room_text(&lost), "reconnecting, attempt 3");
        assert!(why_not_yet(&lost).is_some());
    }
}
