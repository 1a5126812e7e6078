//! Whether a better plan that does not fit beside the active one replaces it. Nobody is answered while it loads, so
//! it happens when nobody is likely to ask, and only for a plan that pays back the wait.

use potluck_panel::KeptReason;
use potluck_plan::{Millis, Plan};
use potluck_planner::{Planned, Room, Sharing, load_millis, predict};

/// After the last answer the room stays up for this long: another question is likely.
const QUIET_MILLIS: f64 = 30_000.0;
/// Expected tokens of the next answer. A room is expected to be used as much again as it was, plus this answer.
const NEXT_ANSWER: u64 = 200;

/// How a room was used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    /// Somebody waits for an answer or in the queue.
    pub waits: bool,
    /// When somebody last waited.
    pub waited: Millis,
    /// Tokens written in total.
    pub tokens: u64,
}

impl Usage {
    /// Nobody waits, and nobody has for a while.
    pub(in crate::coordinator::planning) fn is_quiet(&self, now: Millis) -> bool {
        !self.waits && now.0 - self.waited.0 >= QUIET_MILLIS
    }
}

/// Use of the active plan.
#[derive(Default)]
pub(in crate::coordinator::planning) struct InPlace {
    /// Tokens written when it became active.
    before: u64,
}

/// The better plan does not replace the active one now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::coordinator::planning) struct Refusal {
    pub reason: KeptReason,
    /// Milliseconds that the better plan takes to load.
    wait: f64,
}

impl Refusal {
    /// What everyone in the room is told.
    pub fn sentence(&self) -> String {
        let until = match self.reason {
            KeptReason::RoomInUse { .. } => "it loads once the room is quiet",
            _ => "it would not pay off yet",
        };
        let seconds = (self.wait / 1e3).ceil();
        format!("A better plan takes {seconds} s to load and does not fit beside this one: {until}.")
    }
}

impl InPlace {
    /// Another plan is active from now on.
    pub fn plan_changed(&mut self, tokens: u64) {
        self.before = tokens;
    }

    /// Why the better plan does not replace the active one now; `None` if it does. It must save as much time as loading takes, if
    /// the room is used as much again as it was under the active plan. A plan that is better in something else than speed only
    /// waits until nobody is there.
    pub fn refusal(
        &self,
        room: &Room<'_>,
        better: &Planned,
        active: &Plan,
        usage: Usage,
        now: Millis,
    ) -> Option<Refusal> {
        let is_for_time = better.plan.kv_cache == active.kv_cache
            && (room.sharing == Sharing::Fastest || better.plan.peers().len() == active.peers().len());
        let saved = predict(room, active).token_millis - better.prediction.token_millis;
        let expected = usage.tokens.saturating_sub(self.before) + NEXT_ANSWER;
        let wait = load_millis(room, &better.plan).into_iter().fold(0.0, f64::max);
        let pays = !is_for_time || saved * expected as f64 >= wait;
        let reason = match (pays, usage.is_quiet(now)) {
            (true, true) => return None,
            (true, false) => KeptReason::RoomInUse { load_ms: wait },
            (false, _) => KeptReason::DoesNotPay { load_ms: wait, tokens: expected },
        };
        Some(Refusal { reason, wait })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_one_sentence_for_everyone() {
        let quiet = Refusal { reason: KeptReason::RoomInUse { load_ms: 4_200.0 }, wait: 4_200.0 };
        let expected =
            "A better plan takes 5 s to load and does not fit beside this one: it loads once the room is quiet.";
        assert_eq!(quiet.sentence(), expected);
        let dear = Refusal { reason: KeptReason::DoesNotPay { load_ms: 60_000.0, tokens: 200 }, wait: 60_000.0 };
        let expected = "A better plan takes 60 s to load and does not fit beside this one: it would not pay off yet.";
        assert_eq!(dear.sentence(), expected);
    }

    #[test]
    fn a_room_is_quiet_half_a_minute_after_the_last_answer() {
        let usage = Usage { waits: false, waited: Millis(10_000.0), tokens: 40 };
        assert!(!usage.is_quiet(Millis(10_000.0 + QUIET_MILLIS - 1.0)));
        assert!(usage.is_quiet(Millis(10_000.0 + QUIET_MILLIS)));
        assert!(!Usage { waits: true, ..usage }.is_quiet(Millis(1e9)), "somebody waits");
        let unused = Usage { waited: Millis(f64::MIN), ..usage };
        assert!(unused.is_quiet(Millis(0.0)), "nobody ever asked");
    }
}
