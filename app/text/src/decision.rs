//! A decision of the host in one sentence, for its page, its log and its recording.

mod running;
mod why;

pub use why::{PlanCompared, arithmetic_reason, plans_compared, what_would_change};

use potluck_panel::{
    Compared, Decision, DeferredReason, DeviceDecision, KeptReason, LeftOut, NoPlanReason, Part, PartReason, PeerId,
    Place, PlanDecision, ReplacedReason, StandbyDecision,
};

use crate::texts;

/// Less than this is no difference, in milliseconds.
const SAME_MILLIS: f64 = 0.1;

/// One sentence, or a few. `name`: what a member is called.
#[must_use]
pub fn decision(decision: &Decision, name: impl Fn(PeerId) -> String) -> String {
    match decision {
        Decision::Plan(plan) => plan_decision(plan),
        Decision::Device(device) => device_decision(device, name),
        Decision::Standby(standby) => standby_decision(standby, name),
        Decision::Holder(holder) => running::holder(holder, &name(holder.peer)),
        Decision::Hedging(hedging) => running::hedging(hedging, &name(hedging.peer)),
        Decision::Prediction(prediction) => running::prediction(prediction),
        Decision::Drafts(drafts) => running::drafts(drafts),
    }
}

/// What became of a look for a better plan.
#[must_use]
pub fn plan_decision(decision: &PlanDecision) -> String {
    let texts = &texts().plan_decision;
    match decision {
        PlanDecision::Kept { compared, reason, .. } => kept(*reason, *compared),
        PlanDecision::Replaced { new_ms, active_ms: Some(active_ms), reason, .. } => {
            texts.new_plan_compared(replaced(*reason), *new_ms, *active_ms)
        }
        PlanDecision::Replaced { new_ms, active_ms: None, reason, .. } => texts.new_plan(replaced(*reason), *new_ms),
        PlanDecision::Deferred { reason } => deferred(*reason).to_owned(),
        PlanDecision::NoPlan { reason } => no_plan(*reason),
    }
}

fn kept(reason: KeptReason, Compared { active_ms: active, best_ms: best, needed_ms: needed }: Compared) -> String {
    let texts = &texts().plan_decision;
    match reason {
        KeptReason::IsBest => texts.is_best(active),
        KeptReason::GainTooSmall => texts.gain_too_small(best, active, needed),
        KeptReason::FewerDevices { active, best } => texts.fewer_devices(texts.devices(best), active),
        KeptReason::NotForLongEnough { looks, needed_looks, better_for_ms, needed_for_ms } => {
            texts.not_for_long_enough(best, active, needed_for_ms, needed_looks, better_for_ms, looks)
        }
        KeptReason::AnswersEndFirst => texts.answers_end_first(best, active),
        KeptReason::DoesNotPay { load_ms, tokens } => texts.does_not_pay(best, active, load_ms, tokens),
        KeptReason::RoomInUse { load_ms } => texts.room_in_use(best, active, load_ms),
        KeptReason::AnotherIsPrepared => texts.another_is_prepared(active),
    }
}

fn replaced(reason: ReplacedReason) -> String {
    let texts = &texts().plan_decision;
    match reason {
        ReplacedReason::First => texts.first(),
        ReplacedReason::PlanLost => texts.plan_lost(),
        ReplacedReason::Faster => texts.faster(),
        ReplacedReason::MoreDevices { before, after } => return texts.more_devices(before, after),
        ReplacedReason::CannotGoOn => texts.cannot_go_on(),
        ReplacedReason::SharingChanged => texts.sharing_changed(),
        ReplacedReason::FitsNow => texts.fits_now(),
        ReplacedReason::TakesOver => texts.takes_over(),
    }
    .to_owned()
}

fn deferred(reason: DeferredReason) -> &'static str {
    let texts = &texts().plan_decision;
    match reason {
        DeferredReason::DeviceAway => texts.device_away(),
        DeferredReason::Measuring => texts.measuring(),
        DeferredReason::AnswersEndFirst => texts.spared(),
    }
}

fn no_plan(reason: NoPlanReason) -> String {
    let texts = &texts().plan_decision;
    match reason {
        NoPlanReason::NotEnoughMemory { needed, offered, missing } if missing.0 > 0 => {
            texts.too_little(needed, offered, missing)
        }
        NoPlanReason::NotEnoughMemory { needed, offered, .. } => texts.no_room_for_part(needed, offered),
        NoPlanReason::HostTooSmallForEnds { needed, offered, missing } => {
            texts.host_too_small(needed, offered, missing)
        }
        NoPlanReason::KvCacheType => texts.kv_cache_type().to_owned(),
    }
}

