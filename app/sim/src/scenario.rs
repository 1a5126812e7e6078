//! Named scenarios and their outcomes.

use potluck_panel::Timeline;

use super::world::World;
use super::{churn, forecast, pooled, scenarios, vanishing};

/// Outcome of a scenario.
#[derive(Clone, Debug)]
pub struct Run {
    /// The seed that it was drawn from.
    pub seed: u64,
    /// Set-up, events and measurements, one line each.
    pub event_log: Vec<String>,
    /// Why the run failed, if it did.
    pub failure: Option<String>,
    /// Tokens over time.
    pub timeline: Timeline,
    /// A hash of everything that happened.
    pub fingerprint: u64,
    /// Recoveries that answers went through.
    pub recoveries: u32,
}

impl Run {
    pub(super) fn new(seed: u64, world: &World, event_log: Vec<String>, failure: Option<String>) -> Self {
        let mut timeline = world.timeline().clone();
        timeline.until(world.now());
        let recoveries = world.answers().map(|(_, answer)| answer.recoveries).sum();
        Self { seed, event_log, failure, timeline, fingerprint: world.fingerprint(), recoveries }
    }
}

/// A scenario that can be run by its name.
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// One line.
    pub about: &'static str,
    /// Runs it.
    pub run: fn(u64) -> Run,
}

/// All scenarios.
pub const SCENARIOS: [Scenario; 17] = [
    Scenario { name: "two-devices", about: "a model too large for one device, on two", run: scenarios::two_devices },
    Scenario {
        name: "phone-joins",
        about: "a slow phone joins a room that works without it",
        run: scenarios::phone_joins,
    },
    Scenario {
        name: "kill-during-answer",
        about: "a worker's tab is killed during an answer, another has room",
        run: scenarios::kill_during_answer,
    },
    Scenario {
        name: "standby",
        about: "a worker's tab is killed during an answer, a spare holds its part already",
        run: scenarios::standby,
    },
    Scenario {
        name: "frozen-tab",
        about: "a worker's tab stands still for twelve seconds",
        run: scenarios::frozen_tab,
    },
    Scenario { name: "partition", about: "two of four devices are cut off for 15 seconds", run: scenarios::partition },
    Scenario {
        name: "case-study",
        about: "three devices leave and return, as in figure 7.11",
        run: scenarios::case_study,
    },
    Scenario {
        name: "four-conversations",
        about: "one, then four conversations on three stages at 20 ms one way",
        run: scenarios::four_conversations,
    },
    Scenario {
        name: "latency-slope",
        about: "time per token against latency, for several plans",
        run: scenarios::latency_slope,
    },
    Scenario {
        name: "pooled-experts",
        about: "a holder of experts is killed, frozen, cut off or reloaded every two seconds",
        run: pooled::pooled_experts,
    },
    Scenario {
        name: "pooled-on-demand",
        about: "holders with slots for some of their experts load the others, and are killed, frozen or cut off",
        run: pooled::pooled_on_demand,
    },
    Scenario {
        name: "pooled-forecast",
        about: "predicted and measured time of a token in seventeen rooms with pooled experts",
        run: forecast::pooled_forecast,
    },
    Scenario {
        name: "vanishing-holder",
        about: "one of three to five small holders vanishes in mid-answer, with a word or without",
        run: vanishing::vanishing_holder,
    },
    Scenario { name: "churn", about: "devices, lines, faults and questions drawn from the seed", run: churn::churn },
    Scenario {
        name: "words-kept",
        about: "the same with both ends of the model on the host: nobody else may get token ids or logits",
        run: churn::words_kept,
    },
    Scenario {
        name: "false-passes",
        about: "the same with a stage that lies about passes and conversations: no answer suffers, and only it is named",
        run: churn::false_passes,
    },
    Scenario {
        name: "deputies",
        about: "the same with a host that has a deputy and is lost, for a while or for good: answers go on, and one host writes",
        run: churn::deputies,
    },
];

/// The scenario of a name.
pub fn scenario(name: &str) -> Option<&'static Scenario> {
    SCENARIOS.iter().find(|scenario| scenario.name == name)
}
