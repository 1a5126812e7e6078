//! Encodes the commands of the next decode step while the device waits for its input. In a shared model a device idles
//! between its step and the one for the next token, which runs the same program one position further. Encoding ahead
//! takes encoding off the critical path: only the input is written before the submit.

use std::rc::Rc;

use crate::runtime::layout::Scratch;
use crate::runtime::recorder::{Program, splits};

/// Parts of a result: scratch buffer, first byte, bytes.
pub type Parts = Vec<(Scratch, u64, u64)>;

/// The next decode step, if it comes as expected.
#[derive(Debug)]
pub struct ExpectedStep {
    pub program: Rc<Program>,
    pub reach: u32,
    pub parts: Parts,
    pub bytes: u64,
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

/// The expected step and the commands encoded for it.
#[derive(Debug, Default)]
pub struct EncodeAhead {
    next: Option<ExpectedStep>,
    encoded: Option<Encoded>,
    used: u64,
}

impl EncodeAhead {
    /// Expects the step after one of a cached program whose longest batch row attended to `reach` positions.
    pub fn expect(&mut self, program: &Rc<Program>, reach: u32, parts: &Parts, bytes: u64) {
        self.next = program.home.is_some().then(|| ExpectedStep {
            program: program.clone(),
            reach: reach.saturating_add(1),
            parts: parts.clone(),
            bytes,
        });
    }

    /// Returns the commands of a step if they match what was encoded. Otherwise they are dropped.
    pub fn take(
        &mut self,
        program: &Rc<Program>,
        reach: u32,
        parts: &Parts,
        target: &wgpu::Buffer,
    ) -> Option<wgpu::CommandBuffer> {
        let Encoded { program: of, splits: at, parts: brings, target: into, commands } = self.encoded.take()?;
        let same = Rc::ptr_eq(&of, program) && at == splits(reach) && brings == *parts && into == *target;
        same.then(|| {
            self.used += 1;
            commands
        })
    }

    /// The expected step, to be encoded.
    pub fn take_next(&mut self) -> Option<ExpectedStep> {
        self.next.take()
    }

    /// Keeps the commands of the expected step, whose result goes to `target`.
    pub fn keep(&mut self, next: ExpectedStep, target: wgpu::Buffer, commands: wgpu::CommandBuffer) {
        let ExpectedStep { program, reach, parts, .. } = next;
        self.encoded = Some(Encoded { program, splits: splits(reach), parts, target, commands });
    }

    /// Steps so far whose commands were already encoded when their input arrived.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Expects nothing: buffers or kernels changed, or other work comes first.
    pub fn clear(&mut self) {
        self.next = None;
        self.encoded = None;
    }
}
