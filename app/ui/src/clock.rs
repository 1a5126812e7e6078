//! Whether this device's clock is right: an invite ends by the host's clock and by the relay's.

use gloo_net::http::Request;
use potluck_relay_api::path;
use potluck_text::texts;

use crate::browser;

/// Milliseconds by which clocks may differ; the relay lets an invite end five minutes late.
const ALLOWED: f64 = 3.0 * 60e3;

/// What to say if this device's clock and the relay's differ too much. Nothing if the relay does not tell its time.
pub async fn warning() -> Option<String> {
    let reply = Request::get(path::HEALTH).send().await.ok()?;
    let relays = js_sys::Date::parse(&reply.headers().get("date")?);
    difference(relays, browser::now()).map(said)
}

/// Minutes by which two clocks, in milliseconds, differ; `None` if that does not matter.
fn difference(relays: f64, own: f64) -> Option<u64> {
    let apart = (relays - own).abs();
    // A date that cannot be read is no number.
    (apart > ALLOWED).then_some((apart / 60e3).round() as u64)
}

fn said(minutes: u64) -> String {
    let texts = &texts().invite;
    let apart = match minutes {
        0..120 => texts.minutes(minutes),
        120..2_880 => texts.hours_apart(minutes / 60),
        _ => texts.days(minutes / 1_440),
    };
    texts.clocks_differ(&apart)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_that_differ_by_more_than_an_invite_may_be_late_are_told() {
        let now = 1.8e12;
        assert_eq!(difference(now, now + 170e3), None);
        assert_eq!(difference(now, now - 170e3), None);
        assert_eq!(difference(f64::NAN, now), None, "the relay's time cannot be read");
        assert_eq!(difference(now, now + 190e3), Some(3));
        assert_eq!(difference(now, 0.0), Some(30_000_000), "a clock that was never set");
    }

    #[test]
    fn the_difference_is_told_in_a_fitting_unit() {
        for (minutes, words) in [(3, "3 min"), (119, "119 min"), (150, "2 h"), (30_000_000, "20,833 days")] {
            assert!(said(minutes).contains(words), "{minutes}: {}", said(minutes));
        }
    }
}
