//! Measures every product that the held units need, on their own weights, with each suitable kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use potluck_plan::{BlockIndex, ExpertId, KernelClass, WeightUnit};
use potluck_shaders::{Kernel, Operand, PackedTile, Tile, TileKind, params};

use super::rounds::TuningRounds;
use crate::lab::bench::kernels::Part;
use crate::runtime::clock;
use crate::runtime::core::Core;
use crate::runtime::encode::Batch;
use crate::runtime::engine::Engine;
use crate::runtime::error::EngineError;
use crate::runtime::layout::{PARAMS_STRIDE, Scratch};
use crate::runtime::model::Model;
use crate::runtime::recorder::{Program, Recorder, Step, fold};
use crate::runtime::submit::PASSING;
use crate::runtime::tuning_table::{Choice, Shape, Tuned};

/// Minimum milliseconds per measurement. Browsers round timestamps to 0.1 ms.
const LONG_ENOUGH: f64 = if cfg!(target_arch = "wasm32") { 5.0 } else { 3.0 };
/// Maximum repeats of a product in one measurement.
const MAX_REPEATS: u32 = 1024;
/// More bytes of weights than caches hold: a product is measured on this many if the model has them.
const ENOUGH_BYTES: u64 = 128 << 20;
/// Milliseconds since the last call of experts, after which nobody's answer is thought to wait for this device.
const QUIET: f64 = 1_000.0;
/// Chunk sizes for which tiles are measured, among those the engine uses.
const CHUNKS: [u32; 2] = [512, 64];

/// All dispatches of one shape.
struct Product {
    shape: Shape,
    /// The recorded kernel.
    kernel: Kernel,
    steps: Vec<Step>,
    uniforms: Vec<u8>,
    bytes: u64,
    /// Multiplications, used to measure the slowest products first.
    weight: f64,
}

/// The dimensions that determine a product's workgroups.
struct Size {
    rows: u32,
    cols: u32,
    n: u32,
}

impl Size {
    /// Reads the size from a step's uniform; `None` if this kind of kernel is not tuned.
    fn of(kernel: Kernel, uniform: &[u8]) -> Option<Size> {
        match kernel {
            Kernel::Fused { rows: 1, .. } => {
                let bytes = uniform.get(..size_of::<params::Fused>())?;
                let params: params::Fused = bytemuck::pod_read_unaligned(bytes);
                Some(Size { rows: params.rows, cols: params.cols, n: params.n })
            }
            Kernel::MatMul { operand: Operand::Expert, .. } | Kernel::Packed { operand: Operand::Expert, .. } => None,
            Kernel::MatMul { tile, .. } if tile.kind() != TileKind::Shared => None,
            Kernel::MatMul { .. } | Kernel::Packed { .. } => {
                let bytes = uniform.get(..size_of::<params::MatVec>())?;
                let params: params::MatVec = bytemuck::pod_read_unaligned(bytes);
                Some(Size { rows: params.rows, cols: params.cols, n: params.n })
            }
            _ => None,
        }
    }
}

impl Product {
    fn shape(kernel: Kernel, size: &Size) -> Option<Shape> {
        let &Size { rows, cols, n } = size;
        match kernel {
            Kernel::Fused { format, job, dots, .. } => {
                Some(Shape::Decode { format, packed: dots.is_some(), job, rows, cols })
            }
            Kernel::MatMul { format, .. } => Some(Shape::Prefill { format, rows, cols, vectors: Shape::chunk(n) }),
            Kernel::Packed { format, .. } => Some(Shape::Packed { format, rows, cols, vectors: Shape::chunk(n) }),
            _ => None,
        }
    }

    /// The same dispatches with another kernel: the same bindings, different workgroups.
    fn by(&self, core: &mut Core, kernel: Kernel) -> Program {
        let (_, recording) = core.parts();
        let pipeline = recording.pipeline(kernel).clone();
        let stride = PARAMS_STRIDE as usize;
        let steps = self.steps.iter().zip(self.uniforms.chunks_exact(stride)).map(|(step, uniform)| {
            let groups = match Size::of(kernel, uniform) {
                Some(size) => {
                    let [x, y] = fold(size.rows.div_ceil(kernel.matrix_rows()));
                    let z = if kernel.is_tiled() { size.n.div_ceil(kernel.vectors()) } else { step.z() };
                    [x, y, z]
                }
                None => [0; 3],
            };
            step.by(kernel, pipeline.clone(), groups)
        });
        Program { steps: steps.collect(), uniforms: self.uniforms.clone(), home: None }
    }

