//! What recording needs, and what it makes: pipelines, bind groups, cached programs and the arena of their uniforms.

use std::rc::Rc;

use potluck_plan::KernelClass;
use potluck_shaders::{CODEBOOK_BYTES, Kernel};

use crate::runtime::gpu::Gpu;
use crate::runtime::layout::{PARAMS_COUNT, PARAMS_STRIDE};
use crate::runtime::memory::{Memory, Slab};
use crate::runtime::pipelines::Pipelines;
use crate::runtime::recorder::{BindGroups, Program, Tools};
use crate::runtime::submit::{ProgramKey, Programs};

/// Bind groups and programs name buffers of the layout in force, and programs are made of the kernels in use: when either
/// changes, they must be dropped.
pub struct Recording {
    gpu: Gpu,
    pipelines: Pipelines,
    groups: BindGroups,
    programs: Programs,
    uniforms: Rc<Slab>,
    /// Codebooks of the IQ formats.
    codebooks: Rc<Slab>,
}

impl Recording {
    /// Creates the arena, and writes the codebooks.
    pub fn new(gpu: &Gpu, memory: &mut Memory) -> Self {
        let usage = wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST;
        let uniforms = memory.create(&gpu.device, "uniforms", PARAMS_STRIDE * PARAMS_COUNT, usage);
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST;
        let codebooks = memory.create(&gpu.device, "codebooks", CODEBOOK_BYTES, usage);
        gpu.queue.write_buffer(&codebooks.buffer, 0, &potluck_shaders::codebooks());
        Self {
            gpu: gpu.clone(),
            pipelines: Pipelines::default(),
            groups: BindGroups::default(),
            programs: Programs::default(),
            uniforms,
            codebooks,
        }
    }

    /// Borrows what a recorder needs.
    pub fn tools(&mut self) -> Tools<'_> {
        Tools {
            device: &self.gpu.device,
            pipelines: &mut self.pipelines,
            groups: &mut self.groups,
            uniforms: &self.uniforms.buffer,
            codebooks: &self.codebooks.buffer,
        }
    }

    /// The same with bind groups of the caller's own, for buffers outside the layout.
    pub fn tools_with<'a>(&'a mut self, groups: &'a mut BindGroups) -> Tools<'a> {
        Tools {
            device: &self.gpu.device,
            pipelines: &mut self.pipelines,
            groups,
            uniforms: &self.uniforms.buffer,
            codebooks: &self.codebooks.buffer,
        }
    }

    /// True if a pipeline exists.
    pub fn has(&self, kernel: Kernel) -> bool {
        self.pipelines.has(kernel)
    }

    /// The pipeline of a kernel, created if needed.
    pub fn pipeline(&mut self, kernel: Kernel) -> &wgpu::ComputePipeline {
        &self.pipelines.get(&self.gpu.device, kernel).pipeline
    }

    /// The cached program of a decode step.
    pub fn cached(&self, class: KernelClass, key: &ProgramKey) -> Option<Rc<Program>> {
        if class == KernelClass::Decode { self.programs.get(key) } else { None }
    }

    /// Caches the program of a decode step; any other is used once.
    pub fn keep(&mut self, class: KernelClass, key: ProgramKey, program: Program) -> Rc<Program> {
        match class {
            KernelClass::Decode => self.programs.keep(&self.gpu.queue, &self.uniforms.buffer, key, program),
            KernelClass::Prefill => Rc::new(program),
        }
    }

    /// The buffer of uniforms.
    pub fn arena(&self) -> &wgpu::Buffer {
        &self.uniforms.buffer
    }

    /// Drops bind groups and programs, because buffers changed.
    pub fn clear(&mut self) {
        self.groups.clear();
        self.programs.clear();
    }

    /// Drops programs, because other kernels are used from now on.
    pub fn drop_programs(&mut self) {
        self.programs.clear();
    }
}
