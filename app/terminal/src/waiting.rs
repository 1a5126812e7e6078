//! What a node waits for, and when the wait ends: in a final state, or at a time limit if no person watches.

use std::time::Duration;

use potluck_panel::{Connection, LoadReport, PlanEpoch, PlanStatus, Status, ToPage};
use potluck_text::texts;

use crate::failure::Failure;

/// What a node is there for. It decides which states are the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Whoever drives this session watches it.
    Watch,
    /// One device answers or is measured, without a room.
    Alone,
    /// A room is hosted, until somebody stops it.
    Host,
    /// A room is hosted to answer one question.
    HostAndAsk,
    /// This device computes for a room, until somebody stops it.
    Contribute,
    /// A room is looked at, until somebody stops it.
    Visit,
    /// A question is asked.
    Ask,
}

impl Purpose {
    /// True if it waits without a limit, until a person or another program ends it. `entered`: it has reached the relay once.
    pub(crate) fn may_stay(self, entered: bool) -> bool {
        match self {
            Self::Watch => true,
            Self::Alone | Self::HostAndAsk | Self::Ask => false,
            // Who was there once waits for the relay and the host to be back.
            Self::Host | Self::Contribute | Self::Visit => entered,
        }
    }
}

/// Why a node can no longer serve its purpose, judged by a snapshot.
pub(crate) fn why_it_ends(purpose: Purpose, status: &Status) -> Option<Failure> {
    if let Connection::Closed { reason } = &status.connection {
        return Some(Failure::Room(reason.clone()));
    }
    let no_model = status.plan.as_ref().filter(|plan| plan.state == PlanStatus::Failed).map(|plan| &plan.reason);
    let no_gpu = status.device.trouble.as_ref();
    match purpose {
        Purpose::Watch | Purpose::Visit => None,
        Purpose::Alone => {
            let lent = matches!(status.peers.as_slice(), [own] if own.lent.is_some());
            let waiting = status.plan.as_ref().and_then(|plan| plan.waiting.as_ref()).filter(|_| lent);
            no_gpu.or(no_model).or(waiting.map(|waiting| &waiting.sentence)).cloned().map(Failure::Failed)
        }
        // Without the relay a host cannot find its model there, so it is the relay that is missing.
        Purpose::Host | Purpose::HostAndAsk => match status.connection {
            Connection::Connecting => None,
            Connection::Reconnecting { .. } | Connection::SocketsRefused { .. } => no_model.cloned().map(Failure::Room),
            _ => no_model.cloned().map(Failure::Failed),
        },
        Purpose::Contribute if status.room.as_ref().is_some_and(|room| room.chat_only) => {
            Some(Failure::Usage(texts().terminal.only_for_chat().to_owned()))
        }
        Purpose::Contribute => no_gpu.cloned().map(Failure::Failed),
        Purpose::Ask => no_model.cloned().map(Failure::Room),
    }
}

/// Why waiting ends although nothing failed: the room's fault, if there is one.
pub(crate) fn why_nothing_goes_on(relay: &str, purpose: Purpose, status: &Status, patience: Duration) -> Failure {
    let (terminal, seconds) = (&texts().terminal, patience.as_secs());
    let plan = status.plan.as_ref().filter(|plan| plan.state != PlanStatus::Up && !plan.reason.is_empty());
    let sentence = match &status.connection {
        Connection::Reconnecting { cause, .. } => terminal.no_relay(relay, cause, seconds),
        Connection::Connecting => terminal.no_relay(relay, terminal.nothing_heard(), seconds),
        Connection::WaitingForHost => terminal.no_host(seconds),
        _ if !status.pending.is_empty() => terminal.no_answer(seconds),
        _ => plan.map_or_else(|| terminal.no_progress(seconds), |plan| terminal.no_plan(&plan.reason, seconds)),
    };
    if purpose == Purpose::Alone { Failure::Failed(sentence) } else { Failure::Room(sentence) }
}

/// How long to wait without progress. A relay or a host answers in seconds; slow devices compute for minutes without a sign.
pub(crate) fn limit(purpose: Purpose, status: &Status, patience: Duration) -> Duration {
    const COMPUTING: u32 = 10;
    let is_away = matches!(
        status.connection,
        Connection::Connecting
            | Connection::Reconnecting { .. }
            | Connection::SocketsRefused { .. }
            | Connection::WaitingForHost
    );
    let computes = purpose == Purpose::Alone || !status.pending.is_empty() || status.loading.is_some();
    if computes && !is_away { patience * COMPUTING } else { patience }
}

/// How far everything is. What changes it is progress.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Standing {
    connection: Option<std::mem::Discriminant<Connection>>,
    plan: Option<(PlanEpoch, PlanStatus)>,
    has_model: bool,
    loading: [Option<LoadReport>; 2],
    downloaded: u64,
    members: usize,
    tokens: u64,
}

