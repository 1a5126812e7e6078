//! The input of the dynamic program: workers with prefix sums over the layers, and the cost of a message between two of
//! them.

use potluck_plan::{Bytes, Ends, PeerId};

use crate::cost::{millis, speed};
use crate::ends::HostEnds;
use crate::layers::{LayerRange, prefix};
use crate::{Device, Room};

/// Tie-break per block that would have to be loaded, milliseconds: of two equal plans the one that moves less wins.
const MOVE_MILLIS: f64 = 1e-3;
/// Tie-break per stage, milliseconds: of two equal plans the one with fewer stages wins.
const STAGE_MILLIS: f64 = 1e-5;
/// Each recent departure makes a device's work count this share more, up to [`MAX_DEPARTURES`]: of two devices that are
/// nearly as good the more reliable one wins, and one that is much better wins all the same.
const DEPARTURE_SHARE: f64 = 0.05;
const MAX_DEPARTURES: u32 = 4;
/// A tie-break against hidden tabs, which the browser may slow down, milliseconds.
const HIDDEN_MILLIS: f64 = 1e-4;

/// A device, as prefix sums over the chain's layers (one longer than the layers).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Worker {
    pub peer: PeerId,
    /// Milliseconds per token that do not depend on the number of layers.
    pub fixed: f64,
    /// Milliseconds per token of the first `n` layers.
    pub cost: Vec<f64>,
    /// Bytes of the first `n` layers.
    pub memory: Vec<u64>,
    /// Bytes it can hold.
    pub capacity: u64,
    /// As [`Device::pauses`].
    pub pauses: Vec<(f64, f64)>,
    /// How many of the first `n` layers have a KV cache larger than one of its bindings; empty if none has.
    pub unseen: Vec<u32>,
    /// Milliseconds to download the first `n` layers, for [`Chain::max_missing_millis`]; empty without such a limit.
    pub missing: Vec<f64>,
}

impl Worker {
    fn new(room: &Room<'_>, device: &Device, range: LayerRange) -> Self {
        let count = room.layers.count();
        let layers: Vec<_> = room.layers.iter().copied().enumerate().collect();
        let layers = &layers[range.start..range.end];
        let risk = 1.0 + DEPARTURE_SHARE * f64::from(device.presence.departures.min(MAX_DEPARTURES));
        let rate = speed(device.speed.decode) / risk;
        let moved = |index: usize| {
            let block = index.checked_sub(1).filter(|_| index + 1 < count);
            let held = block.is_none_or(|block| device.holds.contains(&potluck_plan::BlockIndex(block as u16)));
            if held { 0.0 } else { MOVE_MILLIS }
        };
        Self {
            peer: device.peer,
            fixed: millis(device.session_millis) * risk
                + STAGE_MILLIS
                + f64::from(u8::from(device.presence.hidden)) * HIDDEN_MILLIS,
            cost: prefix(layers, |(index, layer)| layer.decode / rate + moved(*index), |a, b| a + b),
            memory: prefix(layers, |(_, layer)| layer.memory.0, u64::saturating_add),
            capacity: device.budget.saturating_sub(room.overhead).0,
            pauses: device.pauses.clone(),
            unseen: if layers.iter().any(|(_, layer)| layer.buffer > device.binding) {
                prefix(layers, |(_, layer)| u32::from(layer.buffer > device.binding), |a, b| a + b)
            } else {
                Vec::new()
            },
            missing: Vec::new(),
        }
    }

    /// Milliseconds per token of one stage, without pauses.
    pub fn busy(&self, start: usize, end: usize) -> f64 {
        self.fixed + self.cost[end] - self.cost[start]
    }

    /// Equal but for the peer: swapping two such workers does not change the cost of a plan.
    fn equals(&self, other: &Self) -> bool {
        Self { peer: self.peer, ..other.clone() } == *self
    }
}

