//! What would help a room: the least additional memory with which the model fits, or tokens are faster.

use potluck_plan::{Bytes, PeerId};

use crate::cost::predict;
use crate::planned::best_stages;
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

/// What would help, the least memory first; empty where more memory changes nothing.
pub fn what_would_help(room: &Room<'_>) -> Vec<Help> {
    let questions = (room.devices.len().min(ASKED) as u64 + 1) * u64::from(BISECTIONS + 1);
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

/// The coordinator and the devices with the largest budgets.
fn candidates<'a>(room: &Room<'a>) -> Vec<&'a Device> {
    let mut devices: Vec<&Device> = room.devices.iter().collect();
    devices.sort_by_key(|device| (device.peer != room.coordinator, std::cmp::Reverse(device.budget), device.peer));
    devices.truncate(ASKED);
    devices
}

fn another_device(room: &Room<'_>, now: Option<f64>) -> Option<(Bytes, Help)> {
    let newcomer = Newcomer::of(room)?;
    let (budget, gain) = min_bytes(everything(room), now, |budget| newcomer.with(room, budget, token_millis))?;
    Some((budget, Help::AnotherDevice { budget, gain }))
}

/// A hypothetical device, with the room's median speed and access link.
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
        Some(min_bytes(everything(room), None, |budget| self.with(room, budget, &ask))?.0.0)
    }
}

fn more_memory(room: &Room<'_>, device: &Device, now: Option<f64>) -> Option<(Bytes, Help)> {
    let with = |extra: u64| {
        let mut devices = room.devices.to_vec();
        let richer = devices.iter_mut().find(|other| other.peer == device.peer)?;
        richer.budget = richer.budget.saturating_add(Bytes(extra));
        token_millis(&Room { devices: &devices, ..room.clone() })
    };
    let (extra, gain) = min_bytes(everything(room).saturating_sub(device.budget.0), now, with)?;
    Some((extra, Help::MoreMemory { peer: device.peer, extra, gain }))
}

/// Bytes with which one device could hold the whole model.
fn everything(room: &Room<'_>) -> u64 {
    room.layers.memory(room.layers.all()).saturating_add(room.overhead).0
}

/// The least bytes up to `max` with which the room is better by enough. Bisection works because more memory never makes
/// the best plan slower.
fn min_bytes(max: u64, now: Option<f64>, with: impl Fn(u64) -> Option<f64>) -> Option<(Bytes, Gain)> {
    let better = |bytes: u64| with(bytes).filter(|millis| now.is_none_or(|now| *millis < TAU * now));
    let mut gained = better(max)?;
    let (mut low, mut high) = (0, max);
    for _ in 0..BISECTIONS {
        let middle = low + (high - low) / 2;
        match better(middle) {
            Some(millis) => (high, gained) = (middle, millis),
            None => low = middle,
        }
    }
    let gain = now.map_or(Gain::Fits, |now| Gain::Saves { millis: now - gained });
    Some((Bytes(high), gain))
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
