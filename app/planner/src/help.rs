//! What is worth bringing: the least additional memory that lets the model fit, or a token be quicker.

use potluck_plan::{Bytes, PeerId};

use crate::cost::predict;
use crate::planned::best_stages;
use crate::{AccessLink, Device, Effort, Link, Links, Room, TAU, placement};

/// Something that would help.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Help {
    /// One more device, like the room's middle one, that lends so much.
    AnotherDevice {
        /// Bytes it would have to lend, at least.
        budget: Bytes,
        /// What it would bring.
        gain: Gain,
    },
    /// This device lends more.
    MoreMemory {
        /// Which one.
        peer: PeerId,
        /// Bytes besides those it lends, at least.
        extra: Bytes,
        /// What it would bring.
        gain: Gain,
    },
}

/// What help brings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Gain {
    /// The model fits.
    Fits,
    /// A token takes so many milliseconds less.
    Saves {
        /// Milliseconds a token.
        millis: f64,
    },
}

/// Most devices that are asked whether they would help.
const ASKED: usize = 8;
/// Halvings of a range of bytes: the answer is within one part in 2^10 of the model.
pub(crate) const HALVINGS: u32 = 10;
/// The device that is not there yet.
pub(crate) const NEWCOMER: PeerId = PeerId([0xff; 16]);

/// What would help, the least memory first; nothing where more memory changes nothing.
pub fn what_would_help(room: &Room<'_>) -> Vec<Help> {
    let questions = (room.devices.len().min(ASKED) as u64 + 1) * u64::from(HALVINGS + 1);
    let effort = Effort { steps: room.effort.steps / questions, ..room.effort };
    let room = Room { effort, ..room.clone() };
    let now = token_millis(&room);
    let mut found: Vec<(Bytes, Help)> = another_device(&room, now).into_iter().collect();
    found.extend(candidates(&room).into_iter().filter_map(|device| more_memory(&room, device, now)));
    found.sort_by_key(|(bytes, _)| *bytes);
    found.into_iter().map(|(_, help)| help).collect()
}

fn token_millis(room: &Room<'_>) -> Option<f64> {
    let stages = best_stages(room)?;
    Some(predict(room, &placement::plan(room, stages)).token_millis)
}

/// The coordinator and the devices that lend most.
fn candidates<'a>(room: &Room<'a>) -> Vec<&'a Device> {
    let mut devices: Vec<&Device> = room.devices.iter().collect();
    devices.sort_by_key(|device| (device.peer != room.coordinator, std::cmp::Reverse(device.budget), device.peer));
    devices.truncate(ASKED);
    devices
}

fn another_device(room: &Room<'_>, now: Option<f64>) -> Option<(Bytes, Help)> {
    let newcomer = Newcomer::of(room)?;
    let (budget, gain) = least(everything(room), now, |budget| newcomer.with(room, budget, token_millis))?;
    Some((budget, Help::AnotherDevice { budget, gain }))
}

/// A device that is not there yet, like the room's middle one.
pub(crate) struct Newcomer {
    device: Device,
    links: Links,
}

impl Newcomer {
    pub fn of(room: &Room<'_>) -> Option<Self> {
        let mut device = middle(room.devices)?.clone();
        device.peer = NEWCOMER;
        device.holds.clear();
        device.cached.clear();
        let mut links: Links = room.links.clone();
        links.set_access(NEWCOMER, middle_access(room));
        Some(Self { device, links })
    }

    /// The room if it were there and lent so many bytes.
    pub fn with<T>(&self, room: &Room<'_>, budget: u64, ask: impl Fn(&Room<'_>) -> T) -> T {
        let mut devices = room.devices.to_vec();
        devices.push(Device { budget: Bytes(budget), ..self.device.clone() });
        ask(&Room { devices: &devices, links: &self.links, ..room.clone() })
    }

    /// The least bytes that it would have to lend for an answer, if there is one with all of the model.
    pub fn least(&self, room: &Room<'_>, ask: impl Fn(&Room<'_>) -> Option<f64>) -> Option<u64> {
        Some(least(everything(room), None, |budget| self.with(room, budget, &ask))?.0.0)
    }
}

fn more_memory(room: &Room<'_>, device: &Device, now: Option<f64>) -> Option<(Bytes, Help)> {
    let with = |extra: u64| {
        let mut devices = room.devices.to_vec();
        let richer = devices.iter_mut().find(|other| other.peer == device.peer)?;
        richer.budget = richer.budget.saturating_add(Bytes(extra));
        token_millis(&Room { devices: &devices, ..room.clone() })
    };
    let (extra, gain) = least(everything(room).saturating_sub(device.budget.0), now, with)?;
    Some((extra, Help::MoreMemory { peer: device.peer, extra, gain }))
}

/// Bytes with which a device could do everything alone.
fn everything(room: &Room<'_>) -> u64 {
    room.layers.memory(room.layers.all()).saturating_add(room.overhead).0
}

/// The least bytes up to `most` with which the room is better by enough: more memory never makes a plan slower.
fn least(most: u64, now: Option<f64>, with: impl Fn(u64) -> Option<f64>) -> Option<(Bytes, Gain)> {
    let better = |bytes: u64| with(bytes).filter(|millis| now.is_none_or(|now| *millis < TAU * now));
    let mut gained = better(most)?;
    let (mut low, mut high) = (0, most);
    for _ in 0..HALVINGS {
        let middle = low + (high - low) / 2;
        match better(middle) {
            Some(millis) => (high, gained) = (middle, millis),
            None => low = middle,
        }
    }
    let gain = now.map_or(Gain::Fits, |now| Gain::Saves { millis: now - gained });
    Some((Bytes(high), gain))
}

/// The device of middle speed.
fn middle(devices: &[Device]) -> Option<&Device> {
    let mut sorted: Vec<&Device> = devices.iter().collect();
    sorted.sort_by(|a, b| a.speed.decode.total_cmp(&b.speed.decode).then(a.peer.cmp(&b.peer)));
    sorted.get(sorted.len() / 2).copied()
}

/// The middle one of the others' ways to the relay.
fn middle_access(room: &Room<'_>) -> AccessLink {
    let others = room.devices.iter().filter(|device| device.peer != room.coordinator);
    let mut ways: Vec<(Link, Link)> =
        others.map(|device| (room.links.up(device.peer), room.links.down(device.peer))).collect();
    ways.sort_by(|a, b| a.0.latency_millis.total_cmp(&b.0.latency_millis));
    ways.get(ways.len() / 2)
        .map_or(AccessLink { up: Link::NONE, down: Link::NONE }, |(up, down)| AccessLink { up: *up, down: *down })
}
