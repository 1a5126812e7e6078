//! The engine's internals: what it holds, where it lies, and what is in flight.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use potluck_model::{ModelSpec, TensorRole, UnitMap};
use potluck_plan::{Arithmetic, BlockIndex, Computed, Outcome, PooledExperts, Ticket, WeightUnit, Work};
use potluck_shaders::{CODEBOOK_BYTES, Format, Kernel, NO_SLOT, reference};

use crate::runtime::encode_ahead::EncodeAhead;
use crate::runtime::error::EngineError;
use crate::runtime::gpu::Gpu;
use crate::runtime::kv_pages::KvPages;
use crate::runtime::layout::{Key, Layout, PARAMS_COUNT, PARAMS_STRIDE, Place, Scratch, SlotsOf};
use crate::runtime::memory::{Memory, Slab, Slice};
use crate::runtime::pieces::Joining;
use crate::runtime::pipelines::Pipelines;
use crate::runtime::profile::Profile;
use crate::runtime::readback::{Pending, Readback};
use crate::runtime::recorder::{BindGroups, Tools};
use crate::runtime::sampled_tokens::SampledTokens;
use crate::runtime::settings::Settings;
use crate::runtime::slots::Slots;
use crate::runtime::staging::StagingRing;
use crate::runtime::submit::Programs;

/// Device events since the engine last looked.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A readback buffer was mapped, or mapping failed.
    Readback(usize, bool),
    /// A staging buffer was mapped again, or mapping failed.
    Staging(usize, bool),
    /// Work was answered without the device.
    Answered,
}

/// Events queued by device callbacks.
pub type Inbox = Arc<Mutex<VecDeque<Event>>>;

/// The state behind a [`crate::Engine`].
pub struct Core {
    pub gpu: Gpu,
    pub spec: ModelSpec,
    pub units: UnitMap,
    pub settings: Settings,
    pub profile: Profile,
    /// Kernels that may be faster than those in use, and whether they compute correctly on this device.
    pub tried: BTreeMap<Kernel, bool>,
    pub held: BTreeSet<WeightUnit>,
    pub resident: BTreeSet<WeightUnit>,
    /// The embedding table is resident, uploaded as `Embedding` or through a tied `Head`.
    pub table_resident: bool,
    pub layout: Rc<Layout>,
    /// The experts in the slots of the pool.
    pub slots: Slots,
    pub roles: HashMap<(WeightUnit, TensorRole), usize>,
    pub memory: Memory,
    pub pipelines: Pipelines,
    pub groups: BindGroups,
    pub programs: Programs,
    pub encode_ahead: EncodeAhead,
    pub uniforms: Rc<Slab>,
    /// Codebooks of the IQ formats.
    pub codebooks: Rc<Slab>,
    pub pages: KvPages,
    pub sampled_tokens: SampledTokens,
    pub readbacks: Vec<Readback>,
    pub staging: StagingRing,
    pub pending: VecDeque<Pending>,
    pub waiting: VecDeque<Work>,
    /// When experts were last asked for, on [`crate::runtime::clock::now`]: somebody's answer waits for them.
    pub asked: f64,
    /// Partial results of work that was cut into pieces.
    pub joining: HashMap<Ticket, Joining>,
    /// Results ready for delivery.
    pub answers: VecDeque<Computed>,
    pub inbox: Inbox,
    /// Dispatches of the most recently submitted work.
    pub dispatches: u32,
    /// Times of the steps that get poll kicks.
    #[cfg(target_arch = "wasm32")]
    pub step_times: crate::runtime::poll_kick::StepTimes,
}

