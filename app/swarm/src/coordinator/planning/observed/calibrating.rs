//! Has each device time two ranges of the model's blocks before it is planned with (dynamic-partitioning.txt 4.3.2).

use std::collections::{BTreeMap, BTreeSet};

use potluck_plan::{Millis, PeerId};
use potluck_planner::measures::{Calibrated, Calibration, typical};
use potluck_planner::{Layers, Speed};
use potluck_protocol::{CalibrationRuns, Frame};

use crate::event::OpenedModel;
use crate::event_context::EventContext;
use crate::members::Member;

/// Planning waits this long for a device's times; later ones count as well.
const TIMEOUT_MILLIS: f64 = 5_000.0;

/// Limit on the pauses that are evaluated.
const MAX_PAUSES: usize = 8;

/// Cost model of a device, solved from its times.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::coordinator::planning) struct Profile {
    /// Milliseconds of a piece of work besides its layers.
    pub session_millis: f64,
    /// Layer cost that the device gets through in a millisecond.
    pub speed: Speed,
    /// Overhead in milliseconds and cost a millisecond without pauses. Overhead and blocks do not slow down alike, so
    /// the figures for a device that waits for others differ from those for one that holds the whole model.
    pub alone: (f64, f64),
    /// Cost of the LM head, in the units of the blocks' costs, if it was timed.
    pub lm_head: Option<f64>,
    /// Slowdown after pauses, as [`potluck_planner::Device::pauses`].
    pub pauses: Vec<(f64, f64)>,
}

struct Asked {
    /// Its GPU adapter: with another one it is another device.
    adapter: String,
    at: Millis,
    answer: Option<Result<CalibrationRuns, String>>,
}

/// The devices that were asked, and their answers. For one model.
#[derive(Default)]
pub(in crate::coordinator::planning) struct Calibrating {
    asked: BTreeMap<PeerId, Asked>,
}

impl Calibrating {
    /// Asks available devices that were not asked yet, if there is a choice to make: a single device gets everything,
    /// however fast it is.
    pub fn ask(&mut self, model: &OpenedModel, not: &BTreeSet<PeerId>, cx: &mut EventContext) {
        if cx.members.known.values().filter(|member| member.is_available()).count() > 1 {
            self.ask_all(model, not, cx);
        }
    }

    /// Asks all available devices that were not asked yet, but `not` these: they have no memory to be timed in, and are asked
    /// once they have, also if they refused before; or no block of a protected model to be timed with.
    pub fn ask_all(&mut self, model: &OpenedModel, not: &BTreeSet<PeerId>, cx: &mut EventContext) {
        self.asked.retain(|peer, asked| !not.contains(peer) || !matches!(asked.answer, Some(Err(_))));
        let with_budget: Vec<(&PeerId, &Member)> =
            cx.members.known.iter().filter(|(_, member)| member.is_available()).collect();
        for (peer, member) in with_budget.into_iter().filter(|(peer, _)| !not.contains(peer)) {
            let adapter = &member.hello.adapter;
            if self.asked.get(peer).is_none_or(|asked| asked.adapter != *adapter) {
                self.asked.insert(*peer, Asked { adapter: adapter.clone(), at: cx.now, answer: None });
                cx.out.send(*peer, Frame::Calibrate(Box::new(model.card.clone())));
            }
        }
    }

    /// Times of a device may still arrive in time.
    pub fn is_waited_for(&self, cx: &EventContext) -> bool {
        let is_available = |peer: &PeerId| cx.members.get(*peer).is_some_and(Member::is_available);
        let waits = |asked: &Asked| asked.answer.is_none() && cx.now.0 - asked.at.0 < TIMEOUT_MILLIS;
        self.asked.iter().any(|(peer, asked)| waits(asked) && is_available(peer))
    }

    /// Takes a device's times. False if nobody waits for them.
    pub fn answered(&mut self, peer: PeerId, answer: Result<CalibrationRuns, String>) -> bool {
        let Some(asked) = self.asked.get_mut(&peer) else { return false };
        let waits = match &asked.answer {
            None => true,
            // If the rest could not be timed, the known times stay.
            Some(Ok(runs)) => runs.pauses_follow && answer.is_ok(),
            Some(Err(_)) => false,
        };
        if waits {
            asked.answer = Some(answer);
        }
        waits
    }

    /// True if a device has sent times, or that it has none.
    pub fn has_answered(&self, peer: PeerId) -> bool {
        self.asked.get(&peer).is_some_and(|asked| asked.answer.is_some())
    }

