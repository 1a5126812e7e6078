//! Compiled pipelines, and which kernel variant this device uses for which operation.

use std::collections::{BTreeSet, HashMap, HashSet};

use potluck_model::{RouterSpec, Scoring};
use potluck_plan::Arithmetic;
use potluck_shaders::{
    Access, Addition, Dots, Extras, Format, Job, Kernel, KernelVariant, Lanes, MatrixTile, Operand, PackedTile,
    ScanRule, Strategy, Tile, TileKind, VectorStrategy,
};

use crate::runtime::gpu::Tier;
use crate::runtime::settings::Settings;
use crate::runtime::tuning_table::{Choice, Shape, Tuning};

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

/// A prefill product uses the largest tile that still gives this many workgroups. A large GPU runs more than a hundred
/// workgroups at once, and a small GPU loses little when a small product uses small tiles.
const ENOUGH_GROUPS: u32 = 256;

/// The same of the matrix units, whose tiles need several subgroups to keep them busy.
const ENOUGH_MATRIX_GROUPS: u32 = 100;

/// The variants this device uses. It starts from the device's tier; the self-test removes incorrect variants.
#[derive(Clone, Debug)]
pub struct Profile {
    strategy: Strategy,
    lanes: Option<Lanes>,
    wrong: HashSet<Kernel>,
    rows_agree: bool,
    tuning: Tuning,
    arithmetic: Arithmetic,
    subgroup: u32,
}

impl Profile {
    /// Default profile of a tier and a subgroup size.
    pub fn of(tier: Tier, lanes: Option<Lanes>) -> Self {
        let strategy = if tier == Tier::Software { Strategy::PerThread } else { Strategy::Workgroup };
        Self {
            strategy,
            lanes,
            wrong: HashSet::new(),
            rows_agree: true,
            tuning: Tuning::default(),
            arithmetic: Arithmetic::Exact,
            subgroup: 0,
        }
    }

    /// The same with another arithmetic.
    pub fn with_arithmetic(self, arithmetic: Arithmetic) -> Self {
        Self { arithmetic, ..self }
    }

    /// The same for a device with subgroups of at least so many threads.
    pub fn with_subgroups(self, subgroup: u32) -> Self {
        Self { subgroup, ..self }
    }

    /// Measurements that choose among kernels with identical bits.
    pub fn tuning(&self) -> &Tuning {
        &self.tuning
    }

    /// Replaces the measurements.
    pub fn set_tuning(&mut self, tuning: Tuning) {
        self.tuning = tuning;
    }

    /// Whether tuning is worthwhile. Where threads share no work, compiling more kernels takes longer than they could
    /// save.
    pub fn is_tunable(&self) -> bool {
        self.strategy == Strategy::Workgroup
    }

    /// Most weight bytes, times groups of vectors, per submit: about 100 ms of work.
    pub fn max_submit_bytes(&self) -> u64 {
        match self.strategy {
            Strategy::PerThread => 16 << 20,
            Strategy::Workgroup => 4 << 30,
        }
    }

    /// Prefill chunk size that makes good use of the device.
    pub fn max_prefill_tokens(&self) -> u32 {
        match self.strategy {
            Strategy::PerThread => Settings::MIN_PREFILL_TOKENS,
            Strategy::Workgroup => potluck_plan::Work::PREFILL_TOKENS as u32,
        }
    }

    /// Never uses this variant again.
    pub fn reject(&mut self, kernel: Kernel) {
        self.wrong.insert(kernel);
    }

    /// Computes decode tokens one by one, because several at a time do not give the same bits as one.
    pub fn reject_groups(&mut self) {
        self.rows_agree = false;
    }

    /// The first candidate not known to be incorrect; the last if all are.
    fn first(&self, candidates: &[Kernel]) -> Kernel {
        candidates
            .iter()
            .copied()
            .find(|kernel| !self.wrong.contains(kernel))
            .unwrap_or(candidates[candidates.len() - 1])
    }

    fn either(&self, make: impl Fn(Strategy) -> Kernel) -> Kernel {
        self.first(&[make(self.strategy), make(Strategy::PerThread)])
    }

