//! Phrases about experts that lie on several devices, and about what devices have computed.

use potluck_panel::{
    DraftCount, ExpertsView, ForesightReport, Guessing, HolderView, LoadReport, OnDemandReport, Status, Work,
};
use potluck_text::{fill, texts};

use super::{bytes, count, duration_ms, plural, rate};

/// "48 round trips per token, 3.1 ms of 9.4 ms"; `None` before the first token. `token_ms`: what a token takes in all.
#[must_use]
pub fn trips_line(experts: &ExpertsView, token_ms: f64) -> Option<String> {
    if experts.trips_ms <= 0.0 {
        return None;
    }
    let trips = plural(experts.trips.round().max(1.0) as usize, "round trip per token", "round trips per token");
    // Tokens of several conversations share their round trips.
    let of = if token_ms > experts.trips_ms { format!(" of {}", duration_ms(token_ms)) } else { String::new() };
    Some(format!("{trips}, {}{of}", duration_ms(experts.trips_ms)))
}

/// "Loads 12 MB a token from this device's storage: 22 of a token's 24 experts were in memory (91%), 0.4 waits a token, 8.1 ms."
#[must_use]
pub fn on_demand_line(report: &OnDemandReport) -> String {
    let slots = format!("{} of {} experts are in memory", count(report.slots.into()), count(report.experts.into()));
    if report.tokens == 0 {
        return format!("The model does not fit this device: {slots}, others load when a token needs them.");
    }
    let (loaded, fetched) = (report.token_bytes as u64, report.token_network_bytes as u64);
    let from = match fetched {
        0 => "from this device's storage".to_owned(),
        fetched if fetched >= loaded => "over the network".to_owned(),
        fetched => format!("from this device's storage, {} of it over the network", bytes(fetched)),
    };
    let a_token = |all: u64| (all as f64 / report.tokens as f64).round() as u64;
    let (hits, used) = (a_token(report.hits), a_token(report.hits + report.misses));
    let hits = format!("{hits} of a token's {used} experts were in memory ({:.0}%)", 100.0 * report.recall);
    let waits = format!("{:.1} waits a token, {}", report.token_stalls, duration_ms(report.token_wait_ms));
    let guesses = match &report.guesses {
        Some(guesses) => format!(" {}", guesses_line(guesses, report.guessed_bytes)),
        None if report.guessed_bytes > 0 => {
            format!(" Experts are loaded ahead as others ask for it, {} so far.", bytes(report.guessed_bytes))
        }
        None => String::new(),
    };
    format!("Loads {} a token {from}: {hits}, {waits}. {slots}.{guesses}", bytes(loaded))
}

/// "Experts are loaded ahead: 85% of them were guessed, 12 MB on guesses so far."
fn guesses_line(report: &ForesightReport, guessed_bytes: u64) -> String {
    let state = match report.guessing {
        Guessing::Trying => "Loading experts ahead is being tried",
        Guessing::On | Guessing::Always => "Experts are loaded ahead",
        Guessing::Off => "Loading experts ahead did not pay and is off",
    };
    let recall = report.recall.map(|recall| format!(": {:.0}% were guessed", 100.0 * recall)).unwrap_or_default();
    format!("{state}{recall}, {} on guesses so far.", bytes(guessed_bytes))
}

/// "A smaller copy of the model named 87% of the experts of 120 tokens. It takes 14 MB."; `None` if this device has none.
#[must_use]
pub fn shadow_line(status: &Status) -> Option<String> {
    let shadow = status.shadow?;
    let (words, takes) = (&texts().guesser, bytes(shadow.bytes));
    // It speaks to others or to this device.
    let reports = [status.hints, status.on_demand.and_then(|report| report.guesses)];
    let measured = reports.into_iter().flatten().find_map(|report| Some((report.shadow?, report.shadow_tokens)));
    let line = match measured.filter(|_| shadow.ready) {
        Some((recall, tokens)) => {
            let noun = if tokens == 1 { "token" } else { "tokens" };
            let tokens = format!("{} {noun}", count(tokens));
            fill(words.measured, &[&format!("{:.0}", 100.0 * recall), &tokens, &takes])
        }
        None => fill(if shadow.ready { words.made } else { words.making }, &[&takes]),
    };
    let drafts = status.drafts.map(|drafts| drafts.from_shadow).filter(|drafts| drafts.sent > 0);
    Some(match drafts {
        Some(DraftCount { sent, accepted }) => {
            format!("{line} {}", fill(words.drafts, &[&count(accepted), &count(sent)]))
        }
        None => line,
    })
}

/// "1,536 experts, each on 2 devices or more, 2.4 on average".
#[must_use]
pub fn replicas_line(experts: &ExpertsView) -> String {
    let fewest = plural(experts.fewest_holders as usize, "device", "devices");
    let all = plural_count(experts.pooled);
    format!("{all}, each on {fewest} or more, {:.1} on average", experts.mean_holders)
}

/// "12 experts have fewer than 2 holders. Copies are being loaded."; `None` if all have enough.
#[must_use]
pub fn short_line(experts: &ExpertsView) -> Option<String> {
    let loads = experts.holders.iter().any(|holder| holder.ordered > 0);
    let next = if loads { "Copies are being loaded." } else { "No device has room for more copies." };
    let (all, wanted) = (plural_count(experts.short), experts.wanted_holders);
    let have = if experts.short == 1 { "has" } else { "have" };
    (experts.short > 0).then(|| format!("{all} {have} fewer than {wanted} holders. {next}"))
}

