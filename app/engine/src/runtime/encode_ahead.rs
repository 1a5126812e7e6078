//! Encodes the commands of decode steps before they are needed. In a shared model a device runs a few programs again and again: that
//! of its stage for each token, or one for each block whose experts lie elsewhere. Once a program has run, its commands are
//! encoded again, one position further, while the device waits. That takes encoding off the critical path: only the input
//! is written before the submit.

use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use crate::runtime::layout::Scratch;
use crate::runtime::recorder::{Program, splits};

/// Parts of a result: scratch buffer, first byte, bytes.
pub type Parts = Vec<(Scratch, u64, u64)>;

/// The commands of at most this many programs are kept.
const MAX_PROGRAMS: usize = 512;

/// The next run of a program, if it comes as expected.
#[derive(Debug)]
pub struct ExpectedStep {
    pub program: Rc<Program>,
    pub reach: u32,
    pub parts: Parts,
}

impl ExpectedStep {
    /// Bytes of its result.
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|(_, _, bytes)| bytes).sum()
    }
}

/// The commands of a decode step and everything they depend on except the contents of buffers.
#[derive(Debug)]
struct Encoded {
    program: Rc<Program>,
    splits: u32,
    parts: Parts,
    target: wgpu::Buffer,
    commands: wgpu::CommandBuffer,
}

/// Steps to be encoded, and the commands encoded for others.
#[derive(Debug, Default)]
pub struct EncodeAhead {
    next: VecDeque<ExpectedStep>,
    /// By the program's address, which nothing else has while the program is kept here.
    encoded: HashMap<*const Program, Encoded>,
    used: u64,
}

impl EncodeAhead {
    /// Expects a cached program again, whose longest batch row attended to `reach` positions.
    pub fn expect(&mut self, program: &Rc<Program>, reach: u32, parts: &Parts) {
        if program.home.is_none() {
            return;
        }
        self.next.retain(|next| !Rc::ptr_eq(&next.program, program));
        if self.next.len() < MAX_PROGRAMS {
            let (program, parts) = (program.clone(), parts.clone());
            self.next.push_back(ExpectedStep { program, reach: reach.saturating_add(1), parts });
        }
    }

    /// Returns the commands of a step if they match what was encoded for its program. Otherwise they are dropped.
    pub fn take(
        &mut self,
        program: &Rc<Program>,
        reach: u32,
        parts: &Parts,
        target: &wgpu::Buffer,
    ) -> Option<wgpu::CommandBuffer> {
        let Encoded { program: of, splits: at, parts: brings, target: into, commands } =
            self.encoded.remove(&Rc::as_ptr(program))?;
        let same = Rc::ptr_eq(&of, program) && at == splits(reach) && brings == *parts && into == *target;
        same.then(|| {
            self.used += 1;
            commands
        })
    }

    /// The next step to be encoded.
    pub fn take_next(&mut self) -> Option<ExpectedStep> {
        self.next.pop_front()
    }

    /// Keeps the commands of a step, whose result goes to `target`.
    pub fn keep(&mut self, next: ExpectedStep, target: wgpu::Buffer, commands: wgpu::CommandBuffer) {
        let ExpectedStep { program, reach, parts } = next;
        if self.encoded.len() >= MAX_PROGRAMS {
            // Most of them are of programs that were evicted.
            self.encoded.clear();
        }
        let address = Rc::as_ptr(&program);
        self.encoded.insert(address, Encoded { program, splits: splits(reach), parts, target, commands });
    }

    /// Steps so far whose commands were already encoded when their input arrived.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Expects nothing: buffers or kernels changed.
    pub fn clear(&mut self) {
        self.next.clear();
        self.encoded.clear();
    }
}
