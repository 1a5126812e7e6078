//! Which plans were compared, and what would change the choice.

use potluck_panel::{
    Arithmetic, DeviceDecision, KeptReason, LeftOut, NoPlanReason, PeerId, Place, PlanDecision, WhyPlan,
};

use super::SAME_MILLIS;
use crate::{duration_ms, texts};

/// A plan and the time of its tokens, both in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanCompared {
    /// Which plan.
    pub plan: String,
    /// How long a token takes with it.
    pub takes: String,
}

impl PlanCompared {
    fn new(plan: impl Into<String>, millis: f64) -> Self {
        Self { plan: plan.into(), takes: duration_ms(millis) }
    }
}

/// The plans that were compared, the chosen one first. `name`: what a member is called.
#[must_use]
pub fn plans_compared(why: &WhyPlan, name: impl Fn(PeerId) -> String) -> Vec<PlanCompared> {
    let texts = &texts().why;
    let mut plans = match &why.plan {
        PlanDecision::Kept { compared, reason, .. } => {
            let this = PlanCompared::new(texts.this_plan(), compared.active_ms);
            let best = PlanCompared::new(texts.best_other(), compared.best_ms);
            let needed = PlanCompared::new(texts.to_beat(), compared.needed_ms);
            match reason {
                KeptReason::IsBest => vec![this, needed],
                KeptReason::FewerDevices { .. } => vec![this, best],
                _ => vec![this, best, needed],
            }
        }
        PlanDecision::Replaced { new_ms, active_ms, .. } => {
            let before = active_ms.map(|active| PlanCompared::new(texts.plan_before(), active));
            [Some(PlanCompared::new(texts.new_plan(), *new_ms)), before].into_iter().flatten().collect()
        }
        PlanDecision::Deferred { .. } | PlanDecision::NoPlan { .. } => Vec::new(),
    };
    let with = |device: &DeviceDecision| match device.place {
        Place::LeftOut(LeftOut::TooSlow { with_ms, .. }) => {
            Some(PlanCompared::new(texts.with_device(name(device.peer)), with_ms))
        }
        _ => None,
    };
    plans.extend(why.devices.iter().filter_map(with));
    if let Some(compared) = &why.spreading {
        plans.push(PlanCompared::new(texts.experts_spread(compared.trips), compared.spread_ms));
        let takes = compared.whole_ms.map_or_else(|| texts.does_not_fit().to_owned(), duration_ms);
        plans.push(PlanCompared { plan: texts.whole_blocks().to_owned(), takes });
    }
    if let Some(compared) = &why.ends {
        plans.push(PlanCompared::new(texts.ends_anywhere(), compared.free_ms));
    }
    plans
}

/// How products are computed, and what that means.
#[must_use]
pub fn arithmetic_reason(arithmetic: Arithmetic) -> &'static str {
    match arithmetic {
        Arithmetic::Exact => texts().why.exact(),
        Arithmetic::Packed => texts().why.packed(),
        Arithmetic::Matrix => texts().why.matrix(),
    }
}

/// What would change the choice, a sentence each.
#[must_use]
pub fn what_would_change(why: &WhyPlan, name: impl Fn(PeerId) -> String) -> Vec<String> {
    let plan = match &why.plan {
        PlanDecision::Kept { compared, reason, .. } => kept(*reason, compared.needed_ms),
        PlanDecision::NoPlan { reason: NoPlanReason::NotEnoughMemory { missing, .. } } if missing.0 > 0 => {
            Some(texts().why.devices_lend(*missing))
        }
        PlanDecision::NoPlan { reason: NoPlanReason::HostTooSmallForEnds { missing, .. } } => {
            Some(texts().why.host_lends(*missing))
        }
        PlanDecision::NoPlan { .. } | PlanDecision::Replaced { .. } | PlanDecision::Deferred { .. } => None,
    };
    let devices = why.devices.iter().filter_map(|device| match device.place {
        Place::LeftOut(reason) => left_out(&name(device.peer), reason),
        Place::Has(_) => None,
    });
    plan.into_iter().chain(devices).collect()
}

fn kept(reason: KeptReason, needed_ms: f64) -> Option<String> {
    let texts = &texts().why;
    match reason {
        KeptReason::IsBest | KeptReason::GainTooSmall => Some(texts.another_is_faster(needed_ms)),
        KeptReason::NotForLongEnough { better_for_ms, needed_for_ms, .. } => {
            Some(texts.stays_better((needed_for_ms - better_for_ms).max(0.0)))
        }
        KeptReason::FewerDevices { .. } => Some(texts.fewer_wanted().to_owned()),
        KeptReason::AnswersEndFirst => Some(texts.answers_end().to_owned()),
        KeptReason::RoomInUse { .. } => Some(texts.is_quiet().to_owned()),
        KeptReason::DoesNotPay { .. } => Some(texts.is_used_more().to_owned()),
        KeptReason::AnotherIsPrepared => None,
    }
}

