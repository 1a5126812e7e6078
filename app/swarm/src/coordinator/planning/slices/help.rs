//! What would help the room, and what spreading the experts costs, in sentences. Computed for the current devices and
//! plan while nothing is answered, in slices: it takes as long as a hundred plans.

use potluck_panel::EndsCompared;
use potluck_plan::{Bytes, Ends, KvCacheType, Millis, PeerId, Plan, PlanEpoch};
use potluck_planner::experts::{Comparison, compare};
use potluck_planner::{Gain, Help, HelpSearch, Room, Sharing, Step, free_millis};

use crate::coordinator::planning::planner_input::PlannerInput;
#[cfg(feature = "testing")]
use crate::coordinator::planning::slices::Progress;
use crate::coordinator::planning::slices::{Slice, Sliced};
use crate::coordinator::planning::{PlanRequest, Planning};
use crate::event_context::EventContext;
use crate::members::Members;

/// The room must be unchanged for this long first: devices often come together, and measurements settle.
const SETTLE_MILLIS: f64 = 1_500.0;
/// Speeds change, so the suggestions are recomputed this often.
const REFRESH_MILLIS: f64 = 30_000.0;
/// Smaller gains, in milliseconds a token, are not worth a sentence.
const MIN_GAIN_MILLIS: f64 = 1.0;

/// The suggestions, and the room they were computed for.
#[derive(Default)]
pub(super) struct Helpful {
    room: Option<Basis>,
    since: Millis,
    found: Option<Millis>,
    sentences: Vec<String>,
    comparison: Option<Comparison>,
    /// What it costs that the ends of the model stay on the host, as of the end of the search.
    ends: Option<EndsCompared>,
    /// What is in progress. Until it has ended, the suggestions before it are shown.
    search: Option<Sliced<Considered, Looking>>,
}

/// The plan and the contributions.
#[derive(Clone, Debug, PartialEq)]
struct Basis {
    plan: Option<PlanEpoch>,
    budgets: Vec<(PeerId, Bytes)>,
}

/// What else a search depends on.
#[derive(Clone, Debug, PartialEq)]
struct Considered {
    /// How many devices were timed.
    timed: usize,
    kv_cache: KvCacheType,
    sharing: Sharing,
}

/// How far a search has come.
enum Looking {
    /// What helps is still to be found out.
    Helping(HelpSearch),
    /// This helps; the experts are still to be compared.
    Comparing(Vec<Help>),
    /// So were the experts; what the ends of the model on the host cost is still to be found out.
    Pricing(Vec<Help>, Option<Comparison>),
}

/// What a search has found.
struct Found {
    help: Vec<Help>,
    comparison: Option<Comparison>,
    free_millis: Option<f64>,
}

impl Looking {
    fn step(self, room: &Room<'_>) -> Step<Self, Found> {
        match self {
            Self::Helping(search) => Step::GoesOn(match search.step(room) {
                Step::GoesOn(search) => Self::Helping(search),
                Step::Ends(found) => Self::Comparing(found),
            }),
            Self::Comparing(help) => {
                let comparison = compare(room);
                match room.ends {
                    Ends::Anywhere => Step::Ends(Found { help, comparison, free_millis: None }),
                    Ends::OnHost => Step::GoesOn(Self::Pricing(help, comparison)),
                }
            }
            Self::Pricing(help, comparison) => Step::Ends(Found { help, comparison, free_millis: free_millis(room) }),
        }
    }
}

impl Helpful {
    pub fn sentences(&self) -> &[String] {
        &self.sentences
    }

    /// The two ways to place experts, if they were compared.
    pub fn comparison(&self) -> Option<Comparison> {
        self.comparison
    }

    /// What it costs that the ends of the model stay on the host, if that was looked for.
    pub fn ends(&self) -> Option<EndsCompared> {
        self.ends
    }

    /// True if suggestions should be computed now. Those for another room are dropped.
    fn is_due(&mut self, room: Basis, now: Millis) -> bool {
        if self.room.as_ref() != Some(&room) {
            *self = Self { room: Some(room), since: now, ..Self::default() };
        }
        match self.found {
            Some(found) => now.0 - found.0 >= REFRESH_MILLIS,
            None => now.0 - self.since.0 >= SETTLE_MILLIS,
        }
    }
}