/// A chain of layers, the workers to partition it over, and the messages between them.
pub(crate) struct Chain {
    /// How many layers it covers.
    pub layers: usize,
    pub workers: Vec<Worker>,
    /// First layer and one past the last one of the model.
    pub range: LayerRange,
    /// The range begins (ends) with the embedding (LM head), which may not be a stage alone.
    pub ends: (bool, bool),
    /// Whether a stage may end after the first `n` layers, and another one begin.
    cuts: Vec<bool>,
    /// Bytes that one worker with all layers saves, because the LM head is the embedding table.
    pub tied: u64,
    /// The only worker that may be the first.
    pub first: Option<usize>,
    /// Layers behind the chain, which that worker computes, too.
    pub tail: Option<LayerRange>,
    /// No worker may download for longer than this, milliseconds.
    pub max_missing_millis: f64,
    entry: Vec<f64>,
    exit: Vec<f64>,
    access: Vec<AccessMillis>,
}

/// Milliseconds of a message on a worker's access link, by the number of layers computed before it.
struct AccessMillis {
    up: Vec<f64>,
    down: Vec<f64>,
}

impl Chain {
    /// All devices of a room that may have a stage, and all layers, from the coordinator and back to it.
    pub fn new(room: &Room<'_>) -> Self {
        let devices: Vec<&Device> = room.stage_devices().collect();
        match room.ends {
            Ends::Anywhere => Self::between(room, &devices, room.layers.all(), (room.coordinator, room.coordinator)),
            Ends::OnHost => Self::with_ends_on_host(room, &devices),
        }
    }

    /// The same, with both ends on the host: tokens go to it first, and it computes the last block and the LM head after all
    /// others, or everything. Nothing fits if it does not lend enough for that.
    fn with_ends_on_host(room: &Room<'_>, devices: &[&Device]) -> Self {
        let (host, ends) = (room.coordinator, HostEnds::of(room));
        let range = LayerRange { end: ends.tail.start, ..room.layers.all() };
        let mut chain = Self::between(room, devices, range, (host, host));
        chain.tail = (ends.tail.start < ends.tail.end).then_some(ends.tail);
        chain.first = devices.iter().position(|device| device.peer == host);
        let others = (0..devices.len()).filter(|worker| Some(*worker) != chain.first);
        others.for_each(|worker| chain.entry[worker] = f64::INFINITY);
        let (Some(first), Some(tail)) = (chain.first, chain.tail) else {
            // One device has everything.
            let others = (0..devices.len()).filter(|worker| Some(*worker) != chain.first);
            others.for_each(|worker| chain.exit[worker] = f64::INFINITY);
            return chain;
        };
        let behind = Worker::new(room, devices[first], tail);
        let bytes = ends.tail_memory(room).0;
        if bytes > behind.capacity || behind.unseen.last().is_some_and(|unseen| *unseen > 0) {
            chain.entry[first] = f64::INFINITY;
        }
        chain.workers[first].capacity = behind.capacity.saturating_sub(bytes);
        let busy = behind.busy(0, tail.end - tail.start);
        for (worker, exit) in chain.exit.iter_mut().enumerate() {
            // The host goes on with what it has computed itself, or begins a second stage.
            *exit += if worker == first { busy - behind.fixed } else { busy };
        }
        chain
    }

    /// Some devices of a room and some layers; tokens come from the first of `ends` and results go to the second.
    pub fn between(room: &Room<'_>, devices: &[&Device], range: LayerRange, ends: (PeerId, PeerId)) -> Self {
        let bytes: Vec<Bytes> = (range.start..=range.end).map(|at| room.layers.message(at, 1)).collect();
        let layers = range.end - range.start;
        let access = devices.iter().map(|device| {
            let (up, down) = (room.links.up(device.peer), room.links.down(device.peer));
            AccessMillis {
                up: bytes.iter().map(|bytes| millis(up.millis(*bytes))).collect(),
                down: bytes.iter().map(|bytes| millis(down.millis(*bytes))).collect(),
            }
        });
        let entry = |device: &&Device| millis(room.links.millis(ends.0, device.peer, bytes[0]));
        let exit = |device: &&Device| millis(room.links.millis(device.peer, ends.1, bytes[layers]));
        Self {
            layers,
            workers: devices.iter().map(|device| Worker::new(room, device, range)).collect(),
            range,
            ends: (range.start == 0, range.end == room.layers.count()),
            cuts: (range.start..=range.end)
                .map(|at| at == range.start || at == range.end || room.may_cut_at(at))
                .collect(),
            tied: room.layers.tied(range).0,
            first: None,
            tail: None,
            max_missing_millis: f64::INFINITY,
            entry: devices.iter().map(entry).collect(),
            exit: devices.iter().map(exit).collect(),
            access: access.collect(),
        }
    }