/// What a device gets to do.
#[must_use]
pub fn device_decision(decision: &DeviceDecision, name: impl Fn(PeerId) -> String) -> String {
    let name = name(decision.peer);
    match decision.place {
        Place::Has(part) => texts().device_decision.does(name, does(&part), why_part(part.why)),
        Place::LeftOut(reason) => left_out(&name, reason),
    }
}

fn does(part: &Part) -> String {
    let texts = &texts().device_decision;
    let holds = (part.experts > 0).then(|| texts.holds(part.experts));
    let computes = match (part.blocks, &holds) {
        (0, Some(holds)) => return holds.clone(),
        (0, None) => texts.computes_ends().to_owned(),
        (blocks, _) => texts.computes(blocks),
    };
    let computes = if part.ms > 0.0 { texts.takes(computes, part.ms) } else { computes };
    match holds {
        Some(holds) => texts.both(computes, holds),
        None => computes,
    }
}

fn why_part(why: PartReason) -> String {
    let texts = &texts().device_decision;
    match why {
        PartReason::OnlyDevice => texts.only_device(),
        PartReason::NeededForMemory { needed, others_lend } => return texts.needed_for_memory(needed, others_lend),
        PartReason::EveryoneTakesPart => texts.everyone(),
        PartReason::ExpertsAreSpread => texts.experts_spread(),
        PartReason::Fastest => texts.fastest(),
    }
    .to_owned()
}

fn left_out(name: &str, reason: LeftOut) -> String {
    let texts = &texts().device_decision;
    match reason {
        LeftOut::TooSlow { with_ms, without_ms } if with_ms - without_ms >= SAME_MILLIS => {
            texts.too_slow(name, with_ms, without_ms)
        }
        LeftOut::TooSlow { without_ms, .. } => texts.no_faster(name, without_ms),
        LeftOut::NotEnoughMemory { needed, offered } => texts.too_little(name, offered, needed),
        LeftOut::ExpertsTooFar { needed, offered, trip_ms } => texts.experts_too_far(name, offered, needed, trip_ms),
        LeftOut::BindingTooSmall { needed, binding } => texts.binding_too_small(name, binding, needed),
        LeftOut::Protected => texts.protected(name),
        LeftOut::NoPartLeft => texts.no_part_left(name),
        LeftOut::NoPlan { offered } => texts.waits(name, offered),
    }
}

/// What there is in case a device leaves.
#[must_use]
pub fn standby_decision(decision: &StandbyDecision, name: impl Fn(PeerId) -> String) -> String {
    let texts = &texts().device_decision;
    let lost = name(decision.lost());
    match decision {
        StandbyDecision::Made { helpers, ready, .. } => {
            let helpers = helpers.iter().map(|peer| name(*peer)).collect::<Vec<String>>().join(", ");
            match (ready, helpers.is_empty()) {
                (true, true) => texts.held_by_others(lost),
                (true, false) => texts.held(lost, helpers),
                (false, _) => texts.loading(lost, helpers),
            }
        }
        StandbyDecision::NotMade { missing, .. } if missing.0 > 0 => texts.not_held_for_want(lost, *missing),
        StandbyDecision::NotMade { .. } => texts.not_held(lost),
    }
}

#[cfg(test)]
mod tests {
    use potluck_panel::{Bytes, Compared, PlanEpoch};

    use super::*;

    const A: PeerId = PeerId([1; 16]);
    const B: PeerId = PeerId([2; 16]);

    fn name(peer: PeerId) -> String {
        if peer == A { "Laptop".into() } else { "Phone".into() }
    }

    fn kept_for(reason: KeptReason) -> String {
        let compared = Compared { active_ms: 41.2, best_ms: 39.9, needed_ms: 36.8 };
        decision(&Decision::Plan(PlanDecision::Kept { epoch: PlanEpoch(3), compared, reason }), name)
    }

