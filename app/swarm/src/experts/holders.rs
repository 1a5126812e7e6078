//! What is known of holders of experts: how long they take, and whether they answer at all. It outlives a plan.

use std::collections::BTreeMap;

use potluck_plan::{Bytes, KernelClass, Millis, PeerId};
use potluck_protocol::{HolderReport, Work};

use super::hedging::{self, ENOUGH};
use super::late::{self, Lateness};
use super::latency::Latencies;

/// Another holder is asked if there is no answer for this long (moex.txt 4.3), until it is known how long a holder takes…
const FIRST_TIMEOUT_MILLIS: f64 = 500.0;
/// … and so many bytes a millisecond are assumed to get through: a megabyte a second.
const SLOW_BYTES_A_MILLI: f64 = 1_000.0;
/// From then on: so many times the 95th percentile, within these limits. A garbage collection is not a timeout.
const TIMEOUT_FACTOR: f64 = 3.0;
const MIN_TIMEOUT_MILLIS: f64 = 100.0;
const MAX_TIMEOUT_MILLIS: f64 = 10_000.0;
/// After so many timeouts in a row a holder is asked only if there is nobody else, until its next heartbeat (moex.txt
/// 4.3).
const UNHEALTHY: u32 = 3;
/// Weight of the newest call in the means.
const NEWEST: f64 = 0.1;

/// How much a call asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CallSize {
    pub class: KernelClass,
    /// Bytes of call and answer together.
    pub bytes: u64,
    /// Vectors to compute.
    pub pairs: usize,
}

impl CallSize {
    /// What times are compared in. Decoded tokens take about as long as each other; chunks of prompts take longer the
    /// larger they are.
    fn scale(self) -> f64 {
        match self.class {
            KernelClass::Decode => 1.0,
            KernelClass::Prefill => self.pairs.max(1) as f64,
        }
    }
}

/// How long calls took from the question to the answer, in what times are compared in.
#[derive(Clone, Debug, Default)]
struct RoundTrips {
    /// Of decoded tokens, milliseconds.
    decode: Latencies,
    /// Of chunks, milliseconds a vector that was computed.
    prefill: Latencies,
}

impl RoundTrips {
    fn of(&self, class: KernelClass) -> &Latencies {
        match class {
            KernelClass::Decode => &self.decode,
            KernelClass::Prefill => &self.prefill,
        }
    }

    fn of_mut(&mut self, class: KernelClass) -> &mut Latencies {
        match class {
            KernelClass::Decode => &mut self.decode,
            KernelClass::Prefill => &mut self.prefill,
        }
    }

    /// The 95th percentile; `None` before enough is known.
    fn slow(&self, class: KernelClass) -> Option<f64> {
        let latencies = self.of(class);
        if latencies.len() < ENOUGH { None } else { latencies.quantile(0.95) }
    }
}

#[derive(Clone, Debug, Default)]
struct Holder {
    all: RoundTrips,
    /// Without answers that came after somebody else's: one that is slow now does not get more time for that.
    in_time: RoundTrips,
    /// Engine milliseconds of calls of decoded tokens.
    engine: Latencies,
    /// Mean vectors of such a call.
    pairs: f64,
    /// Timeouts since the last answer or heartbeat.
    timeouts: u32,
    /// Timeouts in all.
    all_timeouts: u32,
    /// Calls that it has refused since its last answer.
    unable: u32,
    lateness: Lateness,
    answers: u32,
    hedges: u32,
    hedges_won: u32,
    work: Work,
}

impl Holder {
    fn is_healthy(&self) -> bool {
        self.timeouts < UNHEALTHY && self.unable < UNHEALTHY
    }

    /// It answers.
    fn is_there(&mut self) {
        (self.timeouts, self.lateness) = (0, Lateness::default());
    }
}

/// All holders that were asked, by their proven identity.
#[derive(Debug, Default)]
pub(crate) struct Holders {
    known: BTreeMap<PeerId, Holder>,
}