    /// How many devices have answered.
    pub fn timed(&self) -> usize {
        self.asked.values().filter(|asked| asked.answer.is_some()).count()
    }

    /// Cost model of a device, if its times make sense.
    pub fn profile(&self, peer: PeerId, layers: &Layers) -> Option<Profile> {
        profile(self.asked.get(&peer)?.answer.as_ref()?.as_ref().ok()?, layers)
    }
}

/// Solves for overhead and speed. `None` if the ranges do not fit the model, or no speed explains the times.
fn profile(runs: &CalibrationRuns, layers: &Layers) -> Option<Profile> {
    let (short, long) = (runs.short, runs.long);
    let blocks = layers.count().saturating_sub(2);
    let is_part = short.start == long.start && short.start < short.end && short.end < long.end;
    if !is_part || usize::from(long.end) > blocks {
        return None;
    }
    let (short_cost, long_cost) = (layers.decode_cost(short), layers.decode_cost(long));
    let busy = Decode::of(&runs.decode_short, &runs.decode_long, &runs.decode_lm_head, short_cost, long_cost)?;
    let tokens = f64::from(runs.chunk);
    let prefill = Calibration::of(&runs.prefill_short, &runs.prefill_long)
        .solve(layers.prefill_cost(short) * tokens, layers.prefill_cost(long) * tokens);
    let decode = after_pauses(runs, short_cost, long_cost).unwrap_or(busy);
    Some(Profile {
        session_millis: decode.session_millis,
        alone: (busy.session_millis, busy.speed),
        speed: Speed {
            decode: decode.speed,
            // A device too slow to be timed with a chunk gains by chunks what others do.
            prefill: prefill.map_or(busy.speed * Speed::PREFILL_GAIN, |solved| solved.speed),
        },
        lm_head: decode.lm_head,
        pauses: pauses(runs),
    })
}

/// Cost of a decoded token on a device.
#[derive(Clone, Copy, Debug)]
struct Decode {
    session_millis: f64,
    speed: f64,
    lm_head: Option<f64>,
}

impl Decode {
    fn of(short: &[f64], long: &[f64], lm_head: &[f64], short_cost: f64, long_cost: f64) -> Option<Self> {
        let Calibrated { session_millis, speed, .. } =
            Calibration::of(short, long).solve(short_cost, long_cost).ok()?;
        let lm_head = typical(lm_head) - typical(short);
        Some(Self {
            session_millis,
            speed,
            lm_head: (lm_head.is_finite() && lm_head >= 0.0).then_some(lm_head * speed),
        })
    }
}

/// Slowdown of decoded tokens after each pause.
fn pauses(runs: &CalibrationRuns) -> Vec<(f64, f64)> {
    let busy = typical(&runs.decode_long);
    let after = |(pause, runs): &(f64, Vec<f64>)| (*pause, typical(&settled(runs)) / busy);
    let mut pauses: Vec<(f64, f64)> = runs.decode_paused.iter().take(MAX_PAUSES).map(after).collect();
    pauses.retain(|(pause, factor)| pause.is_finite() && factor.is_finite() && *pause > 0.0);
    pauses.sort_by(|a, b| a.0.total_cmp(&b.0));
    pauses
}

/// Cost after the middle pause, expressed as if the device were never idle: where several devices share a model,
/// pauses are the rule, and overhead, blocks and LM head do not slow down alike.
fn after_pauses(runs: &CalibrationRuns, short_cost: f64, long_cost: f64) -> Option<Decode> {
    let (_, long) = runs.decode_paused.get(CalibrationRuns::middle_pause(runs.decode_paused.len()))?;
    let [short, long, lm_head] = [&runs.short_paused, long, &runs.lm_head_paused].map(|runs| settled(runs));
    let paused = Decode::of(&short, &long, &lm_head, short_cost, long_cost)?;
    let factor = typical(&long) / typical(&runs.decode_long);
    let usable = factor.is_finite() && factor >= 1.0;
    usable.then(|| Decode {
        session_millis: paused.session_millis / factor,
        speed: paused.speed * factor,
        // The same at any clock, in units of the blocks' costs.
        lm_head: paused.lm_head,
    })
}

