//! Records the dispatches of one piece of work with their uniforms into a [`Program`]. Decode replays the same program
//! for every token, so that a token costs neither look-ups nor parameter uploads.

use std::collections::HashMap;

use potluck_shaders::Kernel;
use potluck_shaders::params::Params;

use crate::runtime::layout::PARAMS_STRIDE;
use crate::runtime::memory::Slice;
use crate::runtime::pipelines::Pipelines;

/// Most storage bindings per kernel.
const MAX_BINDINGS: usize = 8;

/// A kernel, and the buffer number and offset of each binding.
type BindKey = (Kernel, [(u32, u32); MAX_BINDINGS]);

/// Bind groups created so far; cleared when buffers change.
#[derive(Debug, Default)]
pub struct BindGroups {
    made: HashMap<BindKey, wgpu::BindGroup>,
}

impl BindGroups {
    /// Drops all bind groups.
    pub fn clear(&mut self) {
        self.made.clear();
    }
}

/// Number of splits of a context when the longest batch row attends to `reach` positions. The sizes of a cached program
/// depend on nothing else.
pub fn splits(reach: u32) -> u32 {
    potluck_shaders::split_count(reach)
}

/// Number of workgroups of a dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Constant.
    Fixed([u32; 3]),
    /// `x` × splits of the context × `z`.
    Splits { x: u32, z: u32 },
    /// `x` × `z` if the context has several splits, otherwise no dispatch.
    Merge { x: u32, z: u32 },
}

impl Size {
    /// Workgroups when the longest batch row attends to `reach` positions; `None` if there is nothing to do.
    fn at(self, reach: u32) -> Option<[u32; 3]> {
        let splits = splits(reach);
        match self {
            Self::Fixed(size) => Some(size),
            Self::Splits { x, z } => Some([x, splits, z]),
            Self::Merge { x, z } => (splits > 1).then_some([x, 1, z]),
        }
    }
}

/// One dispatch.
#[derive(Clone, Debug)]
pub struct Step {
    pub kernel: Kernel,
    pub pipeline: wgpu::ComputePipeline,
    pub group: wgpu::BindGroup,
    size: Size,
    /// Bytes the dispatch processes: a constant part, and a part per position of context. Long work is split by this
    /// cost.
    cost: u64,
    cost_of_reach: u64,
}

impl Step {
    /// Number of workgroups, see [`Size::at`].
    pub fn size(&self, reach: u32) -> Option<[u32; 3]> {
        self.size.at(reach)
    }

    /// The same bindings with another kernel and a fixed number of workgroups.
    pub fn by(&self, kernel: Kernel, pipeline: wgpu::ComputePipeline, groups: [u32; 3]) -> Step {
        Step { kernel, pipeline, size: Size::Fixed(groups), ..self.clone() }
    }

    /// Workgroups in z.
    pub fn z(&self) -> u32 {
        match self.size {
            Size::Fixed([_, _, z]) | Size::Splits { z, .. } | Size::Merge { z, .. } => z,
        }
    }

    /// Bytes the dispatch processes.
    pub fn cost(&self, reach: u32) -> u64 {
        self.cost + self.cost_of_reach * u64::from(reach)
    }
}

/// Recorded dispatches with their uniforms.
#[derive(Debug, Default)]
pub struct Program {
    pub steps: Vec<Step>,
    /// Uniforms of the steps, [`PARAMS_STRIDE`] apart.
    pub uniforms: Vec<u8>,
    /// Permanent offset in the arena, in steps; `None` if the uniforms are written for every submit.
    pub home: Option<u32>,
}

impl Program {
    /// Only the step at `index`, repeated `repeat` times. Not for cached programs.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn only(&self, index: usize, repeat: usize) -> Program {
        let stride = PARAMS_STRIDE as usize;
        let uniform = &self.uniforms[index * stride..(index + 1) * stride];
        Program { steps: vec![self.steps[index].clone(); repeat], uniforms: uniform.repeat(repeat), home: None }
    }

    /// Number of dispatches when the longest batch row attends to `reach` positions.
    pub fn dispatches(&self, reach: u32) -> u32 {
        self.steps.iter().filter(|step| step.size(reach).is_some()).count() as u32
    }
}

/// What the recorder needs to create dispatches.
pub struct Tools<'a> {
    pub device: &'a wgpu::Device,
    pub pipelines: &'a mut Pipelines,
    pub groups: &'a mut BindGroups,
    pub uniforms: &'a wgpu::Buffer,
    /// Lookup tables of the weight formats that use codebooks.
    pub codebooks: &'a wgpu::Buffer,
}

