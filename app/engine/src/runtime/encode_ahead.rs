//! Encodes the commands of the next decode step while the device waits for its input. In a shared model a device idles
//! between its step and the one for the next token, which runs the same program one position further. Encoding ahead
//! takes encoding off the critical path: only the input is written before the submit.

use std::rc::Rc;

use crate::runtime::core::Core;
use crate::runtime::layout::Scratch;
use crate::runtime::recorder::{Program, splits};
use crate::runtime::submit::{Run, Submitter};

/// Parts of a result: scratch buffer, first byte, bytes.
pub type Parts = Vec<(Scratch, u64, u64)>;

/// The next decode step, if it comes as expected.
#[derive(Debug)]
struct Next {
    program: Rc<Program>,
    reach: u32,
    parts: Parts,
    bytes: u64,
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
    next: Option<Next>,
    encoded: Option<Encoded>,
    /// Steps whose commands were already encoded when their input arrived.
    pub used: u64,
}

impl EncodeAhead {
    /// Expects the step after one of a cached program whose longest batch row attended to `reach` positions.
    pub fn expect(&mut self, program: &Rc<Program>, reach: u32, parts: &Parts, bytes: u64) {
        self.next = program.home.is_some().then(|| Next {
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

    /// Expects nothing: buffers or kernels changed, or other work comes first.
    pub fn clear(&mut self) {
        self.next = None;
        self.encoded = None;
    }
}

impl Core {
    /// Encodes the expected step if there is nothing else to do.
    pub fn encode_next(&mut self) {
        if !self.pending.is_empty() || !self.waiting.is_empty() || self.gpu.lost() {
            return;
        }
        let Some(Next { program, reach, parts, bytes }) = self.encode_ahead.next.take() else { return };
        let Some(index) = self.free_readback(bytes) else { return };
        let target = self.readbacks[index].slab.buffer.clone();
        let after = self.copies(&parts, &target, 0);
        let run = Run { before: Vec::new(), program, reach, after };
        let max = self.profile.max_submit_bytes();
        let submitter = Submitter::new(&self.gpu.device, &self.gpu.queue, &self.uniforms.buffer, max);
        let Some(commands) = submitter.encode(&run) else { return };
        self.encode_ahead.encoded =
            Some(Encoded { program: run.program, splits: splits(reach), parts, target, commands });
    }
}

/// Encodes the expected step in a later turn, once the computed result is on its way.
#[cfg(target_arch = "wasm32")]
pub fn encode_later(engine: std::rc::Weak<crate::runtime::engine::Inner>) {
    wasm_bindgen_futures::spawn_local(async move {
        let Ok(channel) = web_sys::MessageChannel::new() else { return };
        crate::runtime::poll_kick::turn(&channel).await;
        channel.port1().close();
        if let Some(engine) = engine.upgrade() {
            engine.core.borrow_mut().encode_next();
        }
    });
}
