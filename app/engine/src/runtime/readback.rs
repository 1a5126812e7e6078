//! Results on their way back: the buffers that map them and the meaning of their bytes.

use std::rc::Rc;

use potluck_plan::{Candidates, ExpertId, Outcome, Route, Ticket};
use potluck_shaders::NO_SLOT;

use crate::runtime::core::Core;
use crate::runtime::memory::Slab;
use crate::runtime::usage::Working;

/// A buffer for results.
#[derive(Debug)]
pub struct Readback {
    pub slab: Rc<Slab>,
    pub busy: bool,
}

/// Meaning of a result's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// No data, only completion.
    Done,
    /// Hidden vectors.
    Hidden,
    /// Outputs of experts: so many bytes, a vector for each (token, expert) pair.
    ExpertOutputs { bytes: u64 },
    /// Residual, normed vector, chosen ids and weights of `rows` tokens, with the hidden width and the experts per
    /// token.
    Routed { rows: u32, hidden: u32, used: u32 },
    /// `count` candidates per batch row.
    Candidates { rows: u32, count: u32 },
    /// The same with the sampled token behind them.
    Sampled { rows: u32, count: u32 },
    /// Logits.
    Logits,
}

/// Submitted work that is not answered yet.
#[derive(Debug)]
pub struct Pending {
    pub ticket: Ticket,
    pub readback: usize,
    pub bytes: u64,
    pub kind: Kind,
    pub started: f64,
    /// Marks the adapter as busy until it is dropped.
    #[expect(dead_code, reason = "it is there to be dropped")]
    pub working: Working,
    /// Whether this is a decode step with poll kicks.
    #[cfg(target_arch = "wasm32")]
    pub poll_kicked: bool,
    /// The last submit of the work.
    #[cfg_attr(target_arch = "wasm32", expect(dead_code, reason = "only natively is a submit waited for"))]
    pub submission: wgpu::SubmissionIndex,
}

const NOT_FINITE: &str = "The GPU computed a value that is not a finite number: the weights may be damaged.";

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

fn finite(values: Vec<f32>, make: impl FnOnce(Vec<f32>) -> Outcome) -> Outcome {
    if values.iter().all(|v| v.is_finite()) { make(values) } else { Outcome::Failed(NOT_FINITE.into()) }
}

impl Kind {
    /// Decodes a result.
    pub fn read(self, bytes: &[u8]) -> Outcome {
        match self {
            Self::Done => Outcome::Done,
            Self::Hidden => finite(floats(bytes), Outcome::Hidden),
            Self::ExpertOutputs { bytes: len } => finite(floats(&bytes[..len as usize]), Outcome::ExpertOutputs),
            Self::Logits => finite(floats(bytes), Outcome::Logits),
            Self::Candidates { rows, count } => candidates(&words(bytes), rows as usize, count as usize, 0),
            Self::Sampled { rows, count } => candidates(&words(bytes), rows as usize, count as usize, 1),
            Self::Routed { rows, hidden, used } => {
                let vector = (rows * hidden * 4) as usize;
                let pairs = (rows * used * 4) as usize;
                let (residual, rest) = bytes.split_at(vector);
                let (normed, rest) = rest.split_at(vector);
                let (chosen, gates) = rest.split_at(pairs);
                let (chosen, gates) = (words(chosen), floats(gates));
                let residual = floats(residual);
                let normed = floats(normed);
                if !residual.iter().chain(&normed).chain(&gates).all(|v| v.is_finite()) || chosen.contains(&NO_SLOT) {
                    return Outcome::Failed(NOT_FINITE.into());
                }
                let routes = chosen
                    .chunks(used as usize)
                    .zip(gates.chunks(used as usize))
                    .map(|(ids, gates)| Route {
                        experts: ids.iter().zip(gates).map(|(&id, &gate)| (ExpertId(id as u16), gate)).collect(),
                    })
                    .collect();
                Outcome::Routed { residual, normed, routes }
            }
        }
    }
}