/// The dispatches of one piece of work, in order.
#[derive(Debug, Default)]
pub struct Recorder {
    program: Program,
    /// Buffer and offset of the vectors that were quantized last, if only products of quantized vectors followed.
    quantized: Option<(u32, u64)>,
    /// Whether products that one dispatch may compute get one each, so that they can be measured.
    apart: bool,
}

/// Folds `count` workgroups into x and y, because a dimension allows at most 65,535.
pub fn fold(count: u32) -> [u32; 2] {
    const MAX: u32 = 65_535;
    if count <= MAX {
        return [count, 1];
    }
    let y = count.div_ceil(MAX);
    [count.div_ceil(y), y]
}

impl Recorder {
    /// Records products one by one that one dispatch may compute.
    pub fn apart() -> Self {
        Self { apart: true, ..Self::default() }
    }

    /// Whether each product gets a dispatch of its own.
    pub fn is_apart(&self) -> bool {
        self.apart
    }

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

    /// As [`Recorder::dispatch`], with the uniform as bytes.
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
        self.dispatch_sized(tools, kernel, bindings, params, Size::Fixed([x, y, z]));
    }

    /// As [`Recorder::dispatch_bytes`], with a size that may depend on the context.
    pub fn dispatch_sized(
        &mut self,
        tools: &mut Tools<'_>,
        kernel: Kernel,
        bindings: &[&Slice],
        params: &[u8],
        size: Size,
    ) {
        let pipeline = tools.pipelines.get(tools.device, kernel);
        let mut key = [(0, 0); MAX_BINDINGS];
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
            if kernel.has_codebook() {
                entries.push(wgpu::BindGroupEntry {
                    binding: bindings.len() as u32 + 1,
                    resource: tools.codebooks.as_entire_binding(),
                });
            }
            tools.device.create_bind_group(&wgpu::BindGroupDescriptor {
                label: None,
                layout: &pipeline.layout,
                entries: &entries,
            })
        });
        if !matches!(kernel, Kernel::Packed { .. } | Kernel::Matrix { .. }) {
            self.quantized = None;
        }
        let program = &mut self.program;
        program.steps.push(Step {
            kernel,
            pipeline: pipeline.pipeline.clone(),
            group: group.clone(),
            size,
            cost: 0,
            cost_of_reach: 0,
        });
        program.uniforms.extend_from_slice(params);
        program.uniforms.resize(program.steps.len() * PARAMS_STRIDE as usize, 0);
    }

    /// Whether the scratch of quantized (or halved) vectors holds these.
    pub fn is_quantized(&self, vectors: &Slice) -> bool {
        self.quantized == Some((vectors.slab.id, vectors.offset))
    }

    /// Notes that the last dispatch quantized these vectors.
    pub fn quantized(&mut self, vectors: &Slice) {
        self.quantized = Some((vectors.slab.id, vectors.offset));
    }

    /// Sets the bytes that the last dispatch processes.
    pub fn cost(&mut self, bytes: u64) {
        if let Some(step) = self.program.steps.last_mut() {
            step.cost += bytes;
        }
    }

    /// Sets the bytes that the last dispatch processes per position of context.
    pub fn cost_of_reach(&mut self, bytes: u64) {
        if let Some(step) = self.program.steps.last_mut() {
            step.cost_of_reach += bytes;
        }
    }

    /// Returns the recorded program.
    pub fn finish(self) -> Program {
        self.program
    }
}

#[cfg(test)]
mod tests {
    use super::{Size, fold};
    use potluck_shaders::SPLIT;

    #[test]
    fn no_dimension_exceeds_its_limit_and_nothing_is_lost() {
        for count in [1, 65_535, 65_536, 200_003, 40_000_000] {
            let [x, y] = fold(count);
            assert!(x <= 65_535 && y <= 65_535);
            assert!(u64::from(x) * u64::from(y) >= u64::from(count));
        }
    }

    #[test]
    fn short_contexts_have_one_split_and_nothing_to_merge() {
        let (attend, merge) = (Size::Splits { x: 8, z: 2 }, Size::Merge { x: 8, z: 2 });
        assert_eq!((attend.at(1), merge.at(SPLIT)), (Some([8, 1, 2]), None));
        assert_eq!((attend.at(SPLIT + 1), merge.at(SPLIT + 1)), (Some([8, 2, 2]), Some([8, 1, 2])));
    }
}
