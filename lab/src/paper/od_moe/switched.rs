//! Prediction that turns itself off: LRU alone, always with guesses, and with the switch.

use potluck_predict::{GivenLast, MostFrequent, Next, Predictor, Switch, SwitchState};

use crate::routing::{Device, Recorded, Trace, token_times};
use crate::table::{Table, number};

/// A third of the experts on one device.
const SHARE: usize = 3;
/// Milliseconds to compute a block, and to load an expert: storage that is fast, and slow, for this model.
const COMPUTE: f64 = 1.0;
const LOADS: [f64; 2] = [0.25, 1.0];

/// Makes a predictor that knows nothing yet.
type Make<'a> = Box<dyn Fn() -> Box<dyn Predictor + 'a> + 'a>;

fn predictors(trace: &Trace) -> Vec<Make<'_>> {
    let shape = trace.shape;
    let mut all: Vec<Make<'_>> =
        vec![Box::new(move || Box::new(MostFrequent::new(shape))), Box::new(move || Box::new(GivenLast::new(shape)))];
    let wanted = |channel: &&String| super::recalls::foresees_best(channel) || channel.ends_with("unaligned");
    for channel in trace.channels.iter().skip(1).filter(wanted) {
        if let Some(recorded) = Recorded::new(trace, channel) {
            all.push(Box::new(move || Box::new(recorded.clone())));
        }
    }
    all
}

/// A predictor on a device along a trace.
struct Run<'r, 't> {
    trace: &'t Trace,
    device: Device,
    predictor: &'r Make<'t>,
}

impl Run<'_, '_> {
    fn times(&self, next: impl FnMut(Option<f64>) -> Next) -> Vec<f64> {
        token_times(self.trace, self.device, (self.predictor)().as_mut(), next)
    }

    /// With a switch, and its state after 200 tokens.
    fn switched(&self) -> (Vec<f64>, SwitchState) {
        let (mut switch, mut after, mut tokens) = (Switch::new(), SwitchState::Trying, 0);
        let times = self.times(|last| {
            if let Some(millis) = last {
                switch.token(millis);
                tokens += 1;
                if tokens <= 200 {
                    after = switch.state();
                }
            }
            switch.next()
        });
        (times, after)
    }
}

/// Milliseconds a token.
fn mean(times: &[f64]) -> f64 {
    times.iter().sum::<f64>() / times.len().max(1) as f64
}

/// Milliseconds a token of the whole trace, prompts read token by token.
pub fn table(trace: &Trace) -> Table {
    let all = usize::from(trace.shape.blocks) * usize::from(trace.shape.experts);
    let slots = (all / SHARE).max(2 * usize::from(trace.shape.used));
    let title = format!(
        "The switch: ms a token on one device with {slots} of {all} experts, {COMPUTE} ms to compute a block, guesses one \
         block ahead"
    );
    let head = ["ms to load", "predictor", "LRU alone", "always", "switched", "to LRU alone", "after 200 tokens"];
    let mut table = Table::new(&title, &head);
    let predictors = predictors(trace);
    for load_millis in LOADS {
        let device = Device { slots, compute_millis: COMPUTE, load_millis };
        for predictor in &predictors {
            let run = Run { trace, device, predictor };
            let (alone, always) = (run.times(|_| Next::Without), run.times(|_| Next::With(f64::INFINITY)));
            let (switched, after) = run.switched();
            let (alone, always, switched) = (mean(&alone), mean(&always), mean(&switched));
            table.row([
                format!("{load_millis}"),
                predictor().name(),
                number(alone),
                number(always),
                number(switched),
                format!("{:+.1}%", 100.0 * (switched / alone - 1.0)),
                format!("{after:?}").to_lowercase(),
            ]);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Milliseconds to load an expert, from storage that is never waited for to storage that decides everything.
    const STORAGE: [f64; 4] = [0.05, 0.25, 1.0, 4.0];

    #[test]
    fn along_a_real_trace_what_does_not_pay_is_off_within_200_tokens_and_costs_less_than_3_percent() {
        let (mut useless, mut useful) = (0, 0);
        let trace = super::super::recorded();
        let all = usize::from(trace.shape.blocks) * usize::from(trace.shape.experts);
        let predictors = predictors(&trace);
        for (load_millis, share) in STORAGE.into_iter().flat_map(|load| [(load, 3), (load, 2)]) {
            let device = Device { slots: all / share, compute_millis: COMPUTE, load_millis };
            for predictor in &predictors {
                let run = Run { trace: &trace, device, predictor };
                let (alone, always) = (run.times(|_| Next::Without), run.times(|_| Next::With(f64::INFINITY)));
                let (switched, after) = run.switched();
                let about = format!("1 of {share}, {load_millis} ms to load, {}", predictor().name());
                let (mut with, mut without) = (0.0, 0.0);
                for (token, (switched, alone)) in switched.iter().zip(&alone).enumerate() {
                    (with, without) = (with + switched, without + alone);
                    let is_slow = token >= 200 && with >= 1.03 * without;
                    assert!(!is_slow, "{about}: {with} ms after {token} tokens, {without} by LRU alone");
                }
                let pays = mean(&always) / mean(&alone);
                let begun = |times: &[f64]| mean(&times[..times.len().min(200)]);
                // What pays later only is tried again; what did not pay so far must be off.
                if pays > 1.02 && begun(&always) > 1.02 * begun(&alone) {
                    useless += 1;
                    assert_eq!(after, SwitchState::Off, "{about}: always on it takes {pays} times as long");
                } else if pays < 0.8 {
                    useful += 1;
                    let gained = 1.0 - mean(&switched) / mean(&alone);
                    assert!(gained > 0.0, "{about}: {gained} gained of {}", 1.0 - pays);
                }
            }
        }
        assert!(useless >= 5 && useful >= 5, "{useless} runs in which it does not pay, {useful} in which it does");
    }
}
