//! Phrases about experts that lie on several devices, and about what devices have computed.

use potluck_panel::{
    DraftCount, ExpertsView, ForesightReport, Guessing, HolderView, LoadReport, OnDemandReport, Status, Work,
};
use potluck_text::{sentences, texts};

use super::{bytes, rate};

/// "48 round trips per token, 3.1 ms of 9.4 ms"; `None` before the first token. `token_ms`: what a token takes in all.
#[must_use]
pub fn trips_line(experts: &ExpertsView, token_ms: f64) -> Option<String> {
    if experts.trips_ms <= 0.0 {
        return None;
    }
    let (texts, trips) = (&texts().experts, experts.trips.round().max(1.0) as u64);
    // Tokens of several conversations share their round trips.
    Some(if token_ms > experts.trips_ms {
        texts.trips_of(trips, experts.trips_ms, token_ms)
    } else {
        texts.trips(trips, experts.trips_ms)
    })
}

/// "Each token loads 12 MB from this device's storage. Of the 24 experts that a token uses, 22 were already in memory (91%). …"
#[must_use]
pub fn on_demand_line(report: &OnDemandReport) -> String {
    let texts = &texts().on_demand;
    if report.tokens == 0 {
        return texts.waits(report.slots, report.experts);
    }
    let (loaded, fetched) = (report.token_bytes as u64, report.token_network_bytes as u64);
    let a_token = |all: u64| (all as f64 / report.tokens as f64).round() as u64;
    let (hits, used) = (a_token(report.hits), a_token(report.hits + report.misses));
    let (percent, waits, time) = (100.0 * report.recall, report.token_stalls, report.token_wait_ms);
    let loads = match fetched {
        0 => texts.from_storage(loaded, hits, used, percent, waits, time),
        fetched if fetched >= loaded => texts.over_network(loaded, hits, used, percent, waits, time),
        fetched => texts.partly_over_network(loaded, fetched, hits, used, percent, waits, time),
    };
    let guesses = match &report.guesses {
        Some(guesses) => guesses_line(guesses, report.guessed_bytes),
        None if report.guessed_bytes > 0 => texts.asked(report.guessed_bytes),
        None => String::new(),
    };
    sentences(&[&loads, &texts.in_memory(report.slots, report.experts), &guesses])
}

/// "Experts are loaded in advance: 12 MB loaded so far; 85% of the experts that were used had been guessed."
fn guesses_line(report: &ForesightReport, guessed_bytes: u64) -> String {
    let texts = &texts().on_demand;
    let guessed = report.recall.map(|recall| texts.guessed(100.0 * recall)).unwrap_or_default();
    match report.guessing {
        Guessing::Trying => texts.trying(guessed, guessed_bytes),
        Guessing::On | Guessing::Always => texts.ahead(guessed, guessed_bytes),
        Guessing::Off => texts.off(guessed, guessed_bytes),
    }
}

/// "Over 120 tokens, a smaller copy of the model guessed 87% of the experts that were used. It takes 14 MB of memory."; `None` if this device has none.
#[must_use]
pub fn shadow_line(status: &Status) -> Option<String> {
    let shadow = status.shadow?;
    let words = &texts().guesser;
    // It speaks to others or to this device.
    let reports = [status.hints, status.on_demand.and_then(|report| report.guesses)];
    let measured = reports.into_iter().flatten().find_map(|report| Some((report.shadow?, report.shadow_tokens)));
    let line = match measured.filter(|_| shadow.ready) {
        Some((recall, tokens)) => words.measured(tokens, 100.0 * recall, shadow.bytes),
        None if shadow.ready => words.made(shadow.bytes),
        None => words.making(shadow.bytes),
    };
    let drafts = status.drafts.map(|drafts| drafts.from_shadow).filter(|drafts| drafts.sent > 0);
    Some(match drafts {
        Some(DraftCount { sent, accepted }) => sentences(&[&line, &words.drafts(accepted, sent)]),
        None => line,
    })
}

/// "1,536 experts, each on 2 devices or more, 2.4 on average".
#[must_use]
pub fn replicas_line(experts: &ExpertsView) -> String {
    let texts = &texts().experts;
    texts.replicas(experts.fewest_holders, texts.count(experts.pooled), experts.mean_holders)
}

/// "12 experts have fewer than 2 holders. Copies are being loaded."; `None` if all have enough.
#[must_use]
pub fn short_line(experts: &ExpertsView) -> Option<String> {
    let loads = experts.holders.iter().any(|holder| holder.ordered > 0);
    let next = if loads { texts().experts.copies_load() } else { texts().experts.no_room() };
    let short = || texts().experts.short(experts.short, experts.wanted_holders);
    (experts.short > 0).then(|| sentences(&[&short(), next]))
}