/// "3 calls in flight · 40 calls to a second device, 31 of them quicker · 2 timeouts".
#[must_use]
pub fn calls_line(experts: &ExpertsView) -> String {
    let mut parts = vec![plural(experts.open_calls as usize, "call in flight", "calls in flight")];
    if experts.hedges > 0 {
        let second = plural(experts.hedges as usize, "call to a second device", "calls to a second device");
        parts.push(format!("{second}, {} of them quicker", count(u64::from(experts.hedges_won))));
    }
    let timeouts: u32 = experts.holders.iter().map(|holder| holder.timeouts).sum();
    if timeouts > 0 {
        parts.push(plural(timeouts as usize, "timeout", "timeouts"));
    }
    parts.join(" · ")
}

/// "96 experts, 310 MB".
#[must_use]
pub fn holding_line(holder: &HolderView) -> String {
    format!("{}, {}", plural_count(holder.experts), bytes(holder.bytes.0))
}

/// "5.1 ms per call, 95% within 9.0 ms"; `None` before the first.
#[must_use]
pub fn call_times(holder: &HolderView) -> Option<String> {
    let times = || format!("{} per call, 95% within {}", duration_ms(holder.median_ms), duration_ms(holder.slow_ms));
    (holder.median_ms > 0.0).then(times)
}

/// "Loading expert 12 of 64: 34 MB of 180 MB · 12 MB/s"; `None` if it loads none.
#[must_use]
pub fn residency_line(holder: &HolderView) -> Option<String> {
    let all = u64::from(holder.ordered);
    let counted = holder.loading.filter(|loading| loading.total.0 > 0);
    match counted {
        _ if all == 0 => None,
        None => Some(format!("Loading {}", plural_count(holder.ordered))),
        Some(LoadReport { done, total, rate: speed, .. }) => {
            let (done, total) = (done.0.min(total.0), total.0);
            // Experts of a model have almost the same size.
            let now = (u128::from(done) * u128::from(all) / u128::from(total)) as u64 + 1;
            let line = format!("Loading expert {} of {all}: {} of {}", now.min(all), bytes(done), bytes(total));
            Some(if speed >= 1.0 && done < total { format!("{line} · {}", rate(speed)) } else { line })
        }
    }
}

/// "1,204 tokens · 12.3 s of GPU time · 34 MB sent".
#[must_use]
pub fn work_line(work: &Work) -> String {
    let tokens = if work.tokens == 1 { "token" } else { "tokens" };
    let (gpu, sent) = (duration_ms(work.gpu_millis), bytes(work.bytes.0));
    format!("{} {tokens} · {gpu} of GPU time · {sent} sent", count(work.tokens))
}

fn plural_count(experts: u32) -> String {
    let noun = if experts == 1 { "expert" } else { "experts" };
    format!("{} {noun}", count(u64::from(experts)))
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
        assert_eq!(calls_line(&experts), "1 call in flight");
        (experts.hedges, experts.hedges_won) = (40, 31);
        experts.holders = vec![HolderView { timeouts: 2, ..holder("a") }];
        assert_eq!(
            calls_line(&experts),
            "1 call in flight · 40 calls to a second device, 31 of them quicker · 2 timeouts"
        );
    }

    #[test]
    fn a_holder_shows_what_it_holds_how_it_answers_and_what_it_loads() {
        let mut holder = HolderView { experts: 96, bytes: Bytes(310_000_000), ..holder("a") };
        assert_eq!(holding_line(&holder), "96 experts, 310 MB");
        assert_eq!((call_times(&holder), residency_line(&holder)), (None, None));
        (holder.median_ms, holder.slow_ms, holder.ordered) = (5.1, 9.0, 64);
        assert_eq!(call_times(&holder).as_deref(), Some("5.1 ms per call, 95% within 9.0 ms"));
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
        let measured = "A smaller copy of the model named 87% of the experts of 120 tokens. It takes 14 MB.";
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
        let waiting =
            "The model does not fit this device: 16 of 48 experts are in memory, others load when a token needs them.";
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
                "Loads 12 MB a token {from}: 22 of a token's 24 experts were in memory (92%), 0.4 waits a token, 8.1 ms. 16 of 48 experts are in memory."
            )
        };
        assert_eq!(on_demand_line(&report), line("from this device's storage"));
        let partly = OnDemandReport { token_network_bytes: 3e6, ..report };
        assert_eq!(on_demand_line(&partly), line("from this device's storage, 3 MB of it over the network"));
        let evicted = OnDemandReport { token_network_bytes: 12e6, ..report };
        assert_eq!(on_demand_line(&evicted), line("over the network"), "groups of bytes are read whole");
        let report = OnDemandReport { guessed_bytes: 34_000_000, ..report };
        let hinted = on_demand_line(&report);
        assert!(hinted.ends_with("Experts are loaded ahead as others ask for it, 34 MB so far."), "{hinted}");
        let guesses = ForesightReport { guessing: Guessing::On, recall: Some(0.85), ..ForesightReport::default() };
        let guessed = on_demand_line(&OnDemandReport { guesses: Some(guesses), ..report });
        assert!(guessed.ends_with("Experts are loaded ahead: 85% were guessed, 34 MB on guesses so far."), "{guessed}");
    }
}