    /// Kernels that might be fastest; first the one used without measuring.
    fn candidates(&self, core: &Core) -> Vec<(Choice, Kernel)> {
        match (self.shape, self.kernel) {
            (Shape::Decode { .. }, kernel) => {
                let choice = |kernel| match kernel {
                    Kernel::Fused { variant, .. } => Some((Choice::Variant(variant), kernel)),
                    _ => None,
                };
                kernel.variants(core.model.gpu.capabilities().subgroup).into_iter().filter_map(choice).collect()
            }
            (Shape::Prefill { rows, vectors, .. }, Kernel::MatMul { format, operand, .. }) => {
                let portable = core.model.profile.portable_tile(rows, vectors);
                let others =
                    Tile::CANDIDATES.into_iter().filter(|tile| *tile != portable && tile.vectors() <= vectors.max(32));
                let tiles = std::iter::once(portable).chain(others);
                tiles.map(|tile| (Choice::Tile(tile), Kernel::MatMul { format, operand, tile })).collect()
            }
            (Shape::Packed { rows, vectors, .. }, Kernel::Packed { format, operand, dots, .. }) => {
                let portable = core.model.profile.portable_packed_tile(rows, vectors);
                let others =
                    PackedTile::ALL.into_iter().filter(|tile| *tile != portable && tile.vectors() <= vectors.max(32));
                let tiles = std::iter::once(portable).chain(others);
                tiles.map(|tile| (Choice::Packed(tile), Kernel::Packed { format, operand, tile, dots })).collect()
            }
            _ => Vec::new(),
        }
    }
}

impl Core {
    fn is_tunable(&self) -> bool {
        self.model.settings.tuned && self.model.profile.is_tunable()
    }

    /// Whether nothing runs and nothing waits.
    pub(in crate::lab) fn is_idle(&self) -> bool {
        !self.queue().has_pending() && !self.queue().has_waiting()
    }

    fn is_asked(&self) -> bool {
        clock::now() - self.asked() <= QUIET
    }

    /// Whether there is time for tuning: nothing runs, and no answer elsewhere is in need of this device's experts.
    fn may_tune(&self) -> bool {
        self.is_idle() && !self.is_asked()
    }

    /// Every product of the units whose weights are loaded: decode products by their bytes, then prefill products.
    fn products(&mut self) -> Result<Vec<Product>, EngineError> {
        let mut all = Vec::new();
        let decode = self.record_products(Batch { n: 1, class: KernelClass::Decode })?;
        add_products(decode, ENOUGH_BYTES, &mut all);
        let max = self.model.memory.layout().prefill_tokens;
        for n in CHUNKS.into_iter().filter(|n| *n <= max) {
            let prefill = self.record_products(Batch { n, class: KernelClass::Prefill })?;
            // Products with many vectors reread the matrix often, so one matrix is as good as all of them.
            add_products(prefill, 0, &mut all);
        }
        Ok(all)
    }

    /// Records what a batch runs through: all blocks and the LM head.
    fn record_products(&mut self, batch: Batch) -> Result<Program, EngineError> {
        let mut encoder = self.encoder(Recorder::apart());
        let model = encoder.model();
        let decodes = batch.class == KernelClass::Decode;
        let mut recorded = BTreeSet::new();
        for unit in model.weights.resident().clone() {
            // A prefill chunk needs one product of each shape, and blocks are alike.
            if !decodes && !recorded.insert(model.signature(unit)) {
                continue;
            }
            match unit {
                WeightUnit::TokenMixer(block) => encoder.token_mixer(block, batch)?,
                WeightUnit::Dense(block) => encoder.dense(block, batch)?,
                WeightUnit::Router(block) if decodes => encoder.route(block, batch)?,
                WeightUnit::LmHead if decodes => encoder.logits(0, 1)?,
                _ => {}
            }
        }
        // One block's experts are more than enough bytes, and other blocks may hold different experts.
        if decodes && let Some((block, _)) = most_experts(model) {
            encoder.experts(block, batch)?;
            encoder.fused_sum(block, batch)?;
        }
        Ok(encoder.finish())
    }

    /// Uses a measurement from now on and stores it with the device.
    fn adopt(&mut self, shape: Shape, tuned: Tuned) {
        // Another engine on this device may have measured other shapes in the meantime.
        let mut all = self.model.gpu.tuning();
        all.set(shape, tuned);
        self.model.gpu.set_tuning(all.clone());
        self.model.profile.set_tuning(all);
        self.drop_programs();
    }

