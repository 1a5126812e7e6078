//! The room in one line: devices, plan, pace. It is also the strip that opens the table on narrow screens.

use potluck_panel::{Connection, MemberState, PlanState, Status};

use crate::text::{percent, plural, tokens_per_second};

/// "3 devices · ready · 6.1 tok/s".
#[must_use]
pub fn summary(status: &Status) -> String {
    let seated = status.peers.iter().filter(|member| member.state != MemberState::Asking).count();
    let mut words = Vec::new();
    if seated > 0 {
        words.push(plural(seated, "device", "devices"));
    }
    words.push(plan_words(status));
    if status.tokens_per_second > 0.0 {
        words.push(tokens_per_second(status.tokens_per_second));
    }
    words.join(" · ")
}

/// How the plan or the line stands.
#[must_use]
pub fn plan_words(status: &Status) -> String {
    match &status.connection {
        Connection::Connecting => return "connecting".into(),
        Connection::Reconnecting { attempt } => return format!("reconnecting, try {attempt}"),
        Connection::WaitingForHost => return "waiting for the host".into(),
        Connection::Closed { .. } => return "closed".into(),
        Connection::Idle | Connection::Connected => {}
    }
    let short = status.plan.as_ref().is_some_and(|plan| plan.waiting.is_some());
    match status.plan.as_ref().map(|plan| plan.state) {
        Some(PlanState::Up) => "ready".into(),
        Some(PlanState::Committing) => "almost ready".into(),
        Some(PlanState::Preparing) => match all_loading(status) {
            Some(share) => format!("loading {share}%"),
            None => "loading".into(),
        },
        Some(PlanState::Waiting) if short => "waiting for more memory".into(),
        Some(PlanState::Waiting) => "getting ready".into(),
        None if status.role.coordinator => "opening the model".into(),
        None => "coming in".into(),
    }
}

/// Percent of all bytes that devices load now.
fn all_loading(status: &Status) -> Option<u64> {
    let loading = status.peers.iter().filter_map(|member| member.loading.as_ref());
    let (done, total) = loading.fold((0_u64, 0_u64), |(done, total), loading| {
        (done.saturating_add(loading.done), total.saturating_add(loading.total))
    });
    (total > 0).then(|| percent(done, total))
}

/// Why Send is off now, as a sentence for the composer; nothing when it is on.
#[must_use]
pub fn why_not_yet(status: &Status) -> Option<String> {
    match &status.connection {
        Connection::Connecting => return Some("Connecting to the room.".into()),
        Connection::Reconnecting { .. } => return Some("The line to the relay is lost. Trying again.".into()),
        Connection::WaitingForHost => return Some("Waiting for the host.".into()),
        Connection::Closed { reason } => return Some(reason.clone()),
        Connection::Idle | Connection::Connected => {}
    }
    let plan = match &status.plan {
        None if status.role.coordinator => return Some("The room opens its model.".into()),
        None => return Some("Coming in.".into()),
        Some(plan) => plan,
    };
    match plan.state {
        PlanState::Up => None,
        PlanState::Waiting => {
            let sentence = plan.waiting.as_ref().map_or(&plan.reason, |waiting| &waiting.sentence);
            Some(if sentence.is_empty() { "The room waits for more devices.".into() } else { sentence.clone() })
        }
        PlanState::Preparing | PlanState::Committing => Some(match all_loading(status) {
            Some(share) => format!("The devices load their parts: {share}%. You can write already."),
            None => "The devices load their parts. You can write already.".into(),
        }),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::table::fixtures::{member, plan_of};
    use potluck_panel::{Loading, PlanReport, Waiting};

    fn status(state: PlanState) -> Status {
        Status {
            connection: Connection::Connected,
            plan: Some(PlanReport { state, ..plan_of(&[]) }),
            peers: vec![member("a", true)],
            ..Status::default()
        }
    }

    #[test]
    fn the_strip_tells_devices_state_and_pace() {
        let mut ready = status(PlanState::Up);
        ready.tokens_per_second = 6.13;
        assert_eq!(summary(&ready), "1 device · ready · 6.1 tok/s");
        assert_eq!(why_not_yet(&ready), None);
    }

    #[test]
    fn a_room_that_opens_is_not_said_to_be_short_of_memory() {
        let mut opening = status(PlanState::Waiting);
        opening.plan.as_mut().unwrap().reason = "Opening the model.".into();
        assert_eq!(plan_words(&opening), "getting ready");
        assert_eq!(why_not_yet(&opening).as_deref(), Some("Opening the model."));
        let waiting = Waiting { needed: 80, lent: 0, sentence: "80 bytes more.".into() };
        opening.plan.as_mut().unwrap().waiting = Some(waiting);
        assert_eq!(plan_words(&opening), "waiting for more memory");
        assert_eq!(why_not_yet(&opening).as_deref(), Some("80 bytes more."));
    }

    #[test]
    fn loading_is_summed_over_all_devices() {
        let mut loading = status(PlanState::Preparing);
        loading.peers[0].loading =
            Some(Loading { phase: "download".into(), done: 41, total: 100, rate: 1.0, seconds_left: None, cached: 0 });
        assert_eq!(plan_words(&loading), "loading 41%");
        assert!(why_not_yet(&loading).unwrap().contains("41%"));
    }

    #[test]
    fn a_lost_line_comes_before_the_plan() {
        let lost = Status { connection: Connection::Reconnecting { attempt: 3 }, ..status(PlanState::Up) };
        assert_eq!(plan_words(&lost), "reconnecting, try 3");
        assert!(why_not_yet(&lost).is_some());
    }
}