impl Holders {
    /// A holder answered after `millis`, of which its engine took `engine`. No holder can have taken longer than we waited.
    pub fn answered(&mut self, peer: PeerId, size: CallSize, millis: f64, engine: f64) {
        let holder = self.known.entry(peer).or_default();
        holder.is_there();
        holder.unable = 0;
        holder.answers = holder.answers.saturating_add(1);
        for trips in [&mut holder.all, &mut holder.in_time] {
            trips.of_mut(size.class).answered(millis / size.scale());
        }
        let most = millis.max(0.0);
        let engine = if engine.is_nan() { most } else { engine.clamp(0.0, most) };
        holder.work.gpu_millis += engine;
        if size.class == KernelClass::Decode {
            holder.engine.answered(engine);
            let pairs = size.pairs as f64;
            holder.pairs = if holder.pairs == 0.0 { pairs } else { holder.pairs + NEWEST * (pairs - holder.pairs) };
        }
    }

    /// A call was given up after `millis`: somebody else was quicker.
    pub fn cancelled(&mut self, peer: PeerId, size: CallSize, millis: f64) {
        let holder = self.known.entry(peer).or_default();
        for trips in [&mut holder.all, &mut holder.in_time] {
            trips.of_mut(size.class).cancelled(millis / size.scale());
        }
        holder.lateness.given_up();
    }

    /// A late call was left open for `millis`, and given up without an answer.
    pub fn gave_no_answer(&mut self, peer: PeerId, size: CallSize, millis: f64) {
        let holder = self.known.entry(peer).or_default();
        holder.all.of_mut(size.class).cancelled(millis / size.scale());
    }

    /// A call takes much longer than this holder's calls do: new calls prefer others until it answers or refuses, for twelve seconds
    /// at most.
    pub fn is_late(&mut self, peer: PeerId, now: Millis) {
        self.known.entry(peer).or_default().lateness.is_late(now);
    }

    /// A late answer, after `millis`, for which nobody waits any more: the holder is there, and was slow.
    pub fn answered_late(&mut self, peer: PeerId, size: CallSize, millis: f64) {
        let holder = self.known.entry(peer).or_default();
        holder.is_there();
        holder.unable = 0;
        holder.all.of_mut(size.class).answered(millis / size.scale());
    }

    /// It cannot answer a call, and is there.
    pub fn refused(&mut self, peer: PeerId) {
        self.known.entry(peer).or_default().is_there();
    }

    /// One of its calls is left open though nobody waits for it.
    pub fn has_to_show(&self, peer: PeerId, now: Millis) -> bool {
        self.known.get(&peer).is_some_and(|holder| holder.lateness.has_to_show(now))
    }

    /// Others are asked rather than this holder, which is late with other calls.
    pub fn is_overtaken(&self, peer: PeerId, now: Millis) -> bool {
        self.known.get(&peer).is_some_and(|holder| holder.lateness.is_overtaken(now))
    }

    /// It refused a call for experts that it holds. Other blocks need not find that out one by one.
    pub fn unable(&mut self, peer: PeerId) {
        let holder = self.known.entry(peer).or_default();
        holder.unable = holder.unable.saturating_add(1);
    }

    pub fn timed_out(&mut self, peer: PeerId) {
        let holder = self.known.entry(peer).or_default();
        holder.timeouts = holder.timeouts.saturating_add(1);
        holder.all_timeouts = holder.all_timeouts.saturating_add(1);
    }

    /// It sent so many bytes of outputs.
    pub fn sent(&mut self, peer: PeerId, bytes: u64) {
        let work = &mut self.known.entry(peer).or_default().work;
        work.bytes = work.bytes.saturating_add(Bytes(bytes));
    }

    /// So many tokens, which leave their stage now, have used its outputs.
    pub fn computed_for(&mut self, peer: PeerId, tokens: u64) {
        if let Some(holder) = self.known.get_mut(&peer) {
            holder.work.tokens = holder.work.tokens.saturating_add(tokens);
        }
    }

    /// A copy of a call was sent to it.
    pub fn hedged(&mut self, peer: PeerId) {
        self.known.entry(peer).or_default().hedges += 1;
    }

    /// Its answer to a copy came first.
    pub fn hedge_won(&mut self, peer: PeerId) {
        self.known.entry(peer).or_default().hedges_won += 1;
    }

    /// It said that it is there. Its GPU may still be slow, so a late call stays late.
    pub fn heartbeat(&mut self, peer: PeerId) {
        if let Some(holder) = self.known.get_mut(&peer) {
            holder.timeouts = 0;
            holder.lateness.is_there();
            // It is tried once more.
            holder.unable = holder.unable.min(UNHEALTHY - 1);
        }
    }