    /// Writes inputs that no kernel finds unusually slow: zeros, and experts that are loaded.
    fn write_inputs(&mut self) -> Result<(), EngineError> {
        let mut encoder = self.model.gpu.device.create_command_encoder(&Default::default());
        for scratch in [Scratch::Hidden, Scratch::Normed, Scratch::Attended, Scratch::Gate, Scratch::Up] {
            encoder.clear_buffer(&self.model.scratch(scratch).slab.buffer, 0, None);
        }
        self.model.gpu.queue.submit([encoder.finish()]);
        if let Some((block, experts)) = most_experts(&self.model) {
            let (used, _) = self.model.routing(block)?;
            let chosen: Vec<u32> =
                experts.iter().map(|expert| u32::from(expert.0)).cycle().take(used as usize).collect();
            let write = |scratch, bytes: &[u8]| {
                self.model.gpu.queue.write_buffer(&self.model.scratch(scratch).slab.buffer, 0, bytes);
            };
            write(Scratch::Chosen, bytemuck::cast_slice(&chosen));
            write(Scratch::Gates, bytemuck::cast_slice(&vec![0.0f32; used as usize]));
        }
        Ok(())
    }
}

/// The block with the most loaded experts, and these.
fn most_experts(model: &Model) -> Option<(BlockIndex, Vec<ExpertId>)> {
    let loaded = |block: BlockIndex| {
        let ids = (0..model.expert_count(block) as u16).map(ExpertId);
        let here = ids.filter(|id| {
            model.weights.is_resident(WeightUnit::Expert(block, *id)) || model.weights.is_in_slot((block, *id))
        });
        here.collect::<Vec<_>>()
    };
    let all = model.memory.layout().experts.keys().rev().map(|&block| (block, loaded(block)));
    all.filter(|(_, experts)| !experts.is_empty()).max_by_key(|(_, experts)| experts.len())
}

/// Groups the steps of a program by shape, the heaviest first. Stops adding to a shape at `enough` bytes.
fn add_products(program: Program, enough: u64, all: &mut Vec<Product>) {
    let mut found: BTreeMap<Shape, Product> = BTreeMap::new();
    for (step, uniform) in program.steps.into_iter().zip(program.uniforms.chunks_exact(PARAMS_STRIDE as usize)) {
        let Some(size) = Size::of(step.kernel, uniform) else { continue };
        let Some(shape) = Product::shape(step.kernel, &size) else { continue };
        let kernel = step.kernel;
        let product = found.entry(shape).or_insert_with(|| Product {
            shape,
            kernel,
            steps: Vec::new(),
            uniforms: Vec::new(),
            bytes: 0,
            weight: 0.0,
        });
        let bytes = step.cost(0);
        product.weight += f64::from(size.rows) * f64::from(size.cols) * f64::from(size.n);
        if product.steps.is_empty() || product.bytes < enough && product.steps.len() < PASSING as usize {
            product.bytes += bytes;
            product.steps.push(step);
            product.uniforms.extend_from_slice(uniform);
        }
    }
    let mut found: Vec<Product> = found.into_values().collect();
    found.sort_by(|left, right| right.weight.total_cmp(&left.weight));
    all.extend(found);
}

impl Engine {
    /// Somebody has just asked for experts, so that nothing is tuned for a while.
    pub fn is_asked(&self) -> bool {
        self.inner.core.borrow().is_asked()
    }

    /// Compiles and tests the kernels [`Engine::tune`] will measure, for at most `budget` milliseconds; meant for when
    /// the device waits for weights anyway. Skips kinds of kernels that an earlier visit measured.
    ///
    /// # Errors
    /// The device is gone.
    pub async fn prepare_tuning(&self, budget: f64) -> Result<(), EngineError> {
        let until = clock::now() + budget;
        let batches = {
            let core = self.inner.core.borrow();
            if core.is_tunable() { core.model.kernels_to_tune() } else { Vec::new() }
        };
        for (portable, candidates) in batches {
            if clock::now() > until || !self.inner.core.borrow().may_tune() {
                break;
            }
            self.try_candidates(portable, &candidates, until).await?;
        }
        Ok(())
    }

