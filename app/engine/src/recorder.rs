//! Collects the dispatches of one piece of work with their uniforms, and encodes them into few passes.

use std::collections::HashMap;

use potluck_shaders::Kernel;
use potluck_shaders::params::Params;

use crate::layout::{PARAMS_COUNT, PARAMS_STRIDE};
use crate::memory::Slice;
use crate::pipelines::Pipelines;

/// Most storage bindings of a kernel.
const MOST_BINDINGS: usize = 8;

/// Which kernel, and of each binding buffer number and offset.
type BindKey = (Kernel, [(u32, u32); MOST_BINDINGS]);

/// Bind groups made so far; cleared when buffers change.
#[derive(Debug, Default)]
pub struct BindGroups {
    made: HashMap<BindKey, wgpu::BindGroup>,
}

impl BindGroups {
    /// Forgets all.
    pub fn clear(&mut self) {
        self.made.clear();
    }
}

#[derive(Debug)]
struct Step {
    pipeline: wgpu::ComputePipeline,
    group: wgpu::BindGroup,
    size: [u32; 3],
    /// Bytes it gets through, to cut long work into several submits.
    cost: u64,
}

/// What dispatches need.
pub struct Tools<'a> {
    pub device: &'a wgpu::Device,
    pub pipelines: &'a mut Pipelines,
    pub groups: &'a mut BindGroups,
    pub uniforms: &'a wgpu::Buffer,
}

/// The dispatches of one piece of work, in order.
#[derive(Debug, Default)]
pub struct Recorder {
    steps: Vec<Step>,
    uniforms: Vec<u8>,
}

/// A copy into a result.
#[derive(Clone, Debug)]
pub struct Copy {
    pub from: Slice,
    pub to: u64,
}

/// Spreads `count` workgroups over x and y, of which a dimension takes 65,535 at most.
pub fn fold(count: u32) -> [u32; 2] {
    const MOST: u32 = 65_535;
    if count <= MOST {
        return [count, 1];
    }
    let y = count.div_ceil(MOST);
    [count.div_ceil(y), y]
}

impl Recorder {
    /// Adds a dispatch of `x` workgroups (folded into x and y) times `z`.
    pub fn dispatch<P: Params>(
        &mut self,
        tools: &mut Tools<'_>,
        kernel: Kernel,
        bindings: &[&Slice],
        params: &P,
        x: u32,
        z: u32,
    ) {
        self.dispatch_bytes(tools, kernel, bindings, bytemuck::bytes_of(params), x, z);
    }

    /// The same, with the uniform as bytes.
    pub fn dispatch_bytes(
        &mut self,
        tools: &mut Tools<'_>,
        kernel: Kernel,
        bindings: &[&Slice],
        params: &[u8],
        x: u32,
        z: u32,
    ) {
        if x == 0 || z == 0 {
            return;
        }
        let [x, y] = fold(x);
        debug_assert!(y <= 65_535 && z <= 65_535);
        let pipeline = tools.pipelines.get(tools.device, kernel);
        let mut key = [(0, 0); MOST_BINDINGS];
        for (entry, slice) in key.iter_mut().zip(bindings) {
            *entry = (slice.slab.id, (slice.offset / 256) as u32);
        }
        let group = tools.groups.made.entry((kernel, key)).or_insert_with(|| {
            let mut entries = vec![wgpu::BindGroupEntry {
                binding: 0,
                resource: wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                    buffer: tools.uniforms,
                    offset: 0,
                    size: wgpu::BufferSize::new(PARAMS_STRIDE),
                }),
            }];
            entries.extend((1..).zip(bindings).map(|(binding, slice)| wgpu::BindGroupEntry {
                binding,
                resource: wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                    buffer: &slice.slab.buffer,
                    offset: slice.offset,
                    size: wgpu::BufferSize::new(slice.size),
                }),
            }));
            tools.device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: None,
                layout: &pipeline.layout,
                entries: &entries,
            })
        });
        self.steps.push(Step { pipeline: pipeline.pipeline.clone(), group: group.clone(), size: [x, y, z], cost: 0 });
        self.uniforms.extend_from_slice(params);
        self.uniforms.resize(self.steps.len() * PARAMS_STRIDE as usize, 0);
    }

    /// Says how many bytes the last dispatch gets through.
    pub fn cost(&mut self, bytes: u64) {
        if let Some(step) = self.steps.last_mut() {
            step.cost += bytes;
        }
    }

    /// Where to cut: no batch has more dispatches than the arena holds, or costs more than `most` (unless one dispatch
    /// alone does).
    fn batches(&self, most: u64) -> Vec<std::ops::Range<usize>> {
        let mut batches = Vec::new();
        let (mut first, mut cost) = (0, 0);
        for (index, step) in self.steps.iter().enumerate() {
            if index > first && (cost + step.cost > most || index - first == PARAMS_COUNT as usize) {
                batches.push(first..index);
                (first, cost) = (index, 0);
            }
            cost += step.cost;
        }
        batches.push(first..self.steps.len());
        batches
    }

    /// Submits everything, then the copies into their results. Long work makes several submits, so that no other tab waits
    /// long for the GPU; the queue keeps their order with the writes of their uniforms.
    pub fn submit(
        self,
        device: &wgpu::Device,
        queue: &wgpu::Queue,
        uniforms: &wgpu::Buffer,
        most: u64,
        copies: &[(Copy, &wgpu::Buffer)],
    ) {
        let stride = PARAMS_STRIDE as usize;
        let batches = self.batches(most);
        let last = batches.len() - 1;
        for (number, batch) in batches.into_iter().enumerate() {
            let bytes = &self.uniforms[batch.start * stride..batch.end * stride];
            if !bytes.is_empty() {
                queue.write_buffer(uniforms, 0, bytes);
            }
            let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("work") });
            if !batch.is_empty() {
                let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
                for (index, step) in self.steps[batch].iter().enumerate() {
                    pass.set_pipeline(&step.pipeline);
                    pass.set_bind_group(0, &step.group, &[(index * stride) as u32]);
                    pass.dispatch_workgroups(step.size[0], step.size[1], step.size[2]);
                }
            }
            if number == last {
                for (copy, to) in copies {
                    let from = &copy.from;
                    encoder.copy_buffer_to_buffer(&from.slab.buffer, from.offset, to, copy.to, from.size);
                }
            }
            queue.submit([encoder.finish()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fold;

    #[test]
    fn no_dimension_exceeds_its_limit_and_nothing_is_lost() {
        for count in [1, 65_535, 65_536, 200_003, 40_000_000] {
            let [x, y] = fold(count);
            assert!(x <= 65_535 && y <= 65_535);
            assert!(u64::from(x) * u64::from(y) >= u64::from(count));
        }
    }
}
