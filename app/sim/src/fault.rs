//! Faults, and their effect on the world.

use potluck_plan::Outcome;
use potluck_protocol::{Leaving, Sharing};
use potluck_swarm::Event;

use super::engine::SimEngine;
use super::peer::SimPeer;
use super::random::{Random, mix};
use super::world::{Scheduled, World};

/// Milliseconds between two bytes of [`Fault::Trickle`]: less than a load may stand still.
pub(super) const TRICKLE_MILLIS: f64 = 100_000.0;

/// Things that can go wrong. Devices by index, times in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// The tab is killed.
    Kill(usize),
    /// The tab of whoever hosts the room then is killed, if it lends: others may ask in it.
    KillHost,
    /// The device is gone without a word: its connection stays until the relay finds it silent.
    Vanish(usize),
    /// The tab is reloaded: a new session of the same peer enters after this time.
    Reload(usize, f64),
    /// The connection drops and is back after this time; what was in flight is lost.
    Outage(usize, f64),
    /// The whole relay restarts.
    RelayRestart(f64),
    /// The GPU device is lost.
    DeviceLost(usize),
    /// The tab freezes for this time: it computes and hears nothing, but its connection stays.
    Freeze(usize, f64),
    /// Nothing passes the device's link for this time; afterwards everything arrives at once.
    Cut(usize, f64),
    /// The device is slower by this factor from now on (1: its own speed again).
    Slow(usize, f64),
    /// The device's next load never ends, though it is there and answers.
    StuckLoad(usize),
    /// Neither does this one: only a byte arrives now and then.
    Trickle(usize),
    /// From now on what its GPU computes is wrong.
    Wrong(usize, Wrong),
    /// Its owner presses Stop contributing.
    StopContributing(usize),
    /// Its owner contributes it again.
    ContributeAgain(usize),
    /// Its owner changes its memory budget.
    SetBudget(usize, u64),
    /// Its owner leaves the room, and the others learn it. If it is the host's, the room ends.
    Leave(usize),
    /// The host closes the room for now, and another session of it opens the room again after this time.
    CloseForNow(f64),
    /// It sends forged frames, so many bursts of them.
    Forge(usize, u32),
    /// The host changes how work is shared: not a fault, but another plan.
    Sharing(Sharing),
}

/// A load that never ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Endless {
    /// Nothing is heard of it.
    Silent,
    /// A byte arrives every [`TRICKLE_MILLIS`].
    Trickling,
}

/// How results are wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Wrong {
    /// A value is no number.
    NotFinite,
    /// A value is missing.
    Short,
    /// One of so many answers of its experts has another value, which is as good a number as any.
    Lies(u32),
    /// The same in about one of this many answers, and alike on each faulty device: two of them agree.
    Colludes(u32),
    /// It says that it cannot compute experts.
    Unable,
    /// In one of this many batches of its layers, one value is replaced by another number that is as good as any.
    LiesInLayers(u32),
}

impl Wrong {
    pub(super) fn corrupt(self, outcome: &mut Outcome, random: &mut Random) {
        if let Self::Colludes(rarely) = self {
            if let Outcome::ExpertOutputs(values) = outcome {
                let drawn = values.iter().fold(0, |drawn, value| mix(drawn ^ u64::from(value.to_bits())));
                let lies = drawn.is_multiple_of(u64::from(rarely));
                values.iter_mut().take(usize::from(lies)).for_each(|value| *value += 0.25);
            }
            return;
        }
        if let Self::Lies(rarely) = self {
            if let Outcome::ExpertOutputs(values) = outcome
                && random.below(u64::from(rarely)) == 0
            {
                values.iter_mut().take(1).for_each(|value| *value += 0.25);
            }
            return;
        }
        if let Self::LiesInLayers(rarely) = self {
            if random.below(u64::from(rarely)) == 0 {
                match outcome {
                    Outcome::Hidden(values) => values.iter_mut().take(1).for_each(|value| *value += 0.25),
                    // Another token, as likely as the best one was.
                    Outcome::Candidates(rows) => {
                        rows.iter_mut().flat_map(|row| row.ids.first_mut()).for_each(|id| *id ^= 1);
                    }
                    _ => {}
                }
            }
            return;
        }
        if self == Self::Unable && matches!(outcome, Outcome::ExpertOutputs(_)) {
            *outcome = Outcome::Failed("no expert can be computed here".to_owned());
        }
        let corrupt = |values: &mut Vec<f32>| match self {
            Self::NotFinite => values.iter_mut().take(1).for_each(|value| *value = f32::NAN),
            Self::Short => drop(values.pop()),
            Self::Lies(_) | Self::Colludes(_) | Self::Unable | Self::LiesInLayers(_) => {}
        };
        match outcome {
            Outcome::Hidden(values) | Outcome::ExpertOutputs(values) => corrupt(values),
            Outcome::Candidates(rows) => rows.iter_mut().for_each(|row| corrupt(&mut row.logits)),
            _ => {}
        }
    }
}