    /// True if pauses slow any worker down.
    pub fn pauses(&self) -> bool {
        self.workers.iter().any(|worker| !worker.pauses.is_empty())
    }

    pub fn entry(&self, worker: usize) -> f64 {
        self.entry[worker]
    }

    pub fn exit(&self, worker: usize) -> f64 {
        self.exit[worker]
    }

    pub fn up(&self, worker: usize, at: usize) -> f64 {
        self.access[worker].up[at]
    }

    pub fn down(&self, worker: usize, at: usize) -> f64 {
        self.access[worker].down[at]
    }

    /// Milliseconds of the message from one worker to another after `at` layers. Every message takes two access links, so the
    /// cheapest sender is the same for all receivers. One worker may stand for two equal devices.
    pub fn hop(&self, from: usize, to: usize, at: usize) -> f64 {
        self.up(from, at) + self.down(to, at)
    }

    /// Milliseconds of all messages of a token that passes these workers, each given with the number of layers computed
    /// after it.
    pub fn messages(&self, segments: impl Iterator<Item = (usize, usize)>) -> f64 {
        let (mut millis, mut last) = (0.0, None);
        for (worker, end) in segments {
            millis += match last {
                None => self.entry(worker),
                Some((from, at)) => self.hop(from, worker, at),
            };
            last = Some((worker, end));
        }
        millis + last.map_or(0.0, |(worker, _)| self.exit(worker))
    }

    /// Bytes of layers `start..end` on a worker.
    pub fn memory(&self, worker: usize, start: usize, end: usize) -> u64 {
        let memory = &self.workers[worker].memory;
        let tied = if start == 0 && end == self.layers { self.tied } else { 0 };
        (memory[end] - memory[start]).saturating_sub(tied)
    }

    /// True if a stage may begin after the first `at` layers, or end there.
    pub fn may_cut(&self, at: usize) -> bool {
        self.cuts[at]
    }

    /// True if the layers' KV cache fits the worker's bindings and their download takes no longer than allowed.
    pub fn may_take(&self, worker: usize, start: usize, end: usize) -> bool {
        let Worker { missing, unseen, .. } = &self.workers[worker];
        let is_seen = unseen.is_empty() || unseen[start] == unseen[end];
        is_seen && (missing.is_empty() || missing[end] - missing[start] <= self.max_missing_millis)
    }

    /// The largest start of a stage that ends with layer `end`, or `None` if there is none: neither the embedding nor
    /// the LM head may be a stage alone, and no stage may end where the model must not be cut.
    pub fn latest_start(&self, end: usize) -> Option<usize> {
        let start = if self.ends.1 && end == self.layers { end.checked_sub(2) } else { end.checked_sub(1) };
        start.filter(|start| self.cuts[end] && !(self.ends.0 && *start == 0 && end == 1))
    }

    /// Equivalence classes of workers that can be swapped, each in the order of the workers.
    pub fn classes(&self) -> Vec<Vec<usize>> {
        let mut classes: Vec<Vec<usize>> = Vec::new();
        for worker in 0..self.workers.len() {
            let same = |other: usize| {
                self.workers[worker].equals(&self.workers[other])
                    && self.entry[worker] == self.entry[other]
                    && self.exit[worker] == self.exit[other]
                    && self.access[worker].up == self.access[other].up
                    && self.access[worker].down == self.access[other].down
            };
            match classes.iter_mut().find(|class| same(class[0])) {
                Some(class) => class.push(worker),
                None => classes.push(vec![worker]),
            }
        }
        classes
    }
}