impl Core {
    /// Creates an engine that holds nothing yet.
    pub fn new(gpu: &Gpu, spec: ModelSpec, units: UnitMap, settings: Settings) -> Result<Self, EngineError> {
        let capabilities = gpu.capabilities();
        let limits = &capabilities.limits;
        let mut settings = settings;
        if settings.arithmetic == Arithmetic::Matrix && !capabilities.matrix_units {
            settings.arithmetic = Arithmetic::Exact;
        }
        let mut profile = Profile::of(capabilities.tier, capabilities.lanes)
            .with_arithmetic(settings.arithmetic)
            .with_subgroups(capabilities.subgroup);
        if settings.tuned {
            profile.set_tuning(gpu.tuning());
        }
        let prefill_tokens = settings.prefill_tokens.min(profile.max_prefill_tokens());
        let settings = Settings { prefill_tokens, ..settings };
        let layout = Layout::plan(&spec, &units, &BTreeSet::new(), &settings, limits)?;
        let mut memory = Memory::default();
        let uniforms = memory.create(
            &gpu.device,
            "uniforms",
            PARAMS_STRIDE * PARAMS_COUNT,
            wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST,
        );
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST;
        let codebooks = memory.create(&gpu.device, "codebooks", CODEBOOK_BYTES, usage);
        gpu.queue.write_buffer(&codebooks.buffer, 0, &potluck_shaders::codebooks());
        let staging = StagingRing::new(&settings);
        let mut core = Self {
            gpu: gpu.clone(),
            spec,
            units,
            profile,
            tried: BTreeMap::new(),
            held: BTreeSet::new(),
            resident: BTreeSet::new(),
            table_resident: false,
            layout: Rc::new(layout),
            slots: Slots::default(),
            roles: HashMap::new(),
            memory,
            pipelines: Pipelines::default(),
            groups: BindGroups::default(),
            programs: Programs::default(),
            encode_ahead: EncodeAhead::default(),
            uniforms,
            codebooks,
            pages: KvPages::new(crate::runtime::sizes::page_count(&settings)),
            sampled_tokens: SampledTokens::default(),
            readbacks: Vec::new(),
            staging,
            pending: VecDeque::new(),
            waiting: VecDeque::new(),
            asked: f64::NEG_INFINITY,
            joining: HashMap::new(),
            answers: VecDeque::new(),
            inbox: Inbox::default(),
            dispatches: 0,
            #[cfg(target_arch = "wasm32")]
            step_times: crate::runtime::poll_kick::StepTimes::default(),
            settings,
        };
        core.make_readbacks();
        Ok(core)
    }

    /// Changes memory to what `units` and the pool need. Units that stay keep their bytes.
    pub fn hold(&mut self, units: &BTreeSet<WeightUnit>, pool: &PooledExperts) -> Result<Layout, EngineError> {
        self.check_alive()?;
        let limits = self.gpu.capabilities().limits.clone();
        let old = self.layout.clone();
        let held = (units, pool);
        let layout = Layout::plan_after(&old.experts, &self.spec, &self.units, held, &self.settings, &limits)?;
        let changed: BTreeSet<BlockIndex> = old
            .experts
            .iter()
            .filter(|(block, places)| layout.experts.get(block).is_none_or(|new| !places.stay_in(new)))
            .map(|(&block, _)| block)
            .collect();
        let renewed = |key: &Key| matches!(key, Key::Experts(SlotsOf::Block(block), ..) if changed.contains(block));
        self.groups.clear();
        self.programs.clear();
        self.encode_ahead.clear();
        let was = self.memory.adopt(&self.gpu.device, &layout, renewed);
        if (&layout.classes, &layout.pool_slots) != (&old.classes, &old.pool_slots) {
            let slots = Slots::new(layout.classes.clone(), layout.pool_slots.clone());
            self.slots = slots.evicting(self.settings.eviction);
        }
        let layout = Rc::new(layout);
        self.layout = layout.clone();
        self.move_experts(&old, &layout, &was, &changed);
        drop(was);
        self.held = units.clone();
        self.resident.retain(|unit| units.contains(unit));
        self.table_resident &= layout.sizes.contains_key(&Key::Table(0));
        self.roles = units
            .iter()
            .flat_map(|&unit| {
                self.units.tensors(unit).iter().enumerate().map(move |(index, tensor)| ((unit, tensor.role), index))
            })
            .collect();
        let recurrent = (0..self.spec.blocks.len()).filter(|block| self.spec.recurrent(*block).is_some());
        self.pages.set_recurrent(recurrent.map(|block| BlockIndex(block as u16)).collect());
        self.pages.set_blocks(
            units
                .iter()
                .filter_map(|unit| if let WeightUnit::TokenMixer(block) = unit { Some(*block) } else { None })
                .collect(),
        );
        self.make_readbacks();
        self.write_tables();
        Ok((*layout).clone())
    }

