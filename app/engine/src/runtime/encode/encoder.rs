//! What the kernels of a piece of work are recorded with.

use potluck_shaders::Kernel;
use potluck_shaders::params::Params;

use crate::runtime::layout::Layout;
use crate::runtime::memory::Slice;
use crate::runtime::model::Model;
use crate::runtime::recorder::{Program, Recorder, Size};
use crate::runtime::recording::Recording;

/// Records the kernels of a model; the files of this folder say which.
pub struct Encoder<'a> {
    pub(super) model: &'a Model,
    pub(super) rec: Recorder,
    recording: &'a mut Recording,
}

impl<'a> Encoder<'a> {
    /// Goes on with what is recorded.
    pub fn new(model: &'a Model, recording: &'a mut Recording, rec: Recorder) -> Self {
        Self { model, rec, recording }
    }

    /// The model.
    pub fn model(&self) -> &'a Model {
        self.model
    }

    /// What was recorded.
    pub fn finish(self) -> Program {
        self.rec.finish()
    }

    /// Where everything lies.
    pub(super) fn layout(&self) -> &'a Layout {
        self.model.memory.layout()
    }

    /// Number of workgroups for `threads` threads.
    pub(super) fn groups(kernel: Kernel, threads: u32) -> u32 {
        threads.div_ceil(kernel.threads())
    }

    /// As [`Recorder::dispatch`].
    pub(super) fn dispatch<P: Params>(&mut self, kernel: Kernel, bindings: &[&Slice], params: &P, x: u32, z: u32) {
        self.rec.dispatch(&mut self.recording.tools(), kernel, bindings, params, x, z);
    }

    /// As [`Recorder::dispatch_bytes`].
    pub(super) fn dispatch_bytes(&mut self, kernel: Kernel, bindings: &[&Slice], params: &[u8], x: u32, z: u32) {
        self.rec.dispatch_bytes(&mut self.recording.tools(), kernel, bindings, params, x, z);
    }

    /// As [`Recorder::dispatch_sized`].
    pub(super) fn dispatch_sized(&mut self, kernel: Kernel, bindings: &[&Slice], params: &[u8], size: Size) {
        self.rec.dispatch_sized(&mut self.recording.tools(), kernel, bindings, params, size);
    }
}