    /// RMSNorm.
    pub fn norm(&self) -> Kernel {
        self.either(Kernel::Norm)
    }

    /// RMSNorm in place of a part of each row.
    pub fn norm_part(&self) -> Kernel {
        self.either(Kernel::NormPart)
    }

    /// The rule of a recurrence: its kind, width of a head, and values of state for each of a head's.
    pub fn scan(&self, (rule, width, state): (ScanRule, u16, u16)) -> Kernel {
        let alone = Kernel::Scan { strategy: Strategy::PerThread, rule, width, state };
        if !Kernel::can_share_scan(width, state) {
            return alone;
        }
        self.first(&[Kernel::Scan { strategy: self.strategy, rule, width, state }, alone])
    }

    /// Addition of an output to the hidden vectors.
    pub fn residual(&self, addition: Addition) -> Kernel {
        self.either(|strategy| Kernel::Residual { strategy, addition })
    }

    /// The end of a block whose experts have a network beside them, if a workgroup can share work.
    pub fn beside(&self) -> Option<Kernel> {
        self.allows(&[Kernel::Beside]).then_some(Kernel::Beside)
    }

    /// Expert selection by a router: the plain softmax has a kernel of its own.
    pub fn router(&self, router: &RouterSpec) -> Kernel {
        let (sigmoid, biased) = (router.scoring == Scoring::Sigmoid, router.selection_bias);
        if !sigmoid && !biased && router.scale == 1.0 && router.groups.is_none() {
            return self.either(Kernel::Router);
        }
        self.either(|strategy| Kernel::Choose { strategy, sigmoid, biased })
    }

    /// The kernel that does a plain router's work and normalizes the hidden vectors, if a workgroup can share work.
    pub fn route(&self, router: &RouterSpec) -> Option<Kernel> {
        let plain = self.router(router) == Kernel::Router(Strategy::Workgroup);
        (plain && self.allows(&[Kernel::Route])).then_some(Kernel::Route)
    }

    /// Grouping of (token, expert) pairs by expert.
    pub fn groups(&self) -> Kernel {
        self.either(Kernel::Groups)
    }

    /// The best logit of each segment.
    pub fn segments(&self) -> Kernel {
        self.either(Kernel::Segments)
    }

    /// Sampling of a token; `None` where a workgroup cannot share work.
    pub fn sampler(&self) -> Option<Kernel> {
        self.allows(&[Kernel::Sample]).then_some(Kernel::Sample)
    }

    /// Selection of the best candidates.
    pub fn top(&self) -> Kernel {
        self.either(Kernel::Top)
    }

    /// Attention.
    pub fn attention(&self, kv_type: potluck_plan::KvCacheType, quads: u16, extras: Extras) -> Kernel {
        self.either(|strategy| Kernel::Attention { kv_type, strategy, quads, extras })
    }

    /// Attention of a prefill chunk; `None` if the device attends to each batch row separately.
    pub fn flash_attention(&self, kv_type: potluck_plan::KvCacheType, quads: u16, extras: Extras) -> Option<Kernel> {
        let kernel = Kernel::FlashAttention { kv_type, quads, extras };
        (quads <= Kernel::MAX_SHARED_QUADS && self.allows(&[kernel])).then_some(kernel)
    }

    /// Decode attention over splits of the context, and the merge of the splits, if a workgroup can share work.
    pub fn split(
        &self,
        kv_type: potluck_plan::KvCacheType,
        quads: u16,
        queries: u32,
        extras: Extras,
    ) -> Option<[Kernel; 2]> {
        let kernels = [Kernel::split(kv_type, quads, queries).with_extras(extras), Kernel::Merge { quads }];
        (quads <= Kernel::MAX_SPLIT_QUADS && self.allows(&kernels)).then_some(kernels)
    }

    /// A decode product fused with the operations before and after it, if a workgroup can share work. With the arithmetic
    /// `packed` it is one of packed integers where the format has one.
    pub fn fused(&self, format: Format, job: Job, n: usize) -> Option<Kernel> {
        let rows = if n == 1 || !self.rows_agree || job.of_experts() { 1 } else { 4 };
        let kernel = self.fused_by(format, rows, job);
        self.allows(&[kernel]).then_some(kernel)
    }