/// Rows of candidates, each followed by `sampled` tokens: one or none.
fn candidates(words: &[u32], rows: usize, count: usize, sampled: usize) -> Outcome {
    let mut all = Vec::with_capacity(rows);
    for row in words.chunks_exact(2 * (count + sampled)).take(rows) {
        let sampled = row.get(2 * count).copied();
        let mut best = Candidates { ids: Vec::with_capacity(count), logits: Vec::with_capacity(count), sampled };
        for pair in row[..2 * count].chunks_exact(2) {
            let logit = f32::from_bits(pair[1]);
            if pair[0] == u32::MAX || !logit.is_finite() {
                return Outcome::Failed(NOT_FINITE.into());
            }
            best.ids.push(pair[0]);
            best.logits.push(logit);
        }
        all.push(best);
    }
    Outcome::Candidates(all)
}

impl Core {
    /// Adjusts the readback buffers to the layout. Busy buffers stay until their result is read. Ordinary buffers begin at the
    /// size that most results need; [`Self::free_readback`] makes one as large as planned when a result wants it.
    pub fn make_readbacks(&mut self) {
        let layout = self.layout.clone();
        let ordinary = self.settings.in_flight.max(1) as usize;
        for index in 0..=ordinary {
            let bytes = if index < ordinary { layout.usual_readback_bytes } else { layout.logits_bytes.max(256) };
            let fits = self.readbacks.get(index).is_some_and(|r| r.slab.buffer.size() >= bytes || r.busy);
            if !fits {
                self.make_readback(index, bytes);
            }
        }
    }

    fn make_readback(&mut self, index: usize, bytes: u64) {
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let slab = self.memory.create(&self.gpu.device, "readback", bytes, usage);
        let readback = Readback { slab, busy: false };
        match self.readbacks.get_mut(index) {
            Some(smaller) => *smaller = readback,
            None => self.readbacks.push(readback),
        }
    }

    /// Finds a free buffer with room for `bytes`, or gives a smaller free one that room, if the plan has it.
    pub fn free_readback(&mut self, bytes: u64) -> Option<usize> {
        let found = self.readbacks.iter().position(|r| !r.busy && r.slab.buffer.size() >= bytes);
        if found.is_some() || bytes > self.layout.readback_bytes {
            return found;
        }
        let ordinary = self.settings.in_flight.max(1) as usize;
        let smaller = self.readbacks.iter().take(ordinary).position(|r| !r.busy)?;
        self.make_readback(smaller, self.layout.readback_bytes);
        Some(smaller)
    }

    /// True if some buffer has room for `bytes`, or may get it, free or busy.
    pub fn can_read(&self, bytes: u64) -> bool {
        bytes <= self.layout.readback_bytes || self.readbacks.iter().any(|r| r.slab.buffer.size() >= bytes)
    }

    /// Handles a mapped result.
    pub fn receive(&mut self, index: usize, mapped: bool) {
        let Some(at) = self.pending.iter().position(|pending| pending.readback == index) else { return };
        let Some(pending) = self.pending.remove(at) else { return };
        if !mapped {
            self.gpu.mark_lost();
        }
        let outcome = match self.readbacks.get_mut(index) {
            Some(readback) if mapped => {
                let outcome = match readback.slab.buffer.get_mapped_range(..pending.bytes) {
                    Ok(view) => pending.kind.read(&view),
                    Err(_) if self.gpu.lost() => Outcome::DeviceLost,
                    Err(error) => Outcome::Failed(format!("A result could not be read: {error}")),
                };
                readback.slab.buffer.unmap();
                readback.busy = false;
                outcome
            }
            _ => Outcome::DeviceLost,
        };
        let millis = crate::runtime::clock::now() - pending.started;
        #[cfg(target_arch = "wasm32")]
        if pending.poll_kicked && mapped {
            self.step_times.learn(millis);
        }
        self.answer(pending.ticket, outcome, millis);
    }

    /// Fails everything in flight because the device is lost.
    pub fn fail_all(&mut self) {
        while let Some(pending) = self.pending.pop_front() {
            self.answer(pending.ticket, Outcome::DeviceLost, 0.0);
        }
        while let Some(work) = self.waiting.pop_front() {
            self.answer(work.ticket, Outcome::DeviceLost, 0.0);
        }
    }
}
