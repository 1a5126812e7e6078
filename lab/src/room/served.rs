//! What the experts of a device that holds them for others cost it in each round.

use std::time::{Duration, Instant};

use potluck_panel::{CallTimes, OnDemandReport};
use serde_json::{Value, json};

/// A round is over when nothing was called for so long.
pub const QUIET: Duration = Duration::from_millis(1_500);

/// Tells rounds apart.
#[derive(Default)]
pub struct Served {
    /// The newest report, and when it changed.
    newest: Option<(OnDemandReport, Instant)>,
    /// What was printed, and how many rounds that are.
    printed: (OnDemandReport, u32),
}

impl Served {
    /// The line of a round that is over.
    pub fn round(&mut self, report: OnDemandReport, now: Instant) -> Option<Value> {
        match self.newest {
            Some((newest, since)) if newest == report => {
                let (before, rounds) = self.printed;
                if report.tokens <= before.tokens || now.duration_since(since) < QUIET {
                    return None;
                }
                self.printed = (report, rounds + 1);
                Some(line(rounds, &report.since(&before)))
            }
            _ => {
                self.newest = Some((report, now));
                None
            }
        }
    }
}

fn line(round: u32, report: &OnDemandReport) -> Value {
    let all = |a_token: f64| (a_token * report.tokens as f64).round();
    json!({
        "served": round,
        "tokens": report.tokens,
        "slots": report.slots,
        "experts": report.experts,
        "hits": report.hits,
        "misses": report.misses,
        "hinted": report.hinted,
        "stalls": all(report.token_stalls),
        "bytes": all(report.token_bytes),
        "network_bytes": all(report.token_network_bytes),
        "wait_ms": all(report.token_wait_ms),
        "loads": report.loads,
        "load_ms": report.load_ms,
        "calls": report.calls,
        "a_call": a_call(&report.a_call),
    })
}

/// What a call took, in milliseconds; the parts add up to `total`.
fn a_call(times: &CallTimes) -> Value {
    json!({
        "total": times.total(),
        "queued": times.queued,
        "slots_wait": times.slots_wait,
        "reads_wait": times.reads_wait,
        "engine": times.engine,
        "rest": times.rest,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;

    #[test]
    fn a_round_is_a_line_once_nothing_is_called_any_more() {
        let mut served = Served::default();
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let first = OnDemandReport { tokens: 10, hits: 30, misses: 10, token_bytes: 5.0, ..OnDemandReport::default() };
        assert_eq!(served.round(OnDemandReport::default(), at(0)), None);
        assert_eq!(served.round(OnDemandReport::default(), at(5_000)), None, "nobody has called");
        assert_eq!(served.round(first, at(5_100)), None);
        assert_eq!(served.round(first, at(6_000)), None, "it may go on");
        let line = served.round(first, at(6_600)).unwrap();
        assert_eq!((&line["served"], &line["bytes"]), (&json!(0), &json!(50.0)));
        assert_eq!(served.round(first, at(9_000)), None, "once");
        let second = OnDemandReport { tokens: 30, hits: 90, misses: 20, ..first };
        assert_eq!(served.round(second, at(10_000)), None);
        let line = served.round(second, at(12_000)).unwrap();
        assert_eq!((&line["served"], &line["hits"], &line["misses"]), (&json!(1), &json!(60), &json!(10)));
    }
}
