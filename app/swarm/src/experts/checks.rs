//! Spot checks: a small share of answers is computed again by another holder of the same arithmetic. If both differ by more than
//! rounding, a third one decides who was wrong. Nobody waits for a check.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use potluck_plan::{BlockIndex, ExpertHolder, KernelClass, Millis, StageId};

use super::gather::CallShare;
use crate::likeness::{self, Likeness};

/// Checks that may be under way: more would be work that nobody asked for.
const MAX_OPEN: usize = 16;
/// A check without an answer for this long is dropped.
const GIVE_UP_MILLIS: f64 = 10_000.0;

/// Part of the share that is checked where the other holder may have to load experts.
const LOADING: f64 = 0.1;

/// What a check costs the holder that is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CheckEffort {
    /// It has the experts.
    Compute,
    /// It may have to load them, and drop some that it needs.
    Load,
}

/// One answer that is computed again.
#[derive(Clone, Debug)]
pub(super) struct Check {
    pub stage: StageId,
    pub block: BlockIndex,
    pub class: KernelClass,
    pub share: CallShare,
    pub began: Millis,
    /// Who computed it, and what.
    pub answers: Vec<(ExpertHolder, Vec<f32>)>,
    /// Who is asked now.
    pub asked: ExpertHolder,
}

/// What an answer to a check says.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum CheckResult {
    /// Both computed the same, up to rounding: equal names do not say that drivers and browsers are equal.
    Agree,
    /// They did not: a third one has to decide.
    Differ,
    /// This one was wrong.
    Wrong(ExpertHolder),
    /// Three differ from each other: nobody can say who is right.
    Unknown,
}

impl Check {
    /// Takes the answer of the checker. `is_trusted`: its answer counts without a third one.
    pub fn answered(&mut self, outputs: &[f32], is_trusted: impl Fn(ExpertHolder) -> bool) -> CheckResult {
        let width = (outputs.len() / self.share.vectors().max(1)).max(1);
        let same = |known: &[f32]| likeness::rows(known, outputs, width) != Likeness::Different;
        match &self.answers[..] {
            [(_, first)] if same(first) => CheckResult::Agree,
            [(first, _)] if is_trusted(self.asked) => CheckResult::Wrong(*first),
            [(first, _)] if is_trusted(*first) => CheckResult::Wrong(self.asked),
            [_] => {
                self.answers.push((self.asked, outputs.to_vec()));
                CheckResult::Differ
            }
            [(_, first), (second, _)] if same(first) => CheckResult::Wrong(*second),
            [(first, _), (_, second)] if same(second) => CheckResult::Wrong(*first),
            _ => CheckResult::Unknown,
        }
    }

    /// All experts of the check.
    pub fn experts(&self) -> impl Iterator<Item = potluck_plan::ExpertId> {
        self.share.rows.iter().flatten().copied()
    }
}

/// Which answers are checked, and the checks under way by their call.
#[derive(Debug, Default)]
pub(super) struct Checks {
    /// Of 1.
    share: f64,
    open: BTreeMap<u64, Check>,
}

impl Checks {
    pub fn new(share: f64) -> Self {
        Self { share: if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }, open: BTreeMap::new() }
    }

    /// True for the share of answers that is checked. `call`: with the host's secret; `secret`: numbers of the stage. Holders know
    /// neither, so none can tell which of its answers are checked.
    pub fn wants(&self, call: (u64, u64), secret: impl Iterator<Item = u32>, effort: CheckEffort) -> bool {
        let share = match effort {
            CheckEffort::Compute => self.share,
            CheckEffort::Load => self.share * LOADING,
        };
        if share == 0.0 || self.open.len() >= MAX_OPEN {
            return false;
        }
        let mut hasher = DefaultHasher::new();
        call.hash(&mut hasher);
        secret.for_each(|bits| bits.hash(&mut hasher));
        (hasher.finish() as f64 / u64::MAX as f64) < share
    }

    pub fn open(&mut self, call: u64, check: Check) {
        self.open.insert(call, check);
    }

    /// The stage whose answer this holder is asked to check.
    pub fn stage_of(&self, call: u64, holder: ExpertHolder) -> Option<StageId> {
        self.open.get(&call).filter(|check| check.asked == holder).map(|check| check.stage)
    }

    /// Ends the check of a call that this holder was asked for.
    pub fn take(&mut self, call: u64, holder: ExpertHolder) -> Option<Check> {
        self.open.get(&call).filter(|check| check.asked == holder)?;
        self.open.remove(&call)
    }

    pub fn forget_old(&mut self, now: Millis) {
        self.open.retain(|_, check| now.0 - check.began.0 < GIVE_UP_MILLIS);
    }
}

#[cfg(test)]
mod tests {
    use potluck_plan::PeerId;

    use super::*;

    const A: ExpertHolder = ExpertHolder::Peer(PeerId([1; 16]));
    const B: ExpertHolder = ExpertHolder::Peer(PeerId([2; 16]));
    const C: ExpertHolder = ExpertHolder::Peer(PeerId([3; 16]));

    fn check() -> Check {
        let share = CallShare::default();
        let (stage, block, class) = (StageId(0), BlockIndex(0), KernelClass::Decode);
        Check { stage, block, class, share, began: Millis(0.0), answers: vec![(A, vec![1.0])], asked: B }
    }

    #[test]
    fn a_third_answer_decides_who_was_wrong() {
        let nobody = |_| false;
        assert_eq!(check().answered(&[1.0], nobody), CheckResult::Agree);
        assert_eq!(check().answered(&[1.000_001], nobody), CheckResult::Agree, "another driver rounds otherwise");
        for (third, expected) in
            [(1.0, CheckResult::Wrong(B)), (2.0, CheckResult::Wrong(A)), (3.0, CheckResult::Unknown)]
        {
            let mut check = check();
            assert_eq!(check.answered(&[2.0], nobody), CheckResult::Differ);
            check.asked = C;
            assert_eq!(check.answered(&[third], nobody), expected, "{third}");
        }
    }

    #[test]
    fn the_hosts_word_counts_without_a_third_one() {
        assert_eq!(check().answered(&[2.0], |holder| holder == B), CheckResult::Wrong(A), "B is the host");
        assert_eq!(check().answered(&[2.0], |holder| holder == A), CheckResult::Wrong(B), "A is");
    }

    #[test]
    fn about_the_share_is_checked_and_nobody_can_tell_which() {
        let by = |share: f64, secret: u32, effort| {
            let checks = Checks::new(share);
            (0..10_000).filter(|call| checks.wants((*call, 5), std::iter::once(secret), effort)).collect::<Vec<u64>>()
        };
        let checked = |share, secret| by(share, secret, CheckEffort::Compute);
        let few = checked(0.02, 7);
        assert!((150..250).contains(&few.len()), "{} of 10,000", few.len());
        assert_ne!(few, checked(0.02, 8), "it depends on what the stage alone knows");
        let loading = by(0.02, 7, CheckEffort::Load).len();
        assert!((8..35).contains(&loading), "{loading} of 10,000 where experts may have to be loaded");
        assert!(checked(f64::NAN, 7).is_empty() && checked(-1.0, 7).is_empty());
    }
}