impl Fault {
    /// The affected device; a restart of the relay affects all.
    pub fn device(&self) -> Option<usize> {
        match *self {
            Self::Kill(index)
            | Self::Vanish(index)
            | Self::Reload(index, _)
            | Self::Outage(index, _)
            | Self::DeviceLost(index)
            | Self::Freeze(index, _)
            | Self::Cut(index, _)
            | Self::Slow(index, _)
            | Self::StuckLoad(index)
            | Self::Trickle(index)
            | Self::Wrong(index, _)
            | Self::StopContributing(index)
            | Self::ContributeAgain(index)
            | Self::SetBudget(index, _)
            | Self::Leave(index)
            | Self::Forge(index, _) => Some(index),
            Self::CloseForNow(_) | Self::Sharing(_) => Some(0),
            Self::RelayRestart(_) | Self::KillHost => None,
        }
    }
}

impl World {
    pub(super) fn inject(&mut self, fault: Fault) {
        self.annotate(fault);
        match fault {
            Fault::Kill(index) => self.kill(index),
            Fault::KillHost => {
                if let Some(host) = self.host_now().filter(|host| self.peers[*host].device.budget.is_some()) {
                    self.kill(host);
                }
            }
            Fault::Vanish(index) => {
                self.fall_silent(index);
                self.end(index);
            }
            Fault::Reload(index, back) => self.reload(index, back),
            Fault::Outage(index, back) => self.outage(index, back),
            Fault::RelayRestart(back) => (0..self.peers.len()).for_each(|index| self.outage(index, back)),
            Fault::DeviceLost(index) => {
                self.peers[index].lose_device();
                self.event(index, Event::DeviceLost("the GPU device was lost".into()));
            }
            Fault::Freeze(index, millis) => {
                let until = self.now + millis;
                let peer = &mut self.peers[index];
                peer.frozen_until = peer.frozen_until.max(until);
            }
            Fault::Cut(index, millis) => self.cut(index, millis),
            Fault::Slow(index, factor) => self.peers[index].slowed = factor,
            Fault::StuckLoad(index) => self.peers[index].next_load = Some(Endless::Silent),
            Fault::Trickle(index) => self.peers[index].next_load = Some(Endless::Trickling),
            Fault::Wrong(index, wrong) => self.peers[index].wrong = Some(wrong),
            Fault::Sharing(share) => self.event(0, Event::SetSharing(share)),
            Fault::StopContributing(index) => self.event(index, Event::StopContributing),
            Fault::ContributeAgain(index) => self.contribute(index),
            Fault::SetBudget(index, budget) => {
                self.peers[index].device.budget = Some(budget);
                self.contribute(index);
            }
            Fault::Forge(index, bursts) => self.forge(index, bursts),
            Fault::Leave(index) => {
                self.event(index, Event::Leave(Leaving::ForGood));
                self.hang_up(index);
                self.peers[index].present = false;
            }
            Fault::CloseForNow(back) => {
                self.event(0, Event::Leave(Leaving::ForNow));
                self.reload(0, back);
            }
        }
    }

    fn reload(&mut self, index: usize, back: f64) {
        self.kill(index);
        let peer = &mut self.peers[index];
        peer.machine = peer.fresh_machine();
        peer.group = None;
        self.schedule(self.now + back, index, Scheduled::Enter);
    }

    /// The process is gone; what it had sent still arrives, and then the relay notices.
    fn kill(&mut self, index: usize) {
        self.hang_up(index);
        self.end(index);
    }

    fn end(&mut self, index: usize) {
        let peer = &mut self.peers[index];
        peer.life += 1;
        peer.present = false;
        peer.lose_device();
    }

    fn outage(&mut self, index: usize, back: f64) {
        if self.peers[index].line.is_none() {
            return;
        }
        self.drop_line(index);
        self.event(index, Event::Disconnected);
        self.schedule(self.now + back, index, Scheduled::Dial);
    }
}

impl SimPeer {
    fn lose_device(&mut self) {
        self.engine = SimEngine::default();
        self.load = None;
    }
}
