//! Prediction that turns itself off: LRU alone, always with guesses, and with the switch.

use potluck_predict::{
    Device, GivenLast, MostFrequent, Next, Predictor, Recorded, Switch, Trace, Verdict, token_times,
};

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
    /// Milliseconds a token.
    fn mean(&self, next: impl FnMut(Option<f64>) -> Next) -> f64 {
        let times = token_times(self.trace, self.device, (self.predictor)().as_mut(), next);
        times.iter().sum::<f64>() / times.len().max(1) as f64
    }

    /// Milliseconds a token with a switch, and its verdict after 200 tokens.
    fn switched(&self) -> (f64, Verdict) {
        let (mut switch, mut after, mut tokens) = (Switch::new(), Verdict::Trying, 0);
        let mean = self.mean(|last| {
            if let Some(millis) = last {
                switch.token(millis);
                tokens += 1;
                if tokens <= 200 {
                    after = switch.verdict();
                }
            }
            switch.next()
        });
        (mean, after)
    }
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
            let (alone, always) = (run.mean(|_| Next::Without), run.mean(|_| Next::With(f64::INFINITY)));
            let (switched, after) = run.switched();
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