impl Standing {
    /// Takes a message with the snapshot after it. True if something went on.
    pub(crate) fn moves(&mut self, status: &Status, message: &ToPage) -> bool {
        if !matches!(message, ToPage::Status(_)) {
            return matches!(message, ToPage::Answer { .. } | ToPage::Bench(_));
        }
        let now = Self {
            connection: Some(std::mem::discriminant(&status.connection)),
            plan: status.plan.as_ref().map(|plan| (plan.epoch, plan.state)),
            has_model: status.model.is_some(),
            loading: [status.loading, status.checking],
            downloaded: status.bytes_downloaded,
            members: status.peers.len(),
            tokens: status.tokens,
        };
        let moves = now != *self;
        *self = now;
        moves
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use potluck_panel::{RequestId, RoomReport};

    use super::*;

    const ALL: [Purpose; 7] = [
        Purpose::Watch,
        Purpose::Alone,
        Purpose::Host,
        Purpose::HostAndAsk,
        Purpose::Contribute,
        Purpose::Visit,
        Purpose::Ask,
    ];

    fn at(connection: Connection) -> Status {
        Status { connection, ..Status::default() }
    }

    fn lost() -> Connection {
        Connection::Reconnecting { attempt: 3, cause: "connection refused".into() }
    }

    #[test]
    fn a_room_that_is_closed_ends_everything() {
        for purpose in ALL {
            let closed = at(Connection::Closed { reason: "The host has ended this room.".into() });
            assert_eq!(why_it_ends(purpose, &closed), Some(Failure::Room("The host has ended this room.".into())));
            assert_eq!(why_it_ends(purpose, &at(lost())), None);
        }
    }

    #[test]
    fn without_a_gpu_only_those_end_who_are_there_to_compute() {
        let mut status = at(Connection::Connected);
        status.device.trouble = Some("No GPU.".into());
        let ends = ALL.into_iter().filter(|purpose| why_it_ends(*purpose, &status).is_some());
        assert_eq!(ends.collect::<Vec<_>>(), [Purpose::Alone, Purpose::Contribute]);
    }

    #[test]
    fn an_invite_to_chat_is_no_way_to_contribute() {
        let mut status = at(Connection::Connected);
        let (id, link) = ("r".to_owned(), "/r/r".to_owned());
        status.room = Some(RoomReport { id, key: None, link, visible: false, chat_only: true });
        let ends = ALL.into_iter().filter(|purpose| why_it_ends(*purpose, &status).is_some());
        assert_eq!(ends.collect::<Vec<_>>(), [Purpose::Contribute]);
    }

    #[test]
    fn nobody_waits_for_ever_for_a_relay_and_only_a_person_for_a_host() {
        let stay = |entered| ALL.into_iter().filter(|purpose| purpose.may_stay(entered)).collect::<Vec<_>>();
        assert_eq!(stay(false), [Purpose::Watch]);
        assert_eq!(stay(true), [Purpose::Watch, Purpose::Host, Purpose::Contribute, Purpose::Visit]);
    }

    #[test]
    fn the_sentence_of_a_late_relay_names_its_address_and_the_cause() {
        let late = why_nothing_goes_on("http://a:1", Purpose::Ask, &at(lost()), Duration::from_secs(9));
        assert_eq!(late.code(), 3);
        let sentence = late.sentence().unwrap();
        for part in ["http://a:1", "connection refused", "9 s"] {
            assert!(sentence.contains(part), "{sentence}");
        }
        let late =
            why_nothing_goes_on("http://a:1", Purpose::Ask, &at(Connection::WaitingForHost), Duration::from_secs(9));
        assert!(late.sentence().unwrap().starts_with("The host"), "{late}");
    }

    #[test]
    fn an_answer_that_stands_still_is_a_matter_of_the_room_if_there_is_one() {
        let asked = Status { pending: vec![RequestId(1)], ..at(Connection::Connected) };
        let code = |purpose| why_nothing_goes_on("http://a:1", purpose, &asked, Duration::from_secs(9)).code();
        assert_eq!([Purpose::Alone, Purpose::HostAndAsk, Purpose::Ask].map(code), [1, 3, 3]);
    }

    #[test]
    fn slow_devices_have_longer_than_a_host_that_is_away() {
        let patience = Duration::from_secs(9);
        let asked = |connection| Status { pending: vec![RequestId(1)], ..at(connection) };
        assert_eq!(limit(Purpose::Ask, &asked(Connection::Connected), patience), patience * 10);
        assert_eq!(limit(Purpose::Ask, &asked(Connection::WaitingForHost), patience), patience);
        assert_eq!(limit(Purpose::Ask, &at(Connection::Connected), patience), patience, "for devices");
        assert_eq!(limit(Purpose::Alone, &at(Connection::Idle), patience), patience * 10);
    }

    #[test]
    fn another_attempt_is_no_progress_and_bytes_are() {
        let (mut standing, mut status) = (Standing::default(), at(lost()));
        let mut moves = |status: &Status| standing.moves(status, &ToPage::Status(Box::new(status.clone())));
        assert!(moves(&status));
        status.connection = Connection::Reconnecting { attempt: 4, cause: "connection refused".into() };
        assert!(!moves(&status));
        status.bytes_downloaded = 1;
        assert!(moves(&status) && !moves(&status));
    }
}