fn left_out(name: &str, reason: LeftOut) -> Option<String> {
    let texts = &texts().why;
    match reason {
        LeftOut::TooSlow { with_ms, without_ms } if with_ms - without_ms >= SAME_MILLIS => {
            Some(texts.device_saves(name, with_ms - without_ms))
        }
        LeftOut::TooSlow { .. } => Some(texts.everyone_chosen(name)),
        LeftOut::NotEnoughMemory { needed, offered } | LeftOut::ExpertsTooFar { needed, offered, .. } => {
            Some(texts.device_lends(name, needed.saturating_sub(offered)))
        }
        LeftOut::BindingTooSmall { .. } => Some(texts.shorter_context(name)),
        LeftOut::Protected | LeftOut::NoPartLeft | LeftOut::NoPlan { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use potluck_panel::{Bytes, Compared, EndsCompared, PlanEpoch, SpreadingCompared};

    use super::*;

    const PHONE: PeerId = PeerId([2; 16]);

    fn why(reason: KeptReason, devices: Vec<DeviceDecision>) -> WhyPlan {
        let compared = Compared { active_ms: 41.2, best_ms: 39.9, needed_ms: 36.8 };
        let plan = PlanDecision::Kept { epoch: PlanEpoch(3), compared, reason };
        WhyPlan { chosen: None, plan, arithmetic: None, devices, spreading: None, ends: None, standbys: Vec::new() }
    }

    fn spare(with_ms: f64) -> DeviceDecision {
        DeviceDecision { peer: PHONE, place: Place::LeftOut(LeftOut::TooSlow { with_ms, without_ms: 41.2 }) }
    }

    fn rows(why: &WhyPlan) -> Vec<String> {
        let row = |row: PlanCompared| format!("{}: {}", row.plan, row.takes);
        plans_compared(why, |_| "Phone".into()).into_iter().map(row).collect()
    }

    #[test]
    fn plans_are_listed_with_the_time_of_a_token() {
        let stays = why(KeptReason::GainTooSmall, vec![spare(90.0)]);
        let expected =
            ["This plan: 41 ms", "The best alternative: 40 ms", "Time to beat: 37 ms", "With Phone as well: 90 ms"];
        assert_eq!(rows(&stays), expected);
        let spreading = Some(SpreadingCompared { trips: 1, spread_ms: 52.0, whole_ms: None });
        let best = WhyPlan { spreading, ..why(KeptReason::IsBest, Vec::new()) };
        let expected = [
            "This plan: 41 ms",
            "Time to beat: 37 ms",
            "Experts spread, 1 round trip per token: 52 ms",
            "Whole blocks, experts not spread: does not fit",
        ];
        assert_eq!(rows(&best), expected);
    }

    #[test]
    fn what_it_costs_to_keep_ones_words_is_listed() {
        let ends = Some(EndsCompared { kept_ms: 41.2, free_ms: 30.4 });
        let kept = WhyPlan { ends, ..why(KeptReason::IsBest, Vec::new()) };
        let expected =
            ["This plan: 41 ms", "Time to beat: 37 ms", "With the first and the last block on any device: 30 ms"];
        assert_eq!(rows(&kept), expected);
        let reason = NoPlanReason::HostTooSmallForEnds {
            needed: Bytes(900_000_000),
            offered: Bytes(500_000_000),
            missing: Bytes(400_000_000),
        };
        let none = WhyPlan { plan: PlanDecision::NoPlan { reason }, ..why(KeptReason::IsBest, Vec::new()) };
        assert_eq!(
            what_would_change(&none, |_| "Phone".into()),
            ["If this device lends 400 MB more, or if you open the room without “Keep my words here”."]
        );
        assert_eq!(
            crate::plan_decision(&none.plan),
            "The model cannot run: with “Keep my words here”, this device needs 900 MB for the first and the last block, and it lends 500 MB. Lend 400 MB more, or open the room without that option."
        );
    }

    #[test]
    fn what_would_change_the_choice_is_said_with_its_numbers() {
        let change = |why: &WhyPlan| what_would_change(why, |_| "Phone".into());
        let expected = [
            "If another plan is expected to take less than 37 ms per token.",
            "If Phone or its connection gets faster by 49 ms per token, or if you choose “Everyone takes part”.",
        ];
        assert_eq!(change(&why(KeptReason::IsBest, vec![spare(90.0)])), expected);
        let soon = KeptReason::NotForLongEnough {
            looks: 2,
            needed_looks: 3,
            better_for_ms: 10_000.0,
            needed_for_ms: 19_000.0,
        };
        assert_eq!(change(&why(soon, Vec::new())), ["If the other plan is still better in 9.0 s."]);
        let reason = NoPlanReason::NotEnoughMemory { needed: Bytes(9), offered: Bytes(5), missing: Bytes(4) };
        let none = WhyPlan { plan: PlanDecision::NoPlan { reason }, ..why(KeptReason::IsBest, Vec::new()) };
        assert_eq!(change(&none), ["If the devices lend 4 bytes more."]);
    }
}
