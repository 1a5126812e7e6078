//! One peer of the world: its state machine, its device, and what its page received.

use std::collections::{BTreeMap, BTreeSet};

use potluck_plan::{Channel, DeviceId, Millis, PeerId, WeightUnit};
use potluck_protocol::{
    AnswerPart, AnswerStop, DeviceKind, Doors, Invite, InviteId, InviteKind, RequestId, StartId, Term, Timings,
    UnixSeconds,
};
use potluck_swarm::{Event, HintOptions, Identity, LoadRequest, Peer};

use super::claims::Orders;
use super::device::SimDevice;
use super::engine::{SimEngine, SimModel};
use super::fault::{Endless, Wrong};
use super::relay::Line;

/// What came of a question.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Tokens.
    pub tokens: Vec<u32>,
    /// Their log-probabilities, if they were asked for.
    pub logprobs: Vec<f32>,
    /// What the model thought.
    pub reasoning: String,
    /// What it said.
    pub text: String,
    /// When each of them came, milliseconds.
    pub times: Vec<f64>,
    /// How it ended.
    pub end: Option<AnswerStop>,
    /// Its timings, as sent to the asker.
    pub timings: Option<Timings>,
    /// Recoveries on the way.
    pub recoveries: u32,
    /// The sentences about them.
    pub sentences: Vec<String>,
    /// How often it began again, because what was written did not count.
    pub begun_again: u32,
    /// It was marked: a device that computed some of it was found wrong.
    pub is_doubtful: bool,
}

impl Answer {
    /// Mean milliseconds a token, from token `first` (counted from 0) to the last one.
    pub fn token_millis(&self, first: usize) -> Option<f64> {
        let (from, to) = (self.times.get(first)?, self.times.last()?);
        let tokens = self.times.len() - 1 - first;
        (tokens > 0).then(|| (to - from) / tokens as f64)
    }

    pub(super) fn record(&mut self, part: AnswerPart, now: f64) -> usize {
        match part {
            AnswerPart::Text { channel, tokens, delta, logprobs, .. } => {
                self.logprobs.extend(logprobs.iter().map(|of| of.chosen.logprob));
                self.times.extend(tokens.iter().map(|_| now));
                self.tokens.extend(&tokens);
                let text = if channel == Channel::Reasoning { &mut self.reasoning } else { &mut self.text };
                text.push_str(&delta);
                return tokens.len();
            }
            AnswerPart::Recovering(sentence) => {
                self.recoveries += 1;
                self.sentences.push(sentence);
            }
            AnswerPart::Void { .. } => {
                self.begun_again += 1;
                self.tokens.clear();
                self.logprobs.clear();
                self.times.clear();
                self.reasoning.clear();
                self.text.clear();
            }
            AnswerPart::Doubtful { .. } => self.is_doubtful = true,
            AnswerPart::End { stop, timings, .. } => (self.end, self.timings) = (Some(stop), Some(timings)),
            _ => {}
        }
        0
    }
}

pub(super) struct SimPeer {
    pub id: PeerId,
    pub device: SimDevice,
    pub machine: Peer,
    /// How its stages tell holders what comes.
    pub hints: HintOptions,
    /// Counts restarts; what was in flight for an earlier life is dropped.
    pub life: u64,
    /// Its tab is open.
    pub present: bool,
    pub line: Option<Line>,
    /// Its link is cut until this time.
    pub cut_until: f64,
    pub engine: SimEngine,
    pub engine_free: f64,
    /// Its tab is frozen until this time.
    pub frozen_until: f64,
    /// Slowdown of its device.
    pub slowed: f64,
    /// What its GPU computes is wrong.
    pub wrong: Option<Wrong>,
    /// Why it had to leave the room.
    pub closed: Option<String>,
    /// What it loads, and since when.
    pub load: Option<(LoadRequest, f64)>,
    /// What it was told to load.
    pub orders: Orders,
    /// How many loads it has begun.
    pub loads: u64,
    /// Its next load never ends.
    pub next_load: Option<Endless>,
    /// Since when its endless load trickles.
    pub trickles: Option<f64>,
    /// How often it was told that work is about to come.
    pub expecting: u32,
    /// Pieces of work that it was told to drop.
    pub cancelled: u32,
    /// When experts of it were called last.
    pub called: f64,
    /// Experts that had to be loaded while work waited.
    pub missed: u64,
    /// Experts that were loaded on a guess.
    pub guessed: u64,
    /// What its storage keeps over reloads.
    pub stored: BTreeSet<WeightUnit>,
    pub answers: BTreeMap<RequestId, Answer>,
    pub is_host: bool,
    /// The term in which it hosts or hosted last.
    pub term: Term,
    /// When it last told the relay that it is there.
    pub renewed: f64,
    /// The group secret that it has, by its generation: the host let it in.
    pub group: Option<u32>,
    /// The number of the link that it has, over reloads; on the host of the room's link.
    pub link: u32,
    /// What its page keeps over reloads of who may come into its room.
    pub doors: Doors,
    /// What it was told, if that is recorded.
    pub recorded: Option<Vec<(Event, Millis)>>,
}