    /// It said that it has no part in the plan any more: it is asked last until its next heartbeat.
    pub fn absent(&mut self, peer: PeerId) {
        self.known.entry(peer).or_default().timeouts = UNHEALTHY;
    }

    /// It left: whoever comes back is another device.
    pub fn forget(&mut self, peer: PeerId) {
        self.known.remove(&peer);
    }

    pub fn is_healthy(&self, peer: PeerId) -> bool {
        self.known.get(&peer).is_none_or(Holder::is_healthy)
    }

    /// Milliseconds after which another holder is asked.
    pub fn timeout(&self, peer: PeerId, size: CallSize) -> f64 {
        match self.known.get(&peer).and_then(|holder| holder.all.slow(size.class)) {
            Some(slow) => (TIMEOUT_FACTOR * slow * size.scale()).clamp(MIN_TIMEOUT_MILLIS, MAX_TIMEOUT_MILLIS),
            None => FIRST_TIMEOUT_MILLIS + size.bytes as f64 / SLOW_BYTES_A_MILLI,
        }
    }

    /// Milliseconds after which a copy of a call goes to another holder; `None` before it is known how long this one
    /// takes.
    pub fn hedge_delay(&self, peer: PeerId, size: CallSize) -> Option<f64> {
        Some(hedging::delay(self.known.get(&peer)?.all.of(size.class))? * size.scale())
    }

    /// Milliseconds after which a call is late; `None` before any holder is known. One that is not known yet has as long as the
    /// slowest of the others.
    pub fn late_after(&self, peer: PeerId, size: CallSize) -> Option<f64> {
        let own = self.known.get(&peer).and_then(|holder| holder.in_time.slow(size.class));
        let slowest =
            || self.known.values().filter_map(|holder| holder.in_time.slow(size.class)).max_by(f64::total_cmp);
        Some(late::late_after(own.or_else(slowest)? * size.scale()))
    }