/// "3 requests under way · 40 backup requests to a second device, 31 answered first · 2 timeouts".
#[must_use]
pub fn calls_line(experts: &ExpertsView) -> String {
    let texts = &texts().experts;
    let mut parts = vec![texts.calls(experts.open_calls)];
    if experts.hedges > 0 {
        parts.push(texts.hedges(experts.hedges, experts.hedges_won));
    }
    let timeouts: u32 = experts.holders.iter().map(|holder| holder.timeouts).sum();
    if timeouts > 0 {
        parts.push(texts.timeouts(timeouts));
    }
    parts.join(" · ")
}

/// "96 experts, 310 MB".
#[must_use]
pub fn holding_line(holder: &HolderView) -> String {
    format!("{}, {}", texts().experts.count(holder.experts), bytes(holder.bytes.0))
}

/// "5.1 ms per request, 95% within 9.0 ms"; `None` before the first.
#[must_use]
pub fn call_times(holder: &HolderView) -> Option<String> {
    let times = || texts().experts.call_times(holder.median_ms, holder.slow_ms);
    (holder.median_ms > 0.0).then(times)
}

/// "Loading expert 12 of 64: 34 MB of 180 MB · 12 MB/s"; `None` if it loads none.
#[must_use]
pub fn residency_line(holder: &HolderView) -> Option<String> {
    let all = u64::from(holder.ordered);
    let counted = holder.loading.filter(|loading| loading.total.0 > 0);
    match counted {
        _ if all == 0 => None,
        None => Some(texts().experts.loading(holder.ordered)),
        Some(LoadReport { done, total, rate: speed, .. }) => {
            let (done, total) = (done.0.min(total.0), total.0);
            // Experts of a model have almost the same size.
            let now = (u128::from(done) * u128::from(all) / u128::from(total)) as u64 + 1;
            let line = texts().experts.loading_one(now.min(all), all, done, total);
            Some(if speed >= 1.0 && done < total { format!("{line} · {}", rate(speed)) } else { line })
        }
    }
}

/// "1,204 tokens · 12.3 s of GPU time · 34 MB sent".
#[must_use]
pub fn work_line(work: &Work) -> String {
    let texts = &texts().credit;
    texts.work(texts.tokens(work.tokens), work.gpu_millis, work.bytes)
}

#[cfg(test)]
mod tests {
    use potluck_panel::{Bytes, DraftReport, LoadPhase, ShadowReport};

    use super::*;
    use crate::table::fixtures::holder;

    fn experts() -> ExpertsView {
        ExpertsView { pooled: 1_536, fewest_holders: 2, mean_holders: 2.41, wanted_holders: 2, ..Default::default() }
    }

    #[test]
    fn the_cost_of_round_trips_is_shown_once_it_is_measured() {
        let mut experts = experts();
        assert_eq!(trips_line(&experts, 9.4), None);
        (experts.trips, experts.trips_ms) = (47.8, 3.1);
        assert_eq!(trips_line(&experts, 9.4).as_deref(), Some("48 round trips per token, 3.1 ms of 9.4 ms"));
        assert_eq!(trips_line(&experts, 2.0).as_deref(), Some("48 round trips per token, 3.1 ms"), "they are shared");
    }

    #[test]
    fn replicas_are_counted_and_missing_ones_named() {
        let mut experts = experts();
        assert_eq!(replicas_line(&experts), "1,536 experts, each on 2 devices or more, 2.4 on average");
        assert_eq!(short_line(&experts), None);
        (experts.short, experts.fewest_holders) = (12, 1);
        let none = "12 experts have fewer than 2 holders. No device has room for more copies.";
        assert_eq!(short_line(&experts).as_deref(), Some(none));
        experts.holders = vec![HolderView { ordered: 12, ..holder("a") }];
        let loads = "12 experts have fewer than 2 holders. Copies are being loaded.";
        assert_eq!(short_line(&experts).as_deref(), Some(loads));
    }

    #[test]
    fn calls_name_only_what_has_happened() {
        let mut experts = ExpertsView { open_calls: 1, ..experts() };
        assert_eq!(calls_line(&experts), "1 request under way");
        (experts.hedges, experts.hedges_won) = (40, 31);
        experts.holders = vec![HolderView { timeouts: 2, ..holder("a") }];
        assert_eq!(
            calls_line(&experts),
            "1 request under way · 40 backup requests to a second device, 31 answered first · 2 timeouts"
        );
    }

