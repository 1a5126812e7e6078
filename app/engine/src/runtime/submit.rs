//! Turns recorded programs into submits: few passes, long work split into several submits, results copied at the end.

use std::collections::HashMap;
use std::rc::Rc;

use potluck_plan::{BlockIndex, BlockRange, Then};

use crate::runtime::layout::{PARAMS_COUNT, PARAMS_STRIDE};
use crate::runtime::memory::Slice;
use crate::runtime::recorder::{Program, Step};
use crate::runtime::sampled_tokens::Choice;

/// Steps whose uniforms are written per submit. The rest of the arena holds the uniforms of cached programs.
pub const PASSING: u32 = PARAMS_COUNT as u32 / 2;

/// What a cached program computes. Positions, pages, tokens and vectors are in buffers, so the program is the same for
/// every token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProgramKey {
    /// `n` decode tokens through blocks. `slot` receives the best token of the last batch row; 0 if none is sampled.
    Forward { n: u32, from: Source, blocks: BlockRange, then: Then, changes: LogitChanges, slot: usize },
    /// One step of a continuation, starting from the token in a slot.
    Continue { slot: usize, choice: Choice },
    /// Experts of a block for `n` decode tokens, and perhaps the weighted sum of each.
    Experts { n: u32, block: BlockIndex, sums: bool },
}

/// What is done to the logits of some rows before candidates are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LogitChanges {
    /// Biases are added.
    pub biases: bool,
    /// What may not be chosen is banned.
    pub masks: bool,
}

/// What a forward pass starts from; its values are in scratch buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// Token ids.
    Tokens,
    /// Hidden vectors.
    Hidden,
    /// Outputs of a block's experts, and the hidden vectors that their sum is added to.
    Experts(BlockIndex),
}

/// Cached programs and the part of the arena they occupy.
#[derive(Debug, Default)]
pub struct Programs {
    made: HashMap<ProgramKey, Rc<Program>>,
    used: u32,
}

impl Programs {
    /// Drops all programs because kernels or buffers changed.
    pub fn clear(&mut self) {
        self.made.clear();
        self.used = 0;
    }

    /// Looks up a cached program.
    pub fn get(&self, key: &ProgramKey) -> Option<Rc<Program>> {
        self.made.get(key).cloned()
    }

    /// Caches a program and writes its uniforms to its place in the arena. It evicts older programs if needed and does
    /// not cache a program that is too long for the arena.
    pub fn keep(
        &mut self,
        queue: &wgpu::Queue,
        arena: &wgpu::Buffer,
        key: ProgramKey,
        mut program: Program,
    ) -> Rc<Program> {
        let steps = program.steps.len() as u32;
        let room = PARAMS_COUNT as u32 - PASSING;
        if steps == 0 || steps > room {
            return Rc::new(program);
        }
        if self.used + steps > room {
            // Safe: programs in flight read their uniforms before the queue reaches these writes.
            self.clear();
        }
        let home = PASSING + self.used;
        self.used += steps;
        queue.write_buffer(arena, u64::from(home) * PARAMS_STRIDE, &program.uniforms);
        program.uniforms = Vec::new();
        program.home = Some(home);
        let program = Rc::new(program);
        self.made.insert(key, program.clone());
        program
    }
}

/// A copy between buffers.
#[derive(Clone, Debug)]
pub struct BufferCopy {
    pub from: Slice,
    pub to: wgpu::Buffer,
    pub at: u64,
}

/// A program and the copies before and after it.
#[derive(Debug)]
pub struct Run {
    pub before: Vec<BufferCopy>,
    pub program: Rc<Program>,
    /// One past the last position in the batch.
    pub reach: u32,
    pub after: Vec<BufferCopy>,
}

/// Submits work. Long work becomes several submits so that other tabs need not wait long for the GPU. The queue keeps
/// submits and uniform writes in order.
pub struct Submitter<'a> {
    device: &'a wgpu::Device,
    queue: &'a wgpu::Queue,
    arena: &'a wgpu::Buffer,
    /// Most bytes that one submit may process.
    max: u64,
    encoder: wgpu::CommandEncoder,
    cost: u64,
    /// The encoded commands use the per-submit part of the arena.
    passing: bool,
}