    /// Copies the remaining experts from their old slots to their new ones.
    fn move_experts(
        &mut self,
        old: &Layout,
        new: &Layout,
        was: &BTreeMap<Key, Rc<Slab>>,
        changed: &BTreeSet<BlockIndex>,
    ) {
        let mut encoder = self.gpu.device.create_command_encoder(&Default::default());
        for block in changed {
            let (Some(from), Some(to)) = (old.experts.get(block), new.experts.get(block)) else { continue };
            for ((_, matrix_from), (_, matrix_to)) in from.all().zip(to.all()) {
                for (expert, &slot_to) in &to.slots {
                    let Some(&slot_from) = from.slots.get(expert) else { continue };
                    let (key_from, at_from) = matrix_from.slot(slot_from);
                    let (key_to, at_to) = matrix_to.slot(slot_to);
                    let source = &was[&key_from].buffer;
                    let target = &self.memory.slab(key_to).buffer;
                    encoder.copy_buffer_to_buffer(source, at_from, target, at_to, matrix_to.bytes());
                }
            }
        }
        self.gpu.queue.submit([encoder.finish()]);
    }

    /// Writes the RoPE tables and slot tables.
    fn write_tables(&mut self) {
        let tables = self.memory.slab(Key::Scratch(Scratch::Tables)).clone();
        let write = |offset: u64, values: &[u32]| {
            self.gpu.queue.write_buffer(&tables.buffer, offset, bytemuck::cast_slice(values));
        };
        for (block, &offset) in &self.layout.rope_table {
            let rope = &self.spec.attention(usize::from(block.0)).rope;
            let rope_table = reference::rope_table_of(&rope.frequencies());
            if !rope_table.is_empty() {
                write(offset, &rope_table);
            }
        }
        for (block, places) in &self.layout.experts {
            let mut table = vec![NO_SLOT; self.expert_count(*block) as usize];
            for (expert, &slot) in &places.slots {
                table[usize::from(expert.0)] = slot;
            }
            write(places.table, &table);
        }
        self.write_pool_tables();
        self.write_head_tables();
    }

    /// Number of experts in a block, 0 if it has none.
    pub fn expert_count(&self, block: BlockIndex) -> u32 {
        self.spec.experts(usize::from(block.0)).map_or(0, |experts| experts.count)
    }

    /// The weight format with the most held bytes; `Q4_K` if nothing is held.
    pub fn main_format(&self) -> Format {
        let mut bytes: BTreeMap<Format, u64> = BTreeMap::new();
        for place in self.layout.places.values() {
            *bytes.entry(place.shape.format).or_default() += place.shape.bytes();
        }
        let mut pools = BTreeSet::new();
        for (block, places) in &self.layout.experts {
            // Blocks of a slab class share its slots.
            let slots = match self.layout.classes.get(block) {
                None => places.slots.len() as u64,
                Some(&class) if pools.insert(class) => u64::from(self.layout.pool_slots[usize::from(class)]),
                Some(_) => continue,
            };
            for matrix in [&places.gate, &places.up, &places.down] {
                *bytes.entry(matrix.shape.format).or_default() += matrix.shape.bytes() * slots;
            }
        }
        bytes.into_iter().max_by_key(|(_, bytes)| *bytes).map_or(Format::Q4_K, |(format, _)| format)
    }

