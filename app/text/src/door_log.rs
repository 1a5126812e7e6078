//! The host's log as text.

use potluck_panel::{LogEntry, LogEvent, UnixSeconds, Way};

use crate::{Lines, texts, visible};

/// "2026-11-28 02:20:00 UTC".
#[must_use]
pub fn utc(at: UnixSeconds) -> String {
    let (days, seconds) = (i64::from(at.0 / 86_400), at.0 % 86_400);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// Year, month and day of this many days after 1970-01-01 (Howard Hinnant, "chrono-compatible low-level date algorithms").
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// A line of the log. Names are strangers' text, so every character is made visible.
#[must_use]
pub fn log_line(entry: &LogEntry) -> String {
    let texts = &texts().door_log;
    let what = match &entry.event {
        LogEvent::CameIn(Way::Link) => texts.by_link().to_owned(),
        LogEvent::CameIn(Way::Invite(id)) => texts.by_invite(id.0),
        LogEvent::CameIn(Way::List) => texts.by_list().to_owned(),
        LogEvent::CameIn(Way::Before) => texts.before().to_owned(),
        LogEvent::Refused(sentence) => texts.refused(sentence.as_str()),
        LogEvent::Removed => texts.removed().to_owned(),
        LogEvent::Banned => texts.banned().to_owned(),
        LogEvent::Forgiven => texts.forgiven().to_owned(),
        LogEvent::WrongNumbers => texts.wrong_numbers().to_owned(),
        LogEvent::LinkRenewed => texts.link_renewed().to_owned(),
    };
    let name = visible(entry.name.trim(), Lines::One);
    let name = if name.is_empty() { texts.unnamed().to_owned() } else { name };
    let line = match entry.device {
        _ if entry.event == LogEvent::LinkRenewed => texts.line_of_room(utc(entry.last), what),
        Some(device) => texts.line(utc(entry.last), name, device.tag(), what),
        None => texts.line_without_key(utc(entry.last), name, what),
    };
    let line = line.trim_end_matches('.');
    if entry.times > 1 { format!("{line} {}", texts.repeated(entry.times, utc(entry.first))) } else { line.to_owned() }
}

/// The whole log, one event a line, oldest first.
#[must_use]
pub fn log_text(log: &[LogEntry]) -> String {
    log.iter().map(|entry| log_line(entry) + "\n").collect()
}

#[cfg(test)]
mod tests {
    use potluck_panel::{DeviceId, InviteId};

    use super::*;

    fn entry(event: LogEvent) -> LogEntry {
        let at = UnixSeconds(1_795_832_400);
        LogEntry { first: at, last: at, times: 1, device: Some(DeviceId([0xab; 32])), name: "Ann".into(), event }
    }

    #[test]
    fn a_line_says_when_who_and_what() {
        let came = entry(LogEvent::CameIn(Way::Invite(InviteId(7))));
        assert_eq!(log_line(&came), "2026-11-28 02:20:00 UTC  Ann (abab abab) joined with invite 7");
        let refused = entry(LogEvent::Refused("This invite has expired.".into()));
        let again = LogEntry { times: 3, first: UnixSeconds(1_795_832_399), ..refused };
        let expected = "2026-11-28 02:20:00 UTC  Ann (abab abab) was not let in: This invite has expired (3 times since 2026-11-28 02:19:59 UTC)";
        assert_eq!(log_line(&again), expected);
    }

    #[test]
    fn a_renewal_is_no_devices_doing() {
        let renewed = LogEntry { device: None, name: String::new(), times: 2, ..entry(LogEvent::LinkRenewed) };
        let expected = "2026-11-28 02:20:00 UTC  The room's link was replaced (2 times since 2026-11-28 02:20:00 UTC)";
        assert_eq!(log_line(&renewed), expected);
    }

    #[test]
    fn a_name_begins_no_line_and_commands_no_terminal() {
        let named = |name: &str| LogEntry { name: name.into(), device: None, ..entry(LogEvent::Banned) };
        let log = [named("Eve\n2026-11-28 00:00:00 UTC  Ann was banned"), named("\u{1b}]0;x\u{7}\u{202e}"), named(" ")];
        let text = log_text(&log);
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(!text.chars().any(|letter| letter != '\n' && letter.is_control() || letter == '\u{202e}'), "{text}");
        assert!(text.lines().last().is_some_and(|line| line.contains("A device was banned")), "{text}");
    }

    #[test]
    fn days_have_their_dates() {
        for (at, date) in
            [(0, "1970-01-01"), (951_782_400, "2000-02-29"), (1_709_164_800, "2024-02-29"), (u32::MAX, "2106-02-07")]
        {
            assert!(utc(UnixSeconds(at)).starts_with(date), "{}", utc(UnixSeconds(at)));
        }
    }
}