impl Planning {
    /// Why a plan spreads the experts or not, and what that costs: one sentence, if it was compared.
    pub fn spreading(&self, plan: &Plan) -> Option<String> {
        self.searches.helpful.comparison.map(|compared| spreading(&compared, plan.pooled().next().is_some()))
    }

    /// Goes on to compute suggestions where they are missing. Answers go first.
    pub(in crate::coordinator::planning) fn look_for_help(
        &mut self,
        request: PlanRequest<'_>,
        cx: &EventContext,
    ) -> Slice {
        let is_settled = self.plans.inactive.is_none()
            && self.plans.active.is_some() == self.plans.up().is_some()
            && !self.choosing.policy.awaits_calibration;
        if !is_settled || request.answering || (self.plans.active.is_none() && self.shortfall.is_none()) {
            return Slice::Nothing;
        }
        let is_available = cx.members.known.iter().filter(|(_, member)| member.is_available());
        let budgets = is_available.filter_map(|(peer, member)| Some((*peer, member.hello.contribution?.budget)));
        let basis = Basis { plan: self.plans.active().map(|plan| plan.epoch), budgets: budgets.collect() };
        if !self.searches.helpful.is_due(basis, cx.now) {
            return Slice::Nothing;
        }
        let (timed, kv_cache) = (self.observed.calibrating.timed(), request.model.shape.kv_cache);
        let considered = Considered { timed, kv_cache, sharing: request.command.sharing };
        let known = self.searches.helpful.search.take().and_then(|search| search.valid(&considered, cx.now));
        let search = known.unwrap_or_else(|| {
            let input = PlannerInput::new(self, request.model, request.command, &cx.members);
            let epoch = self.plans.next_epoch(&cx.members);
            Sliced::new(considered, input, epoch, cx.now, |room| Looking::Helping(HelpSearch::new(room)))
        });
        match search.step(cx.now, Looking::step) {
            Step::GoesOn(search) => self.searches.helpful.search = Some(search),
            Step::Ends(Found { help, comparison, free_millis }) => {
                self.searches.helpful.comparison = comparison;
                // Both times are of this moment: later measurements change one of them only.
                self.searches.helpful.ends = free_millis
                    .zip(self.plans.shown().1)
                    .map(|(free_ms, planned)| EndsCompared { kept_ms: planned.prediction.token_millis, free_ms });
                self.searches.helpful.found = Some(cx.now);
                self.searches.helpful.sentences = sentences(&help, &cx.members);
            }
        }
        Slice::Taken
    }
}

#[cfg(feature = "testing")]
impl Helpful {
    pub fn progress(&self) -> Option<Progress<'_>> {
        self.search.as_ref().map(Sliced::progress)
    }

    /// When the last search ended.
    pub fn found(&self) -> Option<Millis> {
        self.found
    }
}

/// At most one sentence on another device, and one on more memory of a present device.
pub(super) fn sentences(found: &[Help], members: &Members) -> Vec<String> {
    let another = found.iter().find(|help| matches!(help, Help::AnotherDevice { .. }));
    let more = found.iter().find(|help| matches!(help, Help::MoreMemory { .. }));
    another.into_iter().chain(more).filter_map(|help| sentence(help, members)).collect()
}

fn sentence(help: &Help, members: &Members) -> Option<String> {
    let (bring, gain) = match help {
        Help::AnotherDevice { budget, gain } => (format!("If one more device lends {budget}"), gain),
        Help::MoreMemory { peer, extra, gain } => (format!("If {} lends {extra} more", members.name(*peer)), gain),
    };
    match gain {
        Gain::Fits => Some(format!("{bring}, the model fits.")),
        Gain::Saves { millis } if *millis >= MIN_GAIN_MILLIS => {
            Some(format!("{bring}, each token takes {millis:.0} ms less."))
        }
        Gain::Saves { .. } => None,
    }
}