    /// Measures which kernels are fastest for the shapes of the loaded units, uses them from now on and stores them
    /// with the device ([`crate::Gpu::tuning`]). Stops after `budget` milliseconds or when work waits. Results up to
    /// then count, even if the caller drops the future. Returns true if anything was measured.
    ///
    /// # Errors
    /// The device is gone.
    pub async fn tune(&self, budget: f64) -> Result<bool, EngineError> {
        let until = clock::now() + budget;
        let products = {
            let mut core = self.inner.core.borrow_mut();
            core.check_alive()?;
            if !core.is_tunable() || !core.may_tune() {
                return Ok(false);
            }
            let products = core.products()?;
            core.write_inputs()?;
            products
        };
        let mut measured = false;
        // Before the first measurement the device waited, and later whenever it waits for a compiler.
        let mut is_cold = true;
        for product in products {
            if clock::now() > until {
                break;
            }
            if self.inner.core.borrow().model.profile.tuning().get(&product.shape).is_some() {
                continue;
            }
            let candidates = product.candidates(&self.inner.core.borrow());
            let Some(&(_, portable)) = candidates.first() else { continue };
            let kernels: Vec<Kernel> = candidates.iter().skip(1).map(|(_, kernel)| *kernel).collect();
            is_cold |= self.try_candidates(portable, &kernels, until).await?;
            let right: Vec<(Choice, Kernel)> = {
                let core = self.inner.core.borrow();
                if kernels.iter().any(|kernel| !core.model.tried.contains_key(kernel)) {
                    break;
                }
                let right = |kernel: &Kernel| *kernel == portable || core.model.tried.get(kernel) == Some(&true);
                candidates.into_iter().filter(|(_, kernel)| right(kernel)).collect()
            };
            if let Some(tuned) = self.run_rounds(&product, &right, is_cold, until).await? {
                log::info!("{}: {} is {:.2} times as fast", product.shape, tuned.choice, tuned.gain);
                self.inner.core.borrow_mut().adopt(product.shape, tuned);
                measured = true;
            }
            is_cold = false;
        }
        self.inner.core.borrow().check_alive()?;
        Ok(measured)
    }

    /// The measurements for the shapes of the loaded units.
    ///
    /// # Errors
    /// The device is gone.
    pub fn tuned(&self) -> Result<Vec<(Shape, Tuned)>, EngineError> {
        let shapes = self.shapes()?;
        let core = self.inner.core.borrow();
        Ok(shapes.into_iter().filter_map(|shape| Some((shape, core.model.profile.tuning().get(&shape)?))).collect())
    }

    /// The shapes of the loaded units.
    ///
    /// # Errors
    /// The device is gone.
    pub fn shapes(&self) -> Result<Vec<Shape>, EngineError> {
        let mut core = self.inner.core.borrow_mut();
        core.check_alive()?;
        if !core.is_tunable() {
            return Ok(Vec::new());
        }
        Ok(core.products()?.into_iter().map(|product| product.shape).collect())
    }

    /// Whether some shape of the loaded units could be measured but has not been.
    pub fn is_untuned(&self) -> bool {
        let Ok(shapes) = self.shapes() else { return false };
        let core = self.inner.core.borrow();
        shapes.iter().any(|shape| core.model.profile.tuning().get(shape).is_none())
    }

    /// Times the kernels of a product in turn. `None` if work waits, the time is over or nothing can be measured.
    async fn run_rounds(
        &self,
        product: &Product,
        candidates: &[(Choice, Kernel)],
        is_cold: bool,
        until: f64,
    ) -> Result<Option<Tuned>, EngineError> {
        let parts: Vec<Part> = {
            let mut core = self.inner.core.borrow_mut();
            let by = |&(_, kernel): &(Choice, Kernel)| Part::whole(Rc::new(product.by(&mut core, kernel)));
            candidates.iter().map(by).collect()
        };
        let may_go_on = || clock::now() <= until && self.inner.core.borrow().may_tune();
        if let Some(part) = parts.first().filter(|_| is_cold) {
            self.warm_up(part, until).await?;
        }
        let mut repeat = 1;
        for (number, part) in parts.iter().enumerate() {
            // The first run includes one-time costs.
            let (_, mut spent) = self.repeat(part, repeat).await?;
            while number == 0 && spent < LONG_ENOUGH && repeat < MAX_REPEATS && may_go_on() {
                let factor = (1.3 * LONG_ENOUGH / spent.max(0.01)).clamp(2.0, 64.0);
                repeat = ((f64::from(repeat) * factor) as u32).min(MAX_REPEATS);
                spent = self.repeat(part, repeat).await?.1;
            }
            if !may_go_on() {
                return Ok(None);
            }
        }
        let mut rounds = TuningRounds::new(parts.len());
        while let Some(candidate) = rounds.next() {
            if !may_go_on() {
                return Ok(None);
            }
            rounds.record(candidate, self.repeat(&parts[candidate], repeat).await?.1);
        }
        Ok(rounds
            .result()
            .map(|result| Tuned { choice: candidates[result.winner].0, gain: result.first / result.best }))
    }
}
