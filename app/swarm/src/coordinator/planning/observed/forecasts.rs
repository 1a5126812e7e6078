//! Forecasts of the time per token for the rest of an answer, made after its first tokens and compared with what it
//! took.

use potluck_plan::PlanEpoch;
use potluck_protocol::ForecastView;

use crate::coordinator::answering::DecodePass;

/// A forecast is made after this many tokens.
const LOOKED_AT: u32 = 15;

/// The newest answer that ran alone.
#[derive(Default)]
pub(in crate::coordinator::planning) struct Forecasts {
    epoch: PlanEpoch,
    before_ms: f64,
    looked_at: Total,
    forecast_ms: Option<f64>,
    rest: Total,
}

/// Tokens and their milliseconds.
#[derive(Clone, Copy, Default)]
struct Total {
    tokens: u32,
    millis: f64,
}

impl Total {
    fn add(&mut self, pass: &DecodePass) {
        self.tokens += u32::from(pass.steps);
        self.millis += pass.millis;
    }

    fn mean(self) -> f64 {
        if self.tokens > 0 { self.millis / f64::from(self.tokens) } else { 0.0 }
    }
}

impl Forecasts {
    /// A token passed a plan; `before` milliseconds were predicted. True if it is time to forecast the next ones.
    pub fn passed(&mut self, epoch: PlanEpoch, pass: &DecodePass, before: f64) -> bool {
        if pass.is_first || self.epoch != epoch {
            *self = Self { epoch, before_ms: before, ..Self::default() };
        }
        if self.forecast_ms.is_some() {
            self.rest.add(pass);
            return false;
        }
        self.looked_at.add(pass);
        self.looked_at.tokens >= LOOKED_AT
    }

    /// Sets the forecast, in milliseconds a token.
    pub fn set(&mut self, millis: f64) {
        self.forecast_ms = Some(millis);
    }

    /// The last forecast, for the active plan.
    pub fn view(&self, epoch: PlanEpoch) -> Option<ForecastView> {
        let forecast_ms = self.forecast_ms.filter(|_| self.epoch == epoch)?;
        Some(ForecastView {
            tokens: self.looked_at.tokens,
            before_ms: self.before_ms,
            measured_ms: self.looked_at.mean(),
            forecast_ms,
            rest_tokens: self.rest.tokens,
            rest_ms: self.rest.mean(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(is_first: bool, millis: f64) -> DecodePass {
        DecodePass { steps: 1, stage_millis: Vec::new(), millis, is_first }
    }

    #[test]
    fn the_rest_of_an_answer_is_forecast_once_and_compared() {
        let (epoch, mut forecasts) = (PlanEpoch(4), Forecasts::default());
        for token in 0..LOOKED_AT {
            assert_eq!(forecasts.view(epoch), None, "after {token} tokens");
            let is_time = forecasts.passed(epoch, &pass(token == 0, 10.0), 9.0);
            assert_eq!(is_time, token + 1 == LOOKED_AT, "token {token}");
        }
        forecasts.set(12.0);
        let view_of = |rest_tokens, rest_ms| {
            let (tokens, before_ms, measured_ms, forecast_ms) = (LOOKED_AT, 9.0, 10.0, 12.0);
            Some(ForecastView { tokens, before_ms, measured_ms, forecast_ms, rest_tokens, rest_ms })
        };
        assert_eq!(forecasts.view(epoch), view_of(0, 0.0));
        let due_again = [11.0, 15.0].map(|millis| forecasts.passed(epoch, &pass(false, millis), 9.0));
        assert_eq!(due_again, [false; 2], "told once");
        assert_eq!(forecasts.view(epoch), view_of(2, 13.0));
        assert_eq!(forecasts.view(PlanEpoch(5)), None, "another plan runs");
        forecasts.passed(epoch, &pass(true, 10.0), 9.0);
        assert_eq!(forecasts.view(epoch), None, "another answer");
    }
}