fn encoder(device: &wgpu::Device) -> wgpu::CommandEncoder {
    device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("work") })
}

impl<'a> Submitter<'a> {
    pub fn new(device: &'a wgpu::Device, queue: &'a wgpu::Queue, arena: &'a wgpu::Buffer, max: u64) -> Self {
        Self { device, queue, arena, max, encoder: encoder(device), cost: 0, passing: false }
    }

    /// Encodes and submits everything. Returns the index of the last submit.
    pub fn submit(mut self, runs: &[Run]) -> wgpu::SubmissionIndex {
        for run in runs {
            self.copy(&run.before);
            let mut rest = &run.program.steps[..];
            let mut first = 0;
            while !rest.is_empty() {
                let count = self.fitting(rest, run.program.home, run.reach);
                if count == 0 {
                    self.flush();
                    continue;
                }
                let (now, later) = rest.split_at(count);
                let base = self.uniforms(&run.program, first, count);
                self.pass(now, base, run.reach);
                first += count;
                rest = later;
            }
            self.copy(&run.after);
        }
        self.flush()
    }

    /// Encodes a cached program for a later submit; `None` if it needs several submits.
    pub fn encode(mut self, run: &Run) -> Option<wgpu::CommandBuffer> {
        let (steps, home) = (&run.program.steps, run.program.home);
        if self.fitting(steps, home, run.reach) < steps.len() {
            return None;
        }
        self.copy(&run.before);
        self.pass(steps, home?, run.reach);
        self.copy(&run.after);
        Some(self.encoder.finish())
    }

    /// Number of steps that still fit into this submit, limited by the arena's dispatches and by a cost of `max`. A
    /// single dispatch may exceed `max`. 0 if none fits.
    fn fitting(&self, steps: &[Step], home: Option<u32>, reach: u32) -> usize {
        if home.is_none() && self.passing {
            return 0;
        }
        let limit = if home.is_some() { usize::MAX } else { PASSING as usize };
        let mut cost = self.cost;
        let mut count = 0;
        for step in steps.iter().take(limit) {
            let more = step.cost(reach);
            if cost > 0 && cost + more > self.max {
                break;
            }
            cost += more;
            count += 1;
        }
        count
    }

    /// Places the uniforms of some steps; returns the offset of the first, in steps.
    fn uniforms(&mut self, program: &Program, first: usize, count: usize) -> u32 {
        if let Some(home) = program.home {
            return home + first as u32;
        }
        let stride = PARAMS_STRIDE as usize;
        self.queue.write_buffer(self.arena, 0, &program.uniforms[first * stride..(first + count) * stride]);
        self.passing = true;
        0
    }

    fn pass(&mut self, steps: &[Step], base: u32, reach: u32) {
        let mut pass = self.encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        let mut last = None;
        for (index, step) in (base..).zip(steps) {
            self.cost += step.cost(reach);
            let Some([x, y, z]) = step.size(reach) else { continue };
            if last != Some(&step.pipeline) {
                pass.set_pipeline(&step.pipeline);
                last = Some(&step.pipeline);
            }
            pass.set_bind_group(0, &step.group, &[index * PARAMS_STRIDE as u32]);
            pass.dispatch_workgroups(x, y, z);
        }
    }

    fn copy(&mut self, copies: &[BufferCopy]) {
        for copy in copies {
            let from = &copy.from;
            self.encoder.copy_buffer_to_buffer(&from.slab.buffer, from.offset, &copy.to, copy.at, from.size);
        }
    }

    fn flush(&mut self) -> wgpu::SubmissionIndex {
        let full = std::mem::replace(&mut self.encoder, encoder(self.device));
        self.cost = 0;
        self.passing = false;
        self.queue.submit([full.finish()])
    }
}
