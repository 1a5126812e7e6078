//! Compiled pipelines.

use std::collections::HashMap;

use potluck_shaders::{Access, Kernel};

/// A pipeline and its bind group layout.
#[derive(Debug)]
pub struct Pipeline {
    pub pipeline: wgpu::ComputePipeline,
    pub layout: wgpu::BindGroupLayout,
}

/// Pipelines created so far.
#[derive(Debug, Default)]
pub struct Pipelines {
    made: HashMap<Kernel, Pipeline>,
    layouts: HashMap<Vec<Access>, (wgpu::BindGroupLayout, wgpu::PipelineLayout)>,
}

impl Pipelines {
    /// Returns the pipeline of a variant and creates it if needed.
    pub fn get(&mut self, device: &wgpu::Device, kernel: Kernel) -> &Pipeline {
        if !self.made.contains_key(&kernel) {
            let made = self.create(device, kernel);
            self.made.insert(kernel, made);
        }
        &self.made[&kernel]
    }

    /// True if the variant is already compiled.
    pub fn has(&self, kernel: Kernel) -> bool {
        self.made.contains_key(&kernel)
    }

    /// Bind group layout and pipeline layout of a variant.
    pub fn layouts(&mut self, device: &wgpu::Device, kernel: Kernel) -> (wgpu::BindGroupLayout, wgpu::PipelineLayout) {
        let bindings = kernel.bindings();
        self.layouts.entry(bindings.clone()).or_insert_with(|| create_layouts(device, &bindings)).clone()
    }

    fn create(&mut self, device: &wgpu::Device, kernel: Kernel) -> Pipeline {
        let (layout, pipeline_layout) = self.layouts(device, kernel);
        let name = kernel.name();
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: Some(&name),
            source: wgpu::ShaderSource::Wgsl(source(kernel).into()),
        });
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(&name),
            layout: Some(&pipeline_layout),
            module: &module,
            entry_point: Some(Kernel::ENTRY),
            compilation_options: wgpu::PipelineCompilationOptions {
                zero_initialize_workgroup_memory: false,
                ..Default::default()
            },
            cache: None,
        });
        Pipeline { pipeline, layout }
    }
}

/// WGSL source of a variant for the compiler on this platform: wgpu passes it to a browser unchanged.
pub fn source(kernel: Kernel) -> String {
    if cfg!(target_arch = "wasm32") { kernel.browser_source() } else { kernel.source() }
}

fn create_layouts(device: &wgpu::Device, bindings: &[Access]) -> (wgpu::BindGroupLayout, wgpu::PipelineLayout) {
    let entry = |binding: u32, ty: wgpu::BufferBindingType, has_dynamic_offset: bool| wgpu::BindGroupLayoutEntry {
        binding,
        visibility: wgpu::ShaderStages::COMPUTE,
        ty: wgpu::BindingType::Buffer { ty, has_dynamic_offset, min_binding_size: None },
        count: None,
    };
    let mut entries = vec![entry(0, wgpu::BufferBindingType::Uniform, true)];
    entries.extend((1..).zip(bindings).map(|(binding, access)| {
        entry(binding, wgpu::BufferBindingType::Storage { read_only: *access == Access::Read }, false)
    }));
    let layout =
        device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: Some("kernel"), entries: &entries });
    let pipeline_layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
        label: Some("kernel"),
        bind_group_layouts: &[Some(&layout)],
        immediate_size: 0,
    });
    (layout, pipeline_layout)
}