impl SimPeer {
    pub fn new(index: usize, device: SimDevice) -> Self {
        let id = PeerId([index as u8 + 1; 16]);
        Self {
            id,
            device,
            machine: Peer::new(identity(id, 0, device.adapter)),
            hints: HintOptions::default(),
            life: 0,
            present: false,
            line: None,
            cut_until: 0.0,
            engine: SimEngine::default(),
            engine_free: 0.0,
            frozen_until: 0.0,
            slowed: 1.0,
            wrong: None,
            closed: None,
            load: None,
            orders: Orders::default(),
            loads: 0,
            next_load: None,
            trickles: None,
            expecting: 0,
            cancelled: 0,
            called: f64::NEG_INFINITY,
            missed: 0,
            guessed: 0,
            stored: BTreeSet::new(),
            answers: BTreeMap::new(),
            is_host: false,
            term: Term::default(),
            renewed: f64::NEG_INFINITY,
            group: None,
            link: 0,
            doors: Doors::default(),
            recorded: None,
        }
    }

    /// A new session of the same peer.
    pub fn fresh_machine(&self) -> Peer {
        Peer::new(self.identity()).with_hints(self.hints.clone())
    }

    pub fn identity(&self) -> Identity {
        identity(self.id, self.life, self.device.adapter)
    }

    /// When its load ends; 0 if it loads nothing.
    pub fn load_ends(&self, model: &SimModel) -> f64 {
        let millis =
            |load: &LoadRequest| self.device.load_millis(model, &load.units, self.engine.resident(), &self.stored);
        self.load.as_ref().filter(|(_, since)| since.is_finite()).map_or(0.0, |(load, since)| since + millis(load))
    }

    /// Interrupts its load: units that are there already stay, on its GPU and in its storage.
    pub fn interrupt_load(&mut self, model: &SimModel, now: f64) {
        let Some((load, since)) = self.load.take() else { return };
        let mut left = now - since;
        let missing: Vec<WeightUnit> =
            load.units.into_iter().filter(|unit| !self.engine.resident().contains(unit)).collect();
        for unit in missing {
            left -= self.device.load_millis(model, &[unit], &BTreeSet::new(), &self.stored);
            if left < 0.0 {
                break;
            }
            self.engine.load_unit(unit);
            self.stored.insert(unit);
        }
    }

    pub fn name(&self) -> String {
        name(self.id)
    }

    /// It came by the room's link.
    pub fn by_link(&self) -> bool {
        self.device.invited && self.device.invite.is_none() && !self.is_host
    }
}

/// The device of a simulated peer.
pub(super) fn device(peer: PeerId) -> DeviceId {
    DeviceId([peer.0[0]; 32])
}

/// One of the invites that a host gives out.
pub(super) fn invite(number: u8) -> Invite {
    let kind = InviteKind::Contribute;
    Invite { id: InviteId(number.into()), kind, ask: false, expires: UnixSeconds(u32::MAX), uses: u16::MAX }
}

fn name(peer: PeerId) -> String {
    format!("Device {}", peer.0[0])
}

fn identity(peer: PeerId, start: u64, adapter: &str) -> Identity {
    Identity {
        peer,
        device: device(peer),
        start: StartId(start),
        build: "sim".into(),
        kernel_class: 1,
        name: name(peer),
        kind: DeviceKind::Native,
        adapter: adapter.into(),
    }
}
