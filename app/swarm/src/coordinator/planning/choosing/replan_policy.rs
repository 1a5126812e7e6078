//! When a better plan is looked for, and whether it is worth a change.

use potluck_plan::Millis;

use super::hysteresis::Hysteresis;
use super::in_place::InPlace;
use crate::coordinator::planning::observed::Drift;

/// A better plan is looked for this often, whatever happens.
const CHECK_MILLIS: f64 = 10_000.0;
/// … and this often while tokens are written: they wait for a search, which takes up to 50 ms with 48 blocks of 128 experts.
const ANSWERING_CHECK_MILLIS: f64 = 30_000.0;
/// After a loss that the active plan can spare, answers in progress end before another plan that is merely better is prepared:
/// a change costs them more than the plan gains. A room that is always busy waits for this long, and for the next look.
const LET_END_MILLIS: f64 = 30_000.0;

#[derive(Default)]
pub(in crate::coordinator::planning) struct ReplanPolicy {
    /// When a plan was last looked for.
    checked: Millis,
    /// When the active plan's times were last predicted.
    pub predicted: Millis,
    /// Planning waits until devices have timed themselves.
    pub awaits_calibration: bool,
    /// The active plan has to go, once the answers that are being given have ended.
    pub when_idle: bool,
    /// When a device left that the active plan could spare, and answers that were in progress go on.
    spared: Option<Millis>,
    pub in_place: InPlace,
    pub drift: Drift,
    pub hysteresis: Hysteresis,
}

impl ReplanPolicy {
    /// A plan is looked for now.
    pub fn checked(&mut self, now: Millis) {
        self.checked = now;
    }

    /// A plan is to be looked for at the next tick.
    pub fn check_soon(&mut self) {
        self.checked = Millis(f64::MIN);
    }

    /// Nobody has looked for a while.
    pub fn is_check_due(&self, answering: bool, now: Millis) -> bool {
        now.0 - self.checked.0 >= if answering { ANSWERING_CHECK_MILLIS } else { CHECK_MILLIS }
    }

    /// A device left, and the active plan goes on without it. Further losses do not make answers' time longer.
    pub fn spared(&mut self, now: Millis) {
        self.spared.get_or_insert(now);
    }

    /// Whether a plan that is merely better waits until the answers in progress have ended.
    pub fn lets_answers_end(&mut self, answering: bool, now: Millis) -> bool {
        self.spared.take_if(|since| !answering || now.0 - since.0 >= LET_END_MILLIS);
        self.spared.is_some()
    }

    /// Another plan is active from now on; `tokens` were written in the room so far.
    pub fn plan_changed(&mut self, tokens: u64) {
        self.hysteresis.over();
        self.in_place.plan_changed(tokens);
        self.spared = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_end_before_a_better_plan_after_a_loss_that_costs_nothing() {
        let mut policy = ReplanPolicy::default();
        assert!(!policy.lets_answers_end(true, Millis(0.0)), "nobody left");
        policy.spared(Millis(1_000.0));
        assert!(policy.lets_answers_end(true, Millis(1_000.0)));
        assert!(policy.lets_answers_end(true, Millis(30_000.0)));
        assert!(!policy.lets_answers_end(false, Millis(30_100.0)), "they have ended");
        assert!(!policy.lets_answers_end(true, Millis(30_200.0)), "the next one began after the loss");
    }

    #[test]
    fn nobody_looks_for_a_better_plan_so_often_while_tokens_are_written() {
        let mut policy = ReplanPolicy::default();
        policy.checked(Millis(1_000.0));
        assert!(!policy.is_check_due(false, Millis(10_000.0)) && policy.is_check_due(false, Millis(11_000.0)));
        assert!(!policy.is_check_due(true, Millis(30_000.0)) && policy.is_check_due(true, Millis(31_000.0)));
        policy.check_soon();
        assert!(policy.is_check_due(true, Millis(0.0)), "there is a reason to look");
    }

    #[test]
    fn a_room_that_is_always_busy_does_not_wait_for_ever() {
        let mut policy = ReplanPolicy::default();
        for loss in 0..3 {
            policy.spared(Millis(f64::from(loss) * 10_000.0));
        }
        assert!(policy.lets_answers_end(true, Millis(LET_END_MILLIS - 1.0)));
        assert!(!policy.lets_answers_end(true, Millis(LET_END_MILLIS)), "the last loss does not begin it anew");
    }

    #[test]
    fn another_plan_ends_the_wait() {
        let mut policy = ReplanPolicy::default();
        policy.spared(Millis(0.0));
        policy.plan_changed(0);
        assert!(!policy.lets_answers_end(true, Millis(1.0)));
    }
}
