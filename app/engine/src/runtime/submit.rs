//! From recorded programs to submits: few passes, long work cut into several, results copied at the end.

use std::collections::HashMap;
use std::rc::Rc;

use potluck_plan::{BlockIndex, BlockRange, Then};

use crate::runtime::layout::{PARAMS_COUNT, PARAMS_STRIDE};
use crate::runtime::memory::Slice;
use crate::runtime::recorder::{Program, Step};

/// Steps whose uniforms are written for one submit; the rest of the arena is home to programs that are kept.
pub const PASSING: u32 = PARAMS_COUNT as u32 / 2;

/// What a kept program computes. Positions, pages, tokens and vectors are in buffers: it is the same for every token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProgramKey {
    /// `n` decode rows from tokens (or from hidden vectors) through blocks. `slot`: where the best token of the last row
    /// goes, 0 where none is picked.
    Forward { n: u32, tokens: bool, blocks: BlockRange, then: Then, slot: usize },
    /// One step of a continuation, by the token in a slot.
    Continue { slot: usize },
    /// Experts of a block for `n` decode rows.
    Experts { n: u32, block: BlockIndex },
}

/// Programs that are kept, and how much of the arena they take.
#[derive(Debug, Default)]
pub struct Programs {
    made: HashMap<ProgramKey, Rc<Program>>,
    used: u32,
}

impl Programs {
    /// Forgets all: kernels or buffers changed.
    pub fn clear(&mut self) {
        self.made.clear();
        self.used = 0;
    }

    /// A kept program.
    pub fn get(&self, key: &ProgramKey) -> Option<Rc<Program>> {
        self.made.get(key).cloned()
    }

    /// Keeps a program, writing its uniforms to their home. Older programs make room; a program that is too long for the
    /// arena is not kept.
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
            // Programs under way have read their uniforms before the queue gets to these writes.
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
pub struct Copy {
    pub from: Slice,
    pub to: wgpu::Buffer,
    pub at: u64,
}

/// A program with what is copied before and after it.
#[derive(Debug)]
pub struct Run {
    pub before: Vec<Copy>,
    pub program: Rc<Program>,
    /// One past the last position of any row.
    pub reach: u32,
    pub after: Vec<Copy>,
}

/// Submits work. Long work makes several submits, so that no other tab waits long for the GPU; the queue keeps their order
/// with the writes of their uniforms.
pub struct Submitter<'a> {
    device: &'a wgpu::Device,
    queue: &'a wgpu::Queue,
    arena: &'a wgpu::Buffer,
    /// Bytes that one submit may get through.
    max: u64,
    encoder: wgpu::CommandEncoder,
    cost: u64,
    /// The passing part of the arena is in use by what is encoded.
    passing: bool,
}

fn encoder(device: &wgpu::Device) -> wgpu::CommandEncoder {
    device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("work") })
}

impl<'a> Submitter<'a> {
    pub fn new(device: &'a wgpu::Device, queue: &'a wgpu::Queue, arena: &'a wgpu::Buffer, max: u64) -> Self {
        Self { device, queue, arena, max, encoder: encoder(device), cost: 0, passing: false }
    }

    /// Encodes everything and submits it. Returns which submit was the last.
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

    /// Encodes a kept program for one submit later on; `None` if it takes several.
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

    /// How many steps still fit this submit: no more dispatches than the arena holds, nor more cost than `max` (unless
    /// one dispatch alone has). 0: none.
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

    /// Sees to the uniforms of some steps; returns where the first one's are, in steps.
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

    fn copy(&mut self, copies: &[Copy]) {
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