/// The last third of the runs: a clock falls after a second or two.
fn settled(runs: &[f64]) -> Vec<f64> {
    runs[runs.len() * 2 / 3..].to_vec()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use potluck_plan::{BlockRange, WireType};

    use super::*;
    use crate::examples;

    fn layers() -> Layers {
        Layers::from_shape(&examples::shape(6, 0), 64, WireType::F32)
    }

    /// 2 ms of overhead, 160 bytes a millisecond, 10 ms for the LM head.
    fn runs() -> CalibrationRuns {
        CalibrationRuns {
            short: BlockRange::new(1, 2),
            long: BlockRange::new(1, 4),
            decode_short: vec![3.0; 7],
            decode_long: vec![5.0; 7],
            decode_lm_head: vec![13.0; 7],
            decode_paused: vec![
                (30.0, vec![5.0, 5.0, 5.0, 20.0, 20.0, 20.0]),
                (10.0, vec![7.5; 4]),
                (50.0, Vec::new()),
            ],
            short_paused: Vec::new(),
            lm_head_paused: Vec::new(),
            pauses_follow: false,
            chunk: 10,
            prefill_short: vec![4.0; 3],
            prefill_long: vec![8.0; 3],
        }
    }

    #[test]
    fn two_ranges_give_overhead_speed_and_lm_head_cost() {
        let found = profile(&runs(), &layers()).unwrap();
        let speed = Speed { decode: 160.0, prefill: 800.0 };
        let pauses = vec![(10.0, 1.5), (30.0, 4.0)];
        assert_eq!(found, Profile { session_millis: 2.0, speed, alone: (2.0, 160.0), lm_head: Some(1_600.0), pauses });
    }

    #[test]
    fn ranges_that_the_model_does_not_have_are_refused() {
        let with = |short, long| profile(&CalibrationRuns { short, long, ..runs() }, &layers());
        assert_eq!(with(BlockRange::new(0, 1), BlockRange::new(0, 7)), None, "the model has six blocks");
        assert_eq!(with(BlockRange::new(0, 3), BlockRange::new(0, 3)), None, "the ranges are one");
        assert_eq!(with(BlockRange::new(2, 2), BlockRange::new(2, 4)), None, "the short one is empty");
        assert_eq!(with(BlockRange::new(1, 2), BlockRange::new(0, 4)), None, "they begin at different blocks");
    }

    #[test]
    fn unexplainable_times_are_refused_and_missing_ones_left_out() {
        let equal = CalibrationRuns { decode_long: vec![3.0; 7], ..runs() };
        assert_eq!(profile(&equal, &layers()), None);
        let lies = CalibrationRuns { decode_long: vec![f64::NAN; 7], ..runs() };
        assert_eq!(profile(&lies, &layers()), None);
        let slow = CalibrationRuns { decode_lm_head: Vec::new(), prefill_long: Vec::new(), ..runs() };
        let found = profile(&slow, &layers()).unwrap();
        assert_eq!((found.lm_head, found.speed.prefill), (None, 8.0 * 160.0));
    }

    #[test]
    fn times_after_pauses_may_follow_later_or_never() {
        let peer = PeerId([1; 16]);
        let asked = Asked { adapter: String::new(), at: Millis(0.0), answer: None };
        let mut calibrating = Calibrating { asked: BTreeMap::from([(peer, asked)]) };
        let pauses = |calibrating: &Calibrating| calibrating.profile(peer, &layers()).unwrap().pauses.len();
        let early = CalibrationRuns { decode_paused: Vec::new(), pauses_follow: true, ..runs() };
        assert!(calibrating.answered(peer, Ok(early)));
        assert_eq!(pauses(&calibrating), 0);
        assert!(!calibrating.answered(peer, Err("The device is busy.".to_owned())), "the speed is known all the same");
        assert_eq!(pauses(&calibrating), 0);
        assert!(calibrating.answered(peer, Ok(runs())));
        assert_eq!(pauses(&calibrating), 2);
        assert!(!calibrating.answered(peer, Ok(runs())), "nobody waits for a third answer");
    }

    #[test]
    fn costs_are_those_after_the_middle_pause() {
        // After 30 ms: 8 ms of overhead, 40 bytes a millisecond, 32 ms for the LM head. The long range takes four
        // times as long.
        let waits = CalibrationRuns {
            decode_paused: vec![(10.0, vec![7.5; 9]), (30.0, vec![20.0; 9])],
            short_paused: vec![12.0; 9],
            lm_head_paused: vec![44.0; 9],
            ..runs()
        };
        let found = profile(&waits, &layers()).unwrap();
        assert_eq!((found.session_millis * 4.0, found.speed.decode / 4.0), (8.0, 40.0));
        assert_eq!(found.lm_head.map(|cost| cost / 40.0), Some(32.0));
        assert_eq!(found.speed.prefill, 800.0, "prompts keep a GPU busy");
        assert_eq!(found.alone, (2.0, 160.0), "a device that holds everything never waits");
    }
}
