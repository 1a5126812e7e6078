//! What would help a room: the least additional memory with which the model fits, or tokens are faster.

use potluck_plan::{Bytes, PeerId};

use crate::cost::predict;
use crate::planned::best_stages;
use crate::step::{Step, run};
use crate::{AccessLink, Device, Effort, Link, Links, Room, TAU, placement};

/// Something that would help.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Help {
    /// One more device, of the room's median speed.
    AnotherDevice {
        /// Bytes it would have to contribute, at least.
        budget: Bytes,
        /// What it would bring.
        gain: Gain,
    },
    /// This device contributes more.
    MoreMemory {
        /// Which one.
        peer: PeerId,
        /// Bytes besides its budget, at least.
        extra: Bytes,
        /// What it would bring.
        gain: Gain,
    },
}

/// What would be gained.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Gain {
    /// The model fits.
    Fits,
    /// Tokens are faster.
    Saves {
        /// Milliseconds less per token.
        millis: f64,
    },
}

/// Most devices that are considered.
const ASKED: usize = 8;
/// Steps of the bisection over bytes: the answer is exact to one part in 2^10 of the model.
pub(crate) const BISECTIONS: u32 = 10;
/// The peer id of a hypothetical device.
pub(crate) const NEWCOMER: PeerId = PeerId([0xff; 16]);

/// What would help, the least memory first; empty where more memory changes nothing. A host that has more to do takes the
/// steps of a [`HelpSearch`] instead.
pub fn what_would_help(room: &Room<'_>) -> Vec<Help> {
    run(HelpSearch::new(room), |search| search.step(room))
}

fn token_millis(room: &Room<'_>) -> Option<f64> {
    let stages = best_stages(room)?;
    Some(predict(room, &placement::plan(room, stages)).token_millis)
}

/// A search for what would help that looks for one plan a step. All steps are for the same room.
#[derive(Clone, Debug)]
pub struct HelpSearch {
    /// Effort of each step.
    effort: Effort,
    now: Now,
    /// What is asked, the next question last.
    questions: Vec<Question>,
    /// What is known of the next question.
    known: Bisection,
    found: Vec<(Bytes, Help)>,
}

/// Milliseconds a token takes in the room as it is.
#[derive(Clone, Copy, Debug)]
enum Now {
    Unknown,
    /// None if the model does not fit.
    Known(Option<f64>),
}

/// With how many bytes it would be better.
#[derive(Clone, Debug)]
enum Question {
    AnotherDevice(Box<Newcomer>),
    MoreMemory(PeerId),
}

impl HelpSearch {
    /// A search that has made no step yet.
    pub fn new(room: &Room<'_>) -> Self {
        let plans = (room.devices.len().min(ASKED) as u64 + 1) * u64::from(BISECTIONS + 1);
        let more = candidates(room).into_iter().map(|device| Question::MoreMemory(device.peer));
        let all =
            Newcomer::of(room).map(|newcomer| Question::AnotherDevice(Box::new(newcomer))).into_iter().chain(more);
        let mut questions: Vec<Question> = all.collect();
        questions.reverse();
        let known = Bisection::up_to(questions.last().map_or(0, |question| question.most_bytes(room)));
        let effort = Effort { steps: room.effort.steps / plans, ..room.effort };
        Self { effort, now: Now::Unknown, questions, known, found: Vec::new() }
    }

    /// Looks for one more plan.
    #[must_use]
    pub fn step(mut self, room: &Room<'_>) -> Step<Self, Vec<Help>> {
        let room = &Room { effort: self.effort, ..room.clone() };
        let Now::Known(now) = self.now else {
            self.now = Now::Known(token_millis(room));
            return self.or_ends();
        };
        let Some(question) = self.questions.last() else { return self.or_ends() };
        let bytes = self.known.next_bytes();
        let millis = question.token_millis(room, bytes);
        match self.known.learn(millis.filter(|millis| now.is_none_or(|now| *millis < TAU * now))) {
            Step::GoesOn(known) => self.known = known,
            Step::Ends(least) => {
                let gain = |millis| now.map_or(Gain::Fits, |now| Gain::Saves { millis: now - millis });
                self.found.extend(least.map(|(bytes, millis)| (bytes, question.answered(bytes, gain(millis)))));
                self.questions.pop();
                self.known = Bisection::up_to(self.questions.last().map_or(0, |question| question.most_bytes(room)));
            }
        }
        self.or_ends()
    }

    fn or_ends(mut self) -> Step<Self, Vec<Help>> {
        if !self.questions.is_empty() {
            return Step::GoesOn(self);
        }
        self.found.sort_by_key(|(bytes, _)| *bytes);
        Step::Ends(self.found.into_iter().map(|(_, help)| help).collect())
    }
}

impl Question {
    /// More bytes change nothing.
    fn most_bytes(&self, room: &Room<'_>) -> u64 {
        match self {
            Self::AnotherDevice(_) => everything(room),
            Self::MoreMemory(peer) => {
                everything(room).saturating_sub(room.device(*peer).map_or(0, |device| device.budget.0))
            }
        }
    }

