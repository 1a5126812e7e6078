//! What experts on demand cost, as the page shows it.

use potluck_panel::OnDemandReport;
use potluck_plan::Bytes;

use super::driver::Driver;

impl Driver {
    /// What it cost so far.
    pub fn report(&self) -> OnDemandReport {
        let counts = self.counts.get();
        let a_token = |all: f64| all / (counts.tokens.max(1)) as f64;
        let guesses = self.guesses();
        let (own, own_network) =
            guesses.as_ref().map_or((Bytes::ZERO, Bytes::ZERO), |guesses| (guesses.bytes(), guesses.network()));
        let guessed = counts.hinted_bytes.saturating_add(own);
        let network = counts.network.0 + counts.hinted_network.0 + own_network.0;
        OnDemandReport {
            tokens: counts.tokens,
            slots: self.pool.slots.min(self.experts.get()),
            experts: self.experts.get(),
            hits: counts.hits,
            misses: counts.misses,
            recall: counts.recall().unwrap_or(0.0),
            token_bytes: a_token((counts.bytes.0 + guessed.0) as f64),
            token_network_bytes: a_token(network as f64),
            token_stalls: a_token(counts.stalls as f64),
            token_wait_ms: a_token(counts.wait_millis),
            prompt_bytes: counts.prefill_bytes.0,
            guessed_bytes: guessed.0,
            hinted: counts.hinted,
            loads: self.slots.bus().loads,
            load_ms: self.slots.bus().millis,
            calls: counts.calls,
            a_call: counts.a_call(),
            guesses: guesses.map(|guesses| guesses.report()),
        }
    }
}