    /// For the planner and the page. `open`: unanswered calls of a holder.
    pub fn reports(&self, open: impl Fn(PeerId) -> u32) -> Vec<HolderReport> {
        let report = |(peer, holder): (&PeerId, &Holder)| HolderReport {
            peer: *peer,
            answers: holder.answers,
            round_trip_millis: holder.all.decode.quantile(0.5).unwrap_or(0.0),
            slow_millis: holder.all.decode.quantile(0.95).unwrap_or(0.0),
            engine_millis: holder.engine.quantile(0.5).unwrap_or(0.0),
            experts: holder.pairs,
            hedges: holder.hedges,
            hedges_won: holder.hedges_won,
            open: open(*peer),
            timeouts: holder.all_timeouts,
            is_unhealthy: !holder.is_healthy(),
            work: holder.work,
        };
        self.known.iter().map(report).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: PeerId = PeerId([3; 16]);
    const TOKEN: CallSize = CallSize { class: KernelClass::Decode, bytes: 50_000, pairs: 4 };

    #[test]
    fn a_timeout_is_half_a_second_at_first_and_measured_later() {
        let mut holders = Holders::default();
        assert_eq!(holders.timeout(PEER, TOKEN), 550.0);
        (0..ENOUGH).for_each(|_| holders.answered(PEER, TOKEN, 80.0, 2.0));
        assert_eq!(holders.timeout(PEER, TOKEN), 240.0);
        (0..100).for_each(|_| holders.answered(PEER, TOKEN, 1.0, 0.5));
        assert_eq!(holders.timeout(PEER, TOKEN), MIN_TIMEOUT_MILLIS, "a short pause is not a timeout");
    }

    #[test]
    fn a_long_chunk_is_given_more_time_than_a_short_one() {
        let mut holders = Holders::default();
        let chunk = |pairs, bytes| CallSize { class: KernelClass::Prefill, bytes, pairs };
        (0..ENOUGH).for_each(|_| holders.answered(PEER, chunk(100, 1_000_000), 400.0, 2.0));
        assert_eq!(holders.timeout(PEER, chunk(100, 1_000_000)), 1_200.0);
        assert_eq!(holders.timeout(PEER, chunk(400, 4_000_000)), 4_800.0);
        assert_eq!(
            holders.timeout(PEER, chunk(400, 500_000)),
            4_800.0,
            "a sum takes as long as the vectors that it is made of"
        );
    }

    #[test]
    fn three_timeouts_in_a_row_make_a_holder_unhealthy_until_its_heartbeat() {
        let mut holders = Holders::default();
        (0..2).for_each(|_| holders.timed_out(PEER));
        holders.answered(PEER, TOKEN, 80.0, 2.0);
        (0..2).for_each(|_| holders.timed_out(PEER));
        assert!(holders.is_healthy(PEER), "an answer came between");
        holders.timed_out(PEER);
        assert!(!holders.is_healthy(PEER));
        holders.heartbeat(PEER);
        assert!(holders.is_healthy(PEER));
    }

    #[test]
    fn a_call_is_late_after_twice_its_holders_own_95th_percentile() {
        let (mut holders, other) = (Holders::default(), PeerId([4; 16]));
        assert_eq!(holders.late_after(PEER, TOKEN), None, "nothing is known");
        (0..ENOUGH).for_each(|_| holders.answered(PEER, TOKEN, 40.0, 2.0));
        assert_eq!(holders.late_after(PEER, TOKEN), Some(80.0));
        assert_eq!(holders.late_after(other, TOKEN), Some(80.0), "another one has as long, until it is known");
        (0..ENOUGH).for_each(|_| holders.answered(other, TOKEN, 10.0, 2.0));
        assert_eq!(holders.late_after(other, TOKEN), Some(20.0));
    }

    #[test]
    fn answers_that_came_too_late_do_not_give_a_holder_more_time() {
        let mut holders = Holders::default();
        (0..64).for_each(|_| holders.answered(PEER, TOKEN, 40.0, 2.0));
        (0..4).for_each(|_| holders.answered_late(PEER, TOKEN, 5_000.0));
        (0..4).for_each(|_| holders.gave_no_answer(PEER, TOKEN, 12_000.0));
        assert_eq!(holders.late_after(PEER, TOKEN), Some(80.0));
        let [report] = holders.reports(|_| 0)[..] else { panic!("one holder") };
        assert_eq!(report.slow_millis, 12_000.0, "the planner knows of them: one in eight");
    }

    #[test]
    fn a_late_holder_is_overtaken_until_it_answers() {
        let heard: [fn(&mut Holders); 3] = [
            |holders| holders.answered(PEER, TOKEN, 80.0, 2.0),
            |holders| holders.answered_late(PEER, TOKEN, 500.0),
            |holders| holders.refused(PEER),
        ];
        for heard in heard {
            let mut holders = Holders::default();
            holders.is_late(PEER, Millis(100.0));
            holders.heartbeat(PEER);
            assert!(holders.is_overtaken(PEER, Millis(101.0)), "a slow GPU beats, too");
            heard(&mut holders);
            assert!(!holders.is_overtaken(PEER, Millis(101.0)));
        }
    }

    #[test]
    fn a_holder_cannot_claim_to_have_computed_for_longer_than_it_took() {
        let mut holders = Holders::default();
        holders.answered(PEER, TOKEN, 8.0, 1e9);
        holders.answered(PEER, TOKEN, 8.0, f64::NAN);
        let [report] = holders.reports(|_| 0)[..] else { panic!("one holder") };
        assert!(report.engine_millis <= 8.0, "{report:?}");
        assert!(report.work.gpu_millis <= 16.0, "two calls of 8 ms: {report:?}");
    }

    #[test]
    fn a_report_counts_what_a_holder_did_and_how_it_answers() {
        let mut holders = Holders::default();
        (1..=20).for_each(|millis| holders.answered(PEER, TOKEN, f64::from(millis), 0.5));
        holders.sent(PEER, 4_096);
        holders.computed_for(PEER, 20);
        (0..3).for_each(|_| holders.timed_out(PEER));
        let [report] = holders.reports(|_| 2)[..] else { panic!("one holder") };
        assert_eq!(report.work, Work { tokens: 20, gpu_millis: 10.0, bytes: Bytes(4_096) });
        assert_eq!((report.round_trip_millis, report.slow_millis), (10.0, 19.0));
        assert_eq!((report.timeouts, report.is_unhealthy, report.open), (3, true, 2));
        holders.heartbeat(PEER);
        let [report] = holders.reports(|_| 0)[..] else { panic!("one holder") };
        assert_eq!((report.timeouts, report.is_unhealthy), (3, false), "it is there again, and the count stays");
    }
}