    #[test]
    fn a_plan_that_stays_says_what_it_was_compared_with() {
        assert_eq!(
            kept_for(KeptReason::IsBest),
            "This plan stays. It should take 41 ms per token, and no other plan is expected to be faster."
        );
        assert_eq!(
            kept_for(KeptReason::GainTooSmall),
            "This plan stays. The best alternative would take 40 ms per token instead of 41 ms. Switching pays off only below 37 ms."
        );
        let waits = KeptReason::NotForLongEnough {
            looks: 2,
            needed_looks: 3,
            better_for_ms: 10_000.0,
            needed_for_ms: 19_000.0,
        };
        assert_eq!(
            kept_for(waits),
            "This plan stays for now. Another plan would take 40 ms per token instead of 41 ms, but the room switches only once that \
             plan has been better for at least 19.0 s and in 3 checks in a row. So far: 10.0 s, and 2 of 3 checks."
        );
        let fewer = kept_for(KeptReason::FewerDevices { active: 3, best: 1 });
        assert_eq!(
            fewer,
            "This plan stays. The best alternative would use only 1 device instead of 3, and you chose to use as many devices as possible."
        );
        let does_not_pay = kept_for(KeptReason::DoesNotPay { load_ms: 8_000.0, tokens: 320 });
        assert!(
            does_not_pay.contains("loading it would take 8.0 s") && does_not_pay.contains("the 320 tokens"),
            "{does_not_pay}"
        );
        let in_use = kept_for(KeptReason::RoomInUse { load_ms: 8_000.0 });
        assert!(
            in_use.starts_with("This plan stays while the room is in use. ") && in_use.contains("8.0 s"),
            "{in_use}"
        );
    }

    #[test]
    fn a_plan_that_is_replaced_says_what_is_gained() {
        let replaced = |active_ms, reason| {
            plan_decision(&PlanDecision::Replaced { epoch: PlanEpoch(4), new_ms: 20.0, active_ms, reason })
        };
        assert_eq!(
            replaced(Some(41.2), ReplacedReason::Faster),
            "This plan is expected to be faster than the previous one. Each token should take 20 ms instead of 41 ms."
        );
        assert_eq!(
            replaced(None, ReplacedReason::First),
            "This is the best plan for the memory lent. Each token should take 20 ms."
        );
    }

    #[test]
    fn a_room_that_is_too_small_says_what_is_missing() {
        let none = |missing| {
            let (needed, offered) = (Bytes(3_200_000_000), Bytes(2_000_000_000));
            plan_decision(&PlanDecision::NoPlan { reason: NoPlanReason::NotEnoughMemory { needed, offered, missing } })
        };
        assert_eq!(
            none(Bytes(1_200_000_000)),
            "The model cannot run: it needs 3.2 GB, and the devices lend 2 GB. With 1.2 GB more it fits."
        );
        assert!(none(Bytes(0)).ends_with("no device has room for one of the parts. Lend more on one device."));
    }

    #[test]
    fn each_device_is_told_why() {
        let place = |peer, place| device_decision(&DeviceDecision { peer, place }, name);
        let part = |why| Place::Has(Part { blocks: 6, experts: 0, ms: 12.3, lends: Bytes(40_000_000), why });
        assert_eq!(
            place(A, part(PartReason::OnlyDevice)),
            "Laptop computes 6 blocks, 12 ms per token. It is the only device that lends memory."
        );
        let needed = PartReason::NeededForMemory { needed: Bytes(60_000_000), others_lend: Bytes(40_000_000) };
        assert_eq!(
            place(A, part(needed)),
            "Laptop computes 6 blocks, 12 ms per token. Without it the model does not fit: the model needs 60 MB, and the other devices lend only 40 MB."
        );
        let holds =
            Place::Has(Part { blocks: 0, experts: 24, ms: 0.0, lends: Bytes(1), why: PartReason::ExpertsAreSpread });
        assert_eq!(
            place(B, holds),
            "Phone holds 24 experts for others. You chose to spread the experts over the devices."
        );
        let slow = |with_ms| Place::LeftOut(LeftOut::TooSlow { with_ms, without_ms: 12.3 });
        assert_eq!(
            place(B, slow(60.0)),
            "Phone is a spare: a token would take 60 ms with it, and takes 12 ms without."
        );
        assert_eq!(
            place(B, slow(12.3)),
            "Phone is a spare: answers would not be faster with it. Without it, a token takes 12 ms."
        );
        let small = Place::LeftOut(LeftOut::NotEnoughMemory { needed: Bytes(9_000_000), offered: Bytes(4_000_000) });
        assert_eq!(place(B, small), "Phone is not used: it lends 4 MB, and the smallest part takes 9 MB.");
    }

    #[test]
    fn a_standby_says_who_takes_over() {
        let made = |ready| StandbyDecision::Made { lost: B, helpers: vec![A], ready };
        assert_eq!(standby_decision(&made(true), name), "If Phone leaves, a copy of its part is already on Laptop.");
        let missing = StandbyDecision::NotMade { lost: B, missing: Bytes(4_000_000) };
        assert_eq!(
            standby_decision(&missing, name),
            "If Phone leaves, other devices have to load its part first, because they lack 4 MB of memory for a copy."
        );
    }
}