/// The planner's comparison in one sentence.
fn spreading(compared: &Comparison, is_spread: bool) -> String {
    let trips = if compared.trips == 1 { "1 round trip".to_owned() } else { format!("{} round trips", compared.trips) };
    let more = compared.whole_millis.map(|whole| compared.spread_millis - whole);
    match (is_spread, more) {
        (true, None) => format!("Experts are spread because whole blocks do not fit: {trips} per token."),
        (true, Some(more)) if more >= MIN_GAIN_MILLIS => {
            format!("Experts are spread: with {trips}, a token takes {more:.0} ms more than with whole blocks.")
        }
        (true, Some(more)) if more <= -MIN_GAIN_MILLIS => {
            format!("Experts are spread: a token takes {:.0} ms less than with whole blocks.", -more)
        }
        (true, Some(_)) => format!("Experts are spread: with {trips}, a token takes no longer than with whole blocks."),
        (false, Some(more)) if more >= MIN_GAIN_MILLIS => {
            format!("Experts are not spread: with {trips}, a token would take {more:.0} ms more.")
        }
        (false, Some(more)) if more <= -MIN_GAIN_MILLIS => {
            format!("Experts are not spread. With them spread, a token would take {:.0} ms less.", -more)
        }
        (false, _) => format!("Experts are not spread: with {trips} per token, answers would not be faster."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_is_one_sentence_of_each_kind_and_only_where_it_is_worth_one() {
        let members = Members::new(PeerId([1; 16]));
        let peer = PeerId([2; 16]);
        let saves = |millis| Gain::Saves { millis };
        let found = [
            Help::MoreMemory { peer, extra: Bytes(1_200_000_000), gain: saves(12.2) },
            Help::AnotherDevice { budget: Bytes(3_000_000_000), gain: saves(40.4) },
            Help::MoreMemory { peer, extra: Bytes(4_000_000_000), gain: saves(90.0) },
        ];
        let expected = [
            "If one more device lends 3.0 GB, each token takes 40 ms less.",
            "If A device lends 1.2 GB more, each token takes 12 ms less.",
        ];
        assert_eq!(sentences(&found, &members), expected);
        let fits = Help::AnotherDevice { budget: Bytes(410_000_000), gain: Gain::Fits };
        assert_eq!(sentences(&[fits], &members), ["If one more device lends 410 MB, the model fits."]);
        let hardly = Help::AnotherDevice { budget: Bytes(1), gain: saves(0.4) };
        assert!(sentences(&[hardly], &members).is_empty());
    }

    #[test]
    fn one_sentence_says_what_spreading_the_experts_costs() {
        let compared = |trips, spread_millis, whole_millis| Comparison { trips, spread_millis, whole_millis };
        let slow = compared(48, 130.4, Some(34.0));
        assert_eq!(
            spreading(&slow, false),
            "Experts are not spread: with 48 round trips, a token would take 96 ms more."
        );
        assert_eq!(
            spreading(&slow, true),
            "Experts are spread: with 48 round trips, a token takes 96 ms more than with whole blocks."
        );
        let must = compared(1, 130.4, None);
        assert_eq!(
            spreading(&must, true),
            "Experts are spread because whole blocks do not fit: 1 round trip per token."
        );
        let quick = compared(4, 20.0, Some(34.0));
        assert_eq!(
            spreading(&quick, false),
            "Experts are not spread. With them spread, a token would take 14 ms less."
        );
        let equal = compared(4, 34.2, Some(34.0));
        assert_eq!(
            spreading(&equal, false),
            "Experts are not spread: with 4 round trips per token, answers would not be faster."
        );
    }

    #[test]
    fn a_room_is_looked_at_once_it_has_settled_and_again_later() {
        let room = |budgets| Basis { plan: None, budgets: vec![(PeerId([1; 16]), Bytes(budgets))] };
        let mut helpful = Helpful::default();
        let mut is_due = |budgets, at: f64| {
            let due = helpful.is_due(room(budgets), Millis(at));
            if due {
                helpful.found = Some(Millis(at));
            }
            due
        };
        assert!(!is_due(1, 0.0), "it may change at once");
        assert!(is_due(1, SETTLE_MILLIS));
        assert!(!is_due(1, SETTLE_MILLIS + 200.0), "nothing has changed");
        assert!(!is_due(2, 10_000.0), "another room has to settle");
        assert!(is_due(2, 10_000.0 + SETTLE_MILLIS));
        assert!(is_due(2, 10_000.0 + SETTLE_MILLIS + REFRESH_MILLIS));
    }
}