    /// The portable variant of a fused kernel. How its vectors are multiplied depends on the format alone: if one packed
    /// kernel of a format computes incorrectly, none is used, because several of them must have the same bits.
    fn fused_by(&self, format: Format, rows: u8, job: Job) -> Kernel {
        let wrong = |how| {
            self.wrong.iter().any(|kernel| {
                matches!(*kernel, Kernel::Fused { format: f, job, variant, dots: Some(dots), .. }
                    if (f, dots) == (format, how) && variant == KernelVariant::portable(job))
            })
        };
        let used = self.arithmetic == Arithmetic::Packed && format.packing().is_some();
        match [Dots::Packed, Dots::Shifts].into_iter().find(|how| used && !wrong(*how)) {
            Some(dots) => Kernel::fused_packed(format, rows, job, dots),
            None => Kernel::fused(format, rows, job),
        }
    }

    /// The fastest variant of a fused kernel for a `rows` × `cols` matrix. Products of several vectors use the portable
    /// variant.
    pub fn tuned_variant(&self, kernel: Kernel, rows: u32, cols: u32) -> Kernel {
        let Kernel::Fused { format, rows: 1, job, dots, .. } = kernel else { return kernel };
        let shape = Shape::Decode { format, packed: dots.is_some(), job, rows, cols };
        let variant = match self.tuning.get(&shape).map(|tuned| tuned.choice) {
            Some(Choice::Variant(variant)) => variant,
            // Threads that quantize a vector together take half the time.
            _ if dots.is_some() => KernelVariant::shuffled(job, self.subgroup),
            _ => return kernel,
        };
        let quick = Kernel::Fused { format, rows: 1, job, variant, dots };
        if self.allows(&[quick]) { quick } else { kernel }
    }

    /// One kernel for two products of a vector with matrices of two formats, in the variant for the `rows` × `cols` ones of
    /// the first; `None` if each needs its own.
    pub fn joined(&self, first: Format, second: Format, (rows, cols): (u32, u32)) -> Option<Kernel> {
        let parts = [first, second].map(|format| self.fused_by(format, 1, Job::Normed));
        let Kernel::Fused { variant, dots, .. } = self.tuned_variant(parts[0], rows, cols) else { return None };
        let alike = matches!(parts[1], Kernel::Fused { dots: others, .. } if others == dots);
        let kernel = Kernel::Joined { first, second, variant, dots };
        let known = Kernel::JOINED.contains(&(first, second)) && alike;
        (known && self.allows(&parts) && self.allows(&[kernel])).then_some(kernel)
    }

    /// Every kernel that [`Profile::joined`] may return for a pair of formats.
    pub fn all_joined(&self, (first, second): (Format, Format)) -> BTreeSet<Kernel> {
        let tuned = self.tuning.iter().filter_map(|(shape, _)| match *shape {
            Shape::Decode { format, job: Job::Normed, rows, cols, .. } if format == first => Some((rows, cols)),
            _ => None,
        });
        // No matrix has no rows, so nothing is measured for it.
        tuned.chain([(0, 0)]).filter_map(|size| self.joined(first, second, size)).collect()
    }

    /// Every variant that [`Profile::tuned_variant`] may return for a job.
    pub fn variants(&self, format: Format, job: Job) -> BTreeSet<Kernel> {
        let portable = self.fused_by(format, 1, job);
        let of = |(shape, _): (&Shape, _)| match *shape {
            Shape::Decode { format: f, job: j, rows, cols, .. } if (f, j) == (format, job) => {
                Some(self.tuned_variant(portable, rows, cols))
            }
            _ => None,
        };
        // No matrix has no rows, so nothing is measured for it.
        let unmeasured = (portable.quantizes() && self.allows(&[portable])).then(|| self.tuned_variant(portable, 0, 0));
        self.tuning.iter().filter_map(of).chain(unmeasured).collect()
    }

    fn allows(&self, kernels: &[Kernel]) -> bool {
        self.strategy == Strategy::Workgroup && kernels.iter().all(|kernel| !self.wrong.contains(kernel))
    }