    /// Held units whose bytes are not complete.
    pub fn missing(&self) -> Vec<WeightUnit> {
        self.held.difference(&self.resident).copied().collect()
    }

    /// False if the tensor is resident although its unit is not finished, as with a shared embedding table.
    pub fn needs(&self, unit: WeightUnit, tensor: usize) -> bool {
        let is_table =
            self.units.tensors(unit).get(tensor).is_some_and(|tensor| tensor.role == TensorRole::TokenEmbedding);
        let incomplete = self.held.contains(&unit) && !self.resident.contains(&unit);
        self.is_loading(unit) || incomplete && !(is_table && self.table_resident)
    }

    /// Marks a unit as completely uploaded.
    pub fn finish(&mut self, unit: WeightUnit) -> Result<(), EngineError> {
        if let WeightUnit::Expert(block, expert) = unit
            && self.slots.has(block)
        {
            return self.finish_expert((block, expert));
        }
        if !self.held.contains(&unit) {
            return Err(EngineError::NotHeld(unit));
        }
        self.resident.insert(unit);
        self.table_resident |= self.roles.contains_key(&(unit, TensorRole::TokenEmbedding));
        Ok(())
    }

    /// Marks all held units as missing; their memory stays.
    pub fn invalidate_weights(&mut self) {
        self.resident.clear();
        self.table_resident = false;
        self.slots.clear();
        self.write_pool_tables();
    }

    /// Location of a tensor of a held unit. Experts lie in slots instead.
    pub fn place<'a>(&self, layout: &'a Layout, unit: WeightUnit, role: TensorRole) -> Result<&'a Place, EngineError> {
        if !self.resident.contains(&unit) {
            return Err(EngineError::NotResident(unit));
        }
        self.roles
            .get(&(unit, role))
            .and_then(|index| layout.places.get(&(unit, *index)))
            .ok_or(EngineError::NotResident(unit))
    }

    /// Binding of a vector, such as a norm's gain or a bias.
    pub fn vector(&self, layout: &Layout, unit: WeightUnit, role: TensorRole) -> Result<Slice, EngineError> {
        let segment = self.place(layout, unit, role)?.segments[0];
        Ok(self.memory.slice(segment.key, segment.offset, segment.bytes))
    }

    /// The whole buffer that contains a scratch vector.
    pub fn scratch(&self, scratch: Scratch) -> Slice {
        self.memory.whole(Key::Scratch(scratch.home()))
    }

    /// Borrows what recording needs.
    pub fn tools(&mut self) -> Tools<'_> {
        Tools {
            device: &self.gpu.device,
            pipelines: &mut self.pipelines,
            groups: &mut self.groups,
            uniforms: &self.uniforms.buffer,
            codebooks: &self.codebooks.buffer,
        }
    }

    /// Returns an error if the device is lost.
    pub fn check_alive(&self) -> Result<(), EngineError> {
        if self.gpu.lost() { Err(EngineError::Lost) } else { Ok(()) }
    }

    /// Records the result of a work, or of one piece of it.
    pub fn answer(&mut self, ticket: Ticket, outcome: Outcome, millis: f64) {
        let (outcome, millis) = match self.joining.get_mut(&ticket) {
            None => (outcome, millis),
            Some(joining) => {
                let Some(whole) = joining.add(outcome, millis) else { return };
                self.joining.remove(&ticket);
                whole
            }
        };
        self.answers.push_back(Computed { ticket, outcome, millis });
    }

    /// Frees all memory on the device.
    pub fn destroy(&mut self) {
        self.groups.clear();
        self.programs.clear();
        self.encode_ahead.clear();
        self.memory.clear();
        self.readbacks.clear();
        self.staging.close();
        self.held.clear();
        self.resident.clear();
        self.slots = Slots::default();
    }
}