    /// Milliseconds a token would take with so many bytes.
    fn token_millis(&self, room: &Room<'_>, bytes: u64) -> Option<f64> {
        match self {
            Self::AnotherDevice(newcomer) => newcomer.with(room, bytes, token_millis),
            Self::MoreMemory(peer) => {
                let mut devices = room.devices.to_vec();
                let richer = devices.iter_mut().find(|device| device.peer == *peer)?;
                richer.budget = richer.budget.saturating_add(Bytes(bytes));
                token_millis(&Room { devices: &devices, ..room.clone() })
            }
        }
    }

    fn answered(&self, bytes: Bytes, gain: Gain) -> Help {
        match self {
            Self::AnotherDevice(_) => Help::AnotherDevice { budget: bytes, gain },
            Self::MoreMemory(peer) => Help::MoreMemory { peer: *peer, extra: bytes, gain },
        }
    }
}

/// The coordinator and the devices with the largest budgets.
fn candidates<'a>(room: &Room<'a>) -> Vec<&'a Device> {
    let mut devices: Vec<&Device> = room.devices.iter().collect();
    devices.sort_by_key(|device| (device.peer != room.coordinator, std::cmp::Reverse(device.budget), device.peer));
    devices.truncate(ASKED);
    devices
}

/// A hypothetical device, with the room's median speed and access link.
#[derive(Clone, Debug)]
pub(crate) struct Newcomer {
    device: Device,
    links: Links,
}

impl Newcomer {
    pub fn of(room: &Room<'_>) -> Option<Self> {
        let mut device = middle(room.devices)?.clone();
        device.peer = NEWCOMER;
        device.experts_only = room.is_protected();
        device.holds.clear();
        device.active.clear();
        device.cached.clear();
        let mut links: Links = room.links.clone();
        links.set_access(NEWCOMER, middle_access(room));
        Some(Self { device, links })
    }

    /// Asks about the room with this device and that budget in it.
    pub fn with<T>(&self, room: &Room<'_>, budget: u64, ask: impl Fn(&Room<'_>) -> T) -> T {
        let mut devices = room.devices.to_vec();
        devices.push(Device { budget: Bytes(budget), ..self.device.clone() });
        ask(&Room { devices: &devices, links: &self.links, ..room.clone() })
    }

    /// The least budget for which there is an answer, if there is one with a budget for the whole model.
    pub fn min_budget(&self, room: &Room<'_>, ask: impl Fn(&Room<'_>) -> Option<f64>) -> Option<u64> {
        let search = Bisection::up_to(everything(room));
        let least = run(search, |search| search.learn(self.with(room, search.next_bytes(), &ask)));
        Some(least?.0.0)
    }
}

/// Bytes with which one device could hold the whole model.
fn everything(room: &Room<'_>) -> u64 {
    room.layers.memory(room.layers.all()).saturating_add(room.overhead).0
}

/// Finds the least bytes with which a room is better by enough, and the milliseconds of its tokens then. Bisection works because
/// more memory never makes the best plan slower.
#[derive(Clone, Copy, Debug)]
struct Bisection {
    low: u64,
    high: u64,
    /// Milliseconds a token with `high` bytes, once they are known to do.
    gained: Option<f64>,
    left: u32,
}

impl Bisection {
    fn up_to(max: u64) -> Self {
        Self { low: 0, high: max, gained: None, left: BISECTIONS }
    }

    /// Bytes to be asked about. The most come first: if they do not do, none do.
    fn next_bytes(&self) -> u64 {
        if self.gained.is_none() { self.high } else { self.low + (self.high - self.low) / 2 }
    }

    /// `better`: milliseconds a token with those bytes, if they do.
    fn learn(self, better: Option<f64>) -> Step<Self, Option<(Bytes, f64)>> {
        let bytes = self.next_bytes();
        let (known, gained) = match (self.gained, better) {
            (None, None) => return Step::Ends(None),
            (None, Some(gained)) => return Step::GoesOn(Self { gained: Some(gained), ..self }),
            (Some(_), Some(gained)) => (Self { high: bytes, gained: Some(gained), ..self }, gained),
            (Some(gained), None) => (Self { low: bytes, ..self }, gained),
        };
        match known.left {
            0 | 1 => Step::Ends(Some((Bytes(known.high), gained))),
            left => Step::GoesOn(Self { left: left - 1, ..known }),
        }
    }
}

/// The device of median speed.
fn middle(devices: &[Device]) -> Option<&Device> {
    let mut sorted: Vec<&Device> = devices.iter().collect();
    sorted.sort_by(|a, b| a.speed.decode.total_cmp(&b.speed.decode).then(a.peer.cmp(&b.peer)));
    sorted.get(sorted.len() / 2).copied()
}

/// The median access link of the devices other than the coordinator's, by latency.
fn middle_access(room: &Room<'_>) -> AccessLink {
    let others = room.devices.iter().filter(|device| device.peer != room.coordinator);
    let mut links: Vec<(Link, Link)> =
        others.map(|device| (room.links.up(device.peer), room.links.down(device.peer))).collect();
    links.sort_by(|a, b| a.0.latency_millis.total_cmp(&b.0.latency_millis));
    links
        .get(links.len() / 2)
        .map_or(AccessLink { up: Link::NONE, down: Link::NONE }, |(up, down)| AccessLink { up: *up, down: *down })
}