    /// Kernel for a matrix times the `n` vectors of a decode step.
    pub fn decode(&self, format: Format, operand: Operand, n: usize) -> Kernel {
        let rows = if n == 1 || !self.rows_agree || operand == Operand::Expert { 1 } else { 4 };
        let quickest = match (self.strategy, self.lanes) {
            (Strategy::Workgroup, _) => VectorStrategy::Workgroup,
            (Strategy::PerThread, Some(_)) => VectorStrategy::Broadcast,
            (Strategy::PerThread, None) => VectorStrategy::PerThread,
        };
        let of = |strategy| Kernel::MatVec { format, strategy, rows, operand };
        self.first(&[of(quickest), of(VectorStrategy::PerThread)])
    }

    /// Kernel for a `rows` × `cols` matrix times the `n` vectors of a prefill chunk.
    pub fn prefill(&self, format: Format, operand: Operand, (rows, cols): (u32, u32), n: u32) -> Kernel {
        if let Some(matrix) = self.matrix(format, operand, MatrixTile::for_product(rows, n, ENOUGH_MATRIX_GROUPS)) {
            return matrix;
        }
        let shape = Shape::Packed { format, rows, cols, vectors: Shape::chunk(n) };
        let tile = match self.tuning.get(&shape).map(|tuned| tuned.choice) {
            Some(Choice::Packed(tile)) => tile,
            _ => self.portable_packed_tile(rows, n),
        };
        if let Some(packed) = self.packed(format, operand, tile) {
            return packed;
        }
        let tile = match self.strategy {
            Strategy::PerThread => self.without_barriers(format, false),
            Strategy::Workgroup => {
                let shape = Shape::Prefill { format, rows, cols, vectors: Shape::chunk(n) };
                let right = |tile: &Tile| !self.wrong.contains(&Kernel::MatMul { format, operand, tile: *tile });
                let tuned = match self.tuning.get(&shape).map(|tuned| tuned.choice) {
                    Some(Choice::Tile(tile)) => Some(tile),
                    _ => None,
                };
                tuned.filter(right).unwrap_or_else(|| self.portable_tile(rows, n))
            }
        };
        self.tiled(format, operand, tile)
    }

    /// The packed tile used without measurements.
    pub fn portable_packed_tile(&self, rows: u32, n: u32) -> PackedTile {
        PackedTile::for_product(rows, n, ENOUGH_GROUPS)
    }

    /// The packed product, if prompts are computed so and it reads this format.
    fn packed(&self, format: Format, operand: Operand, tile: PackedTile) -> Option<Kernel> {
        let used = self.arithmetic == Arithmetic::Packed && format.packing().is_some();
        let of = |dots| Kernel::Packed { format, operand, tile, dots };
        used.then(|| self.first(&[of(Dots::Packed), of(Dots::Shifts)]))
    }

    /// The product by matrix units, if prompts are computed so. Matrices of 32-bit floats, which are routers, stay exact. If
    /// any tile computes incorrectly, none is used, so that a row's result does not depend on the batch size.
    fn matrix(&self, format: Format, operand: Operand, tile: MatrixTile) -> Option<Kernel> {
        let used = self.arithmetic == Arithmetic::Matrix && format != Format::F32;
        let wrong = |kernel: &Kernel| match *kernel {
            Kernel::Matrix { format: f, operand: o, .. } => (f, o) == (format, operand),
            kernel => kernel == Kernel::Halve,
        };
        (used && !self.wrong.iter().any(wrong)).then_some(Kernel::Matrix { format, operand, tile })
    }

    /// The tile used without measurements.
    pub fn portable_tile(&self, rows: u32, n: u32) -> Tile {
        Tile::for_product(rows, n, ENOUGH_GROUPS)
    }

    /// Kernel for a matrix of each chosen expert times the vectors routed to it. Its tiles skip absent vectors, so one
    /// tile size serves few and many vectors.
    pub fn prefill_experts(&self, format: Format) -> Kernel {
        if let Some(matrix) = self.matrix(format, Operand::Expert, MatrixTile::V64R128) {
            return matrix;
        }
        if let Some(packed) = self.packed(format, Operand::Expert, PackedTile::V64R64) {
            return packed;
        }
        let tile = match self.strategy {
            Strategy::PerThread => self.without_barriers(format, true),
            Strategy::Workgroup => Tile::V64R64,
        };
        self.tiled(format, Operand::Expert, tile)
    }

