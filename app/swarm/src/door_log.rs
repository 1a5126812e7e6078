//! The host's door log: who came in and how, who was turned away or removed, who sent wrong numbers, and when. It has no clock: each
//! session brings the time at which it was made, and so does the room when it is opened.

use potluck_plan::{DeviceId, Millis};
use potluck_protocol::{LogEntry, LogEvent, UnixSeconds, Way};

use crate::Proof;

/// How many entries of each kind are kept. The one whose last time is oldest goes first, so somebody who is turned away under ever
/// new keys displaces only other entries of that kind.
pub(crate) const MAX_ENTRIES_OF_A_KIND: usize = 64;
/// Letters of a name that are kept.
const MAX_NAME_LETTERS: usize = 64;

/// How a device came in; none for the host's own tabs.
pub(crate) fn way(proof: Proof) -> Option<Way> {
    match proof {
        Proof::Host => None,
        Proof::Link(_) => Some(Way::Link),
        Proof::Group => Some(Way::Before),
        Proof::Visitor => Some(Way::List),
        Proof::Invite(invite) => Some(Way::Invite(invite.id)),
    }
}

/// The time of day, by the last session that was made; before the first one, by the opening of the room.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TimeOfDay(Option<(UnixSeconds, Millis)>);

impl TimeOfDay {
    /// A session was made at this time.
    pub fn hear(&mut self, at: UnixSeconds, now: Millis) {
        self.0 = Some((at, now));
    }

    /// What time it is.
    pub fn at(self, now: Millis) -> UnixSeconds {
        let Some((heard, then)) = self.0 else { return UnixSeconds::default() };
        UnixSeconds(heard.0.saturating_add(((now.0 - then.0).max(0.0) / 1e3) as u32))
    }
}

/// Adds an event. The same event of the same device is one entry, however often it happens.
pub(crate) fn record(log: &mut Vec<LogEntry>, at: UnixSeconds, device: Option<DeviceId>, name: &str, event: LogEvent) {
    let name: String = name.chars().take(MAX_NAME_LETTERS).collect();
    let known = log.iter().position(|entry| entry.device == device && entry.event == event);
    let entry = match known.map(|at| log.remove(at)) {
        Some(known) => LogEntry { last: at, times: known.times.saturating_add(1), name, ..known },
        None => LogEntry { first: at, last: at, times: 1, device, name, event },
    };
    let kind = entry.event.kind();
    log.push(entry);
    let of_kind = log.iter().filter(|entry| entry.event.kind() == kind).count();
    if of_kind > MAX_ENTRIES_OF_A_KIND
        && let Some(oldest) = log.iter().position(|entry| entry.event.kind() == kind)
    {
        log.remove(oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(n: u16) -> Option<DeviceId> {
        let mut id = [0; 32];
        id[..2].copy_from_slice(&n.to_le_bytes());
        Some(DeviceId(id))
    }

    fn refused() -> LogEvent {
        LogEvent::Refused("This invite has expired.".into())
    }

    #[test]
    fn the_same_event_of_a_device_is_one_line_with_its_first_and_last_time() {
        let mut log = Vec::new();
        for (at, name) in [(10, "Eve"), (20, "Eve"), (30, "Mallory")] {
            record(&mut log, UnixSeconds(at), device(1), name, refused());
        }
        record(&mut log, UnixSeconds(40), device(1), "Mallory", LogEvent::Banned);
        record(&mut log, UnixSeconds(50), device(2), "Bob", refused());
        let [first, banned, other] = log.as_slice() else { panic!("{log:?}") };
        assert_eq!((first.first, first.last, first.times), (UnixSeconds(10), UnixSeconds(30), 3));
        assert_eq!((first.name.as_str(), banned.times, other.device), ("Mallory", 1, device(2)));
    }

    #[test]
    fn whoever_comes_back_under_ever_new_keys_pushes_out_no_bans_and_no_members() {
        let mut log = Vec::new();
        record(&mut log, UnixSeconds(1), device(1), "Ann", LogEvent::CameIn(Way::Link));
        record(&mut log, UnixSeconds(2), device(2), "Eve", LogEvent::Banned);
        record(&mut log, UnixSeconds(3), device(3), "Bob", LogEvent::WrongNumbers);
        for n in 0..2_000 {
            record(&mut log, UnixSeconds(4 + u32::from(n)), device(100 + n), &"x".repeat(9_999), refused());
        }
        assert_eq!(log.len(), 3 + MAX_ENTRIES_OF_A_KIND);
        assert!(log.iter().all(|entry| entry.name.len() <= MAX_NAME_LETTERS));
        for kept in [LogEvent::CameIn(Way::Link), LogEvent::Banned, LogEvent::WrongNumbers] {
            assert!(log.iter().any(|entry| entry.event == kept), "{kept:?}");
        }
        assert_eq!(log.last().and_then(|entry| entry.device), device(2_099), "the newest stay");
    }

    #[test]
    fn the_time_goes_on_between_sessions() {
        let mut time = TimeOfDay::default();
        assert_eq!(time.at(Millis(9_000.0)), UnixSeconds(0), "nobody has said it");
        time.hear(UnixSeconds(1_000), Millis(5_000.0));
        assert_eq!(time.at(Millis(65_500.0)), UnixSeconds(1_060));
        assert_eq!(time.at(Millis(0.0)), UnixSeconds(1_000));
    }
}