    #[test]
    fn a_holder_shows_what_it_holds_how_it_answers_and_what_it_loads() {
        let mut holder = HolderView { experts: 96, bytes: Bytes(310_000_000), ..holder("a") };
        assert_eq!(holding_line(&holder), "96 experts, 310 MB");
        assert_eq!((call_times(&holder), residency_line(&holder)), (None, None));
        (holder.median_ms, holder.slow_ms, holder.ordered) = (5.1, 9.0, 64);
        assert_eq!(call_times(&holder).as_deref(), Some("5.1 ms per request, 95% within 9.0 ms"));
        assert_eq!(residency_line(&holder).as_deref(), Some("Loading 64 experts"));
        let (done, total) = (Bytes(34_000_000), Bytes(180_000_000));
        holder.loading = Some(LoadReport { done, total, rate: 12e6, ..LoadReport::begin(LoadPhase::Download) });
        assert_eq!(residency_line(&holder).as_deref(), Some("Loading expert 13 of 64: 34 MB of 180 MB · 12 MB/s"));
        holder.loading = Some(LoadReport { done: total, total, ..LoadReport::begin(LoadPhase::Upload) });
        assert_eq!(residency_line(&holder).as_deref(), Some("Loading expert 64 of 64: 180 MB of 180 MB"));
    }

    #[test]
    fn what_a_device_computed_is_one_line() {
        let work = Work { tokens: 1_204, gpu_millis: 12_300.0, bytes: Bytes(34_000_000) };
        assert_eq!(work_line(&work), "1,204 tokens · 12.3 s of GPU time · 34 MB sent");
    }

    #[test]
    fn a_shadow_says_how_much_it_knows_once_that_is_measured() {
        let mut status = Status::default();
        assert_eq!(shadow_line(&status), None);
        status.shadow = Some(ShadowReport { bytes: 14_000_000, ready: false });
        let making = "A smaller copy of the model is being made to guess experts. It takes 14 MB.";
        assert_eq!(shadow_line(&status).as_deref(), Some(making));
        status.shadow = Some(ShadowReport { bytes: 14_000_000, ready: true });
        let made = "A smaller copy of the model is ready to guess experts. It takes 14 MB.";
        assert_eq!(shadow_line(&status).as_deref(), Some(made));
        let guesses = ForesightReport { shadow: Some(0.87), shadow_tokens: 120, ..ForesightReport::default() };
        let measured = "Over 120 tokens, a smaller copy of the model guessed 87% of the experts that were used. It takes 14 MB of memory.";
        status.on_demand = Some(OnDemandReport { guesses: Some(guesses), ..OnDemandReport::default() });
        assert_eq!(shadow_line(&status).as_deref(), Some(measured), "of this device's experts");
        (status.on_demand, status.hints) = (None, Some(guesses));
        assert_eq!(shadow_line(&status).as_deref(), Some(measured), "of those of others");
        let from_shadow = DraftCount { sent: 40, accepted: 36 };
        status.drafts = Some(DraftReport { from_shadow, ..DraftReport::default() });
        let drafts = format!("{measured} It also guessed tokens: 36 of 40 were right.");
        assert_eq!(shadow_line(&status), Some(drafts));
    }

    #[test]
    fn experts_on_demand_say_what_a_token_loads() {
        let report = OnDemandReport { slots: 16, experts: 48, ..OnDemandReport::default() };
        let waiting = "The model does not fit in this device's memory. 16 of its 48 experts are loaded, and the others are loaded when they are needed.";
        assert_eq!(on_demand_line(&report), waiting);
        let report = OnDemandReport {
            tokens: 9,
            hits: 198,
            misses: 18,
            recall: 198.0 / 216.0,
            token_bytes: 12e6,
            token_stalls: 0.4,
            token_wait_ms: 8.1,
            ..report
        };
        let line = |from: &str| {
            format!(
                "Each token loads 12 MB{from}. Of the 24 experts that a token uses, 22 were already in memory (92%). On average, each token waits 0.4 times for experts to load, 8.1 ms in total. 16 of 48 experts are in memory."
            )
        };
        assert_eq!(on_demand_line(&report), line(" from this device's storage"));
        let partly = OnDemandReport { token_network_bytes: 3e6, ..report };
        assert_eq!(on_demand_line(&partly), line(": 3 MB of it over the network, the rest from this device's storage"));
        let evicted = OnDemandReport { token_network_bytes: 12e6, ..report };
        assert_eq!(on_demand_line(&evicted), line(" over the network"), "groups of bytes are read whole");
        let report = OnDemandReport { guessed_bytes: 34_000_000, ..report };
        let hinted = on_demand_line(&report);
        assert!(hinted.ends_with("Other devices ask this one to load experts in advance: 34 MB so far."), "{hinted}");
        let guesses = ForesightReport { guessing: Guessing::On, recall: Some(0.85), ..ForesightReport::default() };
        let guessed = on_demand_line(&OnDemandReport { guesses: Some(guesses), ..report });
        assert!(guessed.ends_with("Experts are loaded in advance: 34 MB loaded so far; 85% of the experts that were used had been guessed."), "{guessed}");
    }
}