    fn without_barriers(&self, format: Format, grouped: bool) -> Tile {
        self.lanes.map_or(Tile::per_thread(format), |lanes| Tile::broadcast(format, lanes, grouped))
    }

    /// The tiled product. If any tile of a kind computes incorrectly, all tiles of that kind are excluded, so that a
    /// batch row's result does not depend on the batch size.
    fn tiled(&self, format: Format, operand: Operand, tile: Tile) -> Kernel {
        let wrong = |kind: TileKind| {
            self.wrong.iter().any(|kernel| {
                // This tile is used only where it was measured, so its failure excludes no other tile.
                matches!(*kernel, Kernel::MatMul { format: f, operand: o, tile: t }
                    if (f, o) == (format, operand) && t.kind() == kind && t != Tile::V64R128)
            })
        };
        let mut kernel = Kernel::MatMul { format, operand, tile };
        while let Kernel::MatMul { tile, .. } = kernel
            && wrong(tile.kind())
            && let Some(next) = kernel.fallback()
        {
            kernel = next;
        }
        kernel
    }

    /// Every kernel that [`Profile::prefill`] returns for chunks of up to `max` vectors.
    pub fn every_prefill(&self, format: Format, operand: Operand, shape: (u32, u32), max: u32) -> BTreeSet<Kernel> {
        (1..=max).map(|n| self.prefill(format, operand, shape, n)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matrix_units_compute_what_is_no_float_until_that_is_wrong() {
        let mut profile = Profile::of(Tier::Full, None).with_arithmetic(Arithmetic::Matrix);
        let (format, operand, tile) = (Format::Q4_K, Operand::Plain, MatrixTile::V128R128);
        let matrix = Kernel::Matrix { format, operand, tile };
        assert_eq!(profile.prefill(format, operand, (14_336, 4096), 512), matrix);
        assert!(matches!(profile.prefill(Format::F32, operand, (14_336, 4096), 512), Kernel::MatMul { .. }));
        assert!(matches!(profile.prefill_experts(format), Kernel::Matrix { operand: Operand::Expert, .. }));
        profile.reject(matrix);
        let all: Vec<Kernel> = profile.every_prefill(format, operand, (14_336, 4096), 512).into_iter().collect();
        assert!(all.iter().all(|kernel| matches!(kernel, Kernel::MatMul { .. })), "one wrong tile stops all: {all:?}");
    }

    #[test]
    fn software_adapters_read_by_subgroups_until_that_is_wrong() {
        let (format, operand) = (Format::Q4_0, Operand::Plain);
        let mut profile = Profile::of(Tier::Software, Some(Lanes::Eight));
        let of = |tile| Kernel::MatMul { format, operand, tile };
        assert_eq!(profile.prefill(format, operand, (64, 64), 64), of(Tile::BroadcastV16R4(Lanes::Eight)));
        profile.reject(of(Tile::BroadcastV16R4(Lanes::Eight)));
        assert_eq!(profile.prefill(format, operand, (64, 64), 64), of(Tile::PerThreadV8R4));
        profile.reject(of(Tile::PerThreadV8R4));
        assert!(matches!(
            profile.prefill(format, operand, (64, 64), 64),
            Kernel::MatVec { strategy: VectorStrategy::PerThread, .. }
        ));
        let one = |strategy| Kernel::MatVec { format, strategy, rows: 1, operand };
        assert_eq!(profile.decode(format, operand, 1), one(VectorStrategy::Broadcast));
        profile.reject(one(VectorStrategy::Broadcast));
        assert_eq!(profile.decode(format, operand, 1), one(VectorStrategy::PerThread));
        let none = Profile::of(Tier::Software, None);
        assert_eq!(none.prefill(format, operand, (64, 64), 64), of(Tile::PerThreadV8R4));
        let full = Profile::of(Tier::Full, Some(Lanes::Eight));
        assert_eq!(full.prefill(format, operand, (64, 64), 64), of(Tile::V16R32), "GPUs share workgroup memory");
    }
}
