//! Places tensors, slots, KV cache and scratch in buffers that the device can bind.

use std::collections::{BTreeMap, BTreeSet};

use potluck_model::{ModelSpec, TensorRole, UnitMap};
use potluck_plan::{BlockIndex, Bytes, ExpertId, PooledExperts, WeightUnit, divide_slots};
use potluck_shaders::CODEBOOK_BYTES;

use crate::runtime::error::LayoutError;
use crate::runtime::kv_sizes::{binding_limit, kv_cache_buffer, kv_owner};
use crate::runtime::layout::{
    ALIGNMENT, ExpertChunk, ExpertMatrix, ExpertPlaces, Key, Layout, PARAMS_COUNT, PARAMS_STRIDE, Place, PlannedBuffer,
    Purpose, Segment, SlotsOf, align,
};
use crate::runtime::settings::Settings;
use crate::runtime::sizes::{
    AttentionBlocks, Widths, page_count, readback_sizes, rope_table_bytes, scratch_sizes, tokens_at_once,
};
use crate::runtime::tensors::{self, Shape};

pub(crate) struct Planner<'a> {
    spec: &'a ModelSpec,
    units: &'a UnitMap,
    /// Most bytes per segment, limited by what one binding can cover.
    max: u64,
    max_buffer_bytes: u64,
    sizes: BTreeMap<Key, u64>,
    places: BTreeMap<(WeightUnit, usize), Place>,
    experts: BTreeMap<BlockIndex, ExpertPlaces>,
    classes: BTreeMap<BlockIndex, u16>,
    pool_slots: Vec<u32>,
}

/// Shapes of an expert's gate, up and down matrices, and of their biases.
#[derive(Clone, Copy, PartialEq, Eq)]
struct ExpertShapes {
    matrices: [Shape; 3],
    biases: Option<[Shape; 3]>,
}

/// The slots of an expert's matrices and biases.
#[derive(Clone)]
struct ExpertSlots {
    matrices: [ExpertMatrix; 3],
    biases: Option<[ExpertMatrix; 3]>,
}

impl ExpertSlots {
    fn places(self, slots: BTreeMap<ExpertId, u32>) -> ExpertPlaces {
        let [gate, up, down] = self.matrices;
        ExpertPlaces { slots, gate, up, down, biases: self.biases, table: 0 }
    }
}

impl<'a> Planner<'a> {
    pub fn new(spec: &'a ModelSpec, units: &'a UnitMap, limits: &wgpu::Limits) -> Self {
        let max = binding_limit(limits).0;
        let max_buffer_bytes = limits.max_buffer_size.min(1 << 32) / ALIGNMENT * ALIGNMENT;
        let (sizes, places, experts, classes, pool_slots) = Default::default();
        Self { spec, units, max, max_buffer_bytes, sizes, places, experts, classes, pool_slots }
    }

    /// Places a unit's tensors one after another and splits those larger than one binding.
    pub fn unit(&mut self, unit: WeightUnit) -> Result<(), LayoutError> {
        let parts = tensors::parts(self.spec, unit)?;
        let tensors = self.units.tensors(unit);
        if tensors.is_empty() {
            return Err(LayoutError::UnknownUnit(unit));
        }
        if let Some(part) = parts.iter().find(|part| !tensors.iter().any(|tensor| tensor.role == part.role)) {
            return Err(LayoutError::MissingTensor { unit, role: part.role });
        }
        let mut part = 0;
        for (index, tensor) in tensors.iter().enumerate() {
            let shape = tensors::shape(self.spec, unit, tensor)?;
            let table = tensor.role == TensorRole::TokenEmbedding;
            let mut segments = Vec::new();
            let mut first_row = 0;
            let mut table_part = 0;
            while first_row < shape.rows {
                let rows = self.rows_of_a_segment(unit, tensor.role, shape)?.min(shape.rows - first_row);
                let bytes = u64::from(rows) * u64::from(shape.row_bytes);
                let key = if table { Key::Table(table_part) } else { Key::Unit(unit, part) };
                let used = self.sizes.get(&key).copied().unwrap_or(0);
                if !table && used > 0 && used + align(bytes) > self.max_buffer_bytes {
                    part += 1;
                    continue;
                }
                let offset = if table { 0 } else { used };
                self.sizes.insert(key, offset + align(bytes));
                segments.push(Segment { key, offset, first_row, rows, bytes });
                first_row += rows;
                table_part += 1;
            }
            self.places.insert((unit, index), Place { shape, segments });
        }
        Ok(())
    }

    /// Most rows that one binding can cover. The number is even so that every segment but the last contains whole
    /// words.
    fn rows_of_a_segment(&self, unit: WeightUnit, role: TensorRole, shape: Shape) -> Result<u32, LayoutError> {
        if shape.bytes() <= self.max {
            return Ok(shape.rows);
        }
        let rows = self.max / u64::from(shape.row_bytes) / 64 * 64;
        u32::try_from(rows).ok().filter(|rows| *rows > 0).ok_or_else(|| LayoutError::BufferLimit {
            what: format!("A row of {role:?} of {unit:?}"),
            needed: Bytes(64 * u64::from(shape.row_bytes)),
            limit: Bytes(self.max),
        })
    }

    /// Places the experts of each block that are held. Those of `before` stay where they are if they can.
    pub fn all_experts(
        &mut self,
        held: &BTreeSet<WeightUnit>,
        before: &BTreeMap<BlockIndex, ExpertPlaces>,
    ) -> Result<(), LayoutError> {
        let mut by_block: BTreeMap<BlockIndex, BTreeSet<ExpertId>> = BTreeMap::new();
        for unit in held {
            if let WeightUnit::Expert(block, expert) = *unit {
                by_block.entry(block).or_default().insert(expert);
            }
        }
        for (block, experts) in by_block {
            let shapes = self.expert_shapes(block, experts.iter().copied())?;
            let all = self.spec.experts(usize::from(block.0)).map_or(0, |experts| experts.count);
            let kept = before.get(&block).filter(|places| places.can_grow(&experts, all));
            let mut slots = kept.map(|places| places.slots.clone()).unwrap_or_default();
            for expert in experts {
                let next = slots.len() as u32;
                slots.entry(expert).or_insert(next);
            }
            let places = self.expert_matrices(SlotsOf::Block(block), slots.len() as u32, shapes, kept)?;
            self.experts.insert(block, places.places(slots));
        }
        Ok(())
    }

    /// Places slots for the experts of pooled blocks, by slab class.
    pub fn pool(&mut self, held: &BTreeSet<WeightUnit>, pool: &PooledExperts) -> Result<(), LayoutError> {
        let beside = |unit: &&WeightUnit| matches!(unit, WeightUnit::Expert(block, _) if pool.blocks.contains(block));
        if let Some(&unit) = held.iter().find(beside) {
            return Err(LayoutError::Pooled(unit));
        }
        let mut classes: Vec<(ExpertShapes, u32)> = Vec::new();
        for &block in &pool.blocks {
            let Some(count) = self.spec.experts(usize::from(block.0)).map(|experts| experts.count) else {
                return Err(LayoutError::NoExperts(block));
            };
            let shapes = self.expert_shapes(block, (0..count as u16).map(ExpertId))?;
            let class = classes.iter().position(|(known, _)| *known == shapes).unwrap_or_else(|| {
                classes.push((shapes, 0));
                classes.len() - 1
            });
            classes[class].1 += count;
            self.classes.insert(block, class as u16);
        }
        let experts: Vec<u32> = classes.iter().map(|(_, experts)| *experts).collect();
        let too_few = LayoutError::TooFewSlots { slots: pool.slots, needed: experts.len() as u32 };
        self.pool_slots = divide_slots(pool.slots, &experts).ok_or(too_few)?;
        for (class, (shapes, _)) in classes.into_iter().enumerate() {
            let matrices = self.expert_matrices(SlotsOf::Pool(class as u16), self.pool_slots[class], shapes, None)?;
            let blocks = self.classes.iter().filter(|(_, of)| usize::from(**of) == class).map(|(block, _)| *block);
            for block in blocks.collect::<Vec<_>>() {
                self.experts.insert(block, matrices.clone().places(BTreeMap::new()));
            }
        }
        Ok(())
    }

    /// Places `count` slots for experts of these shapes. The first of them are where they are in `kept`.
    fn expert_matrices(
        &mut self,
        of: SlotsOf,
        count: u32,
        shapes: ExpertShapes,
        kept: Option<&ExpertPlaces>,
    ) -> Result<ExpertSlots, LayoutError> {
        let [gate, up, down] = shapes.matrices;
        let (gate, up) = self.gate_and_up(of, count, gate, up, kept)?;
        let kept = kept.map_or(&[][..], |places| &places.down.chunks);
        let matrices = [gate, up, self.expert_matrix(of, count, TensorRole::Down, down, kept)?];
        let biases = shapes.biases.map(|biases| self.expert_biases(of, count, biases)).transpose()?;
        Ok(ExpertSlots { matrices, biases })
    }

    /// Places the three biases of each expert in shared slots.
    fn expert_biases(&mut self, of: SlotsOf, count: u32, biases: [Shape; 3]) -> Result<[ExpertMatrix; 3], LayoutError> {
        let stride = biases.iter().map(|shape| align(shape.bytes())).sum();
        let chunks = self.expert_chunks(of, count, TensorRole::GateBias, stride, &[])?;
        let mut inside = 0;
        Ok(biases.map(|shape| {
            let matrix = ExpertMatrix { shape, stride, inside, chunks: chunks.clone() };
            inside += align(shape.bytes());
            matrix
        }))
    }

    /// The common shapes of the matrices of some experts of a block.
    fn expert_shapes(
        &self,
        block: BlockIndex,
        experts: impl Iterator<Item = ExpertId> + Clone,
    ) -> Result<ExpertShapes, LayoutError> {
        let of = |role| self.expert_shape(block, experts.clone(), role);
        let matrices = [of(TensorRole::Gate)?, of(TensorRole::Up)?, of(TensorRole::Down)?];
        let biased = self.spec.experts(usize::from(block.0)).is_some_and(|experts| experts.biases);
        let biases = if biased {
            Some([of(TensorRole::GateBias)?, of(TensorRole::UpBias)?, of(TensorRole::DownBias)?])
        } else {
            None
        };
        Ok(ExpertShapes { matrices, biases })
    }

    /// The common shape of one matrix of all experts.
    fn expert_shape(
        &self,
        block: BlockIndex,
        experts: impl Iterator<Item = ExpertId>,
        role: TensorRole,
    ) -> Result<Shape, LayoutError> {
        let mut found: Option<Shape> = None;
        for expert in experts {
            let unit = WeightUnit::Expert(block, expert);
            tensors::parts(self.spec, unit)?;
            let tensor = self.units.tensors(unit).iter().find(|tensor| tensor.role == role);
            let shape = tensors::shape(self.spec, unit, tensor.ok_or(LayoutError::MissingTensor { unit, role })?)?;
            if found.is_some_and(|other| other != shape) {
                return Err(LayoutError::UnsupportedShape(format!(
                    "The experts of block {} are stored in different ways.",
                    block.0
                )));
            }
            found = Some(shape);
        }
        found.ok_or(LayoutError::UnknownUnit(WeightUnit::Expert(block, ExpertId(0))))
    }

    /// Places gate and up in shared slots, or in separate slots if one binding cannot cover both matrices of an expert.
    fn gate_and_up(
        &mut self,
        of: SlotsOf,
        count: u32,
        gate: Shape,
        up: Shape,
        kept: Option<&ExpertPlaces>,
    ) -> Result<(ExpertMatrix, ExpertMatrix), LayoutError> {
        let (first, stride) = (align(gate.bytes()), align(gate.bytes()) + align(up.bytes()));
        let [kept_gate, kept_up] = kept.map_or([&[][..]; 2], |places| [&places.gate.chunks, &places.up.chunks]);
        if stride > self.max {
            let gate = self.expert_matrix(of, count, TensorRole::Gate, gate, kept_gate)?;
            return Ok((gate, self.expert_matrix(of, count, TensorRole::Up, up, kept_up)?));
        }
        let chunks = self.expert_chunks(of, count, TensorRole::Gate, stride, kept_gate)?;
        let gate = ExpertMatrix { shape: gate, stride, inside: 0, chunks: chunks.clone() };
        Ok((gate, ExpertMatrix { shape: up, stride, inside: first, chunks }))
    }

    fn expert_matrix(
        &mut self,
        of: SlotsOf,
        count: u32,
        role: TensorRole,
        shape: Shape,
        kept: &[ExpertChunk],
    ) -> Result<ExpertMatrix, LayoutError> {
        let stride = align(shape.bytes());
        let chunks = self.expert_chunks(of, count, role, stride, kept)?;
        Ok(ExpertMatrix { shape, stride, inside: 0, chunks })
    }

    /// Buffers for `count` slots: those of `kept` first, and others for the rest.
    fn expert_chunks(
        &mut self,
        of: SlotsOf,
        count: u32,
        role: TensorRole,
        stride: u64,
        kept: &[ExpertChunk],
    ) -> Result<Vec<ExpertChunk>, LayoutError> {
        let per_chunk = self.max / stride;
        if per_chunk == 0 {
            return Err(LayoutError::BufferLimit {
                what: match of {
                    SlotsOf::Block(block) => format!("{role:?} of an expert of block {}", block.0),
                    SlotsOf::Pool(_) => format!("{role:?} of a pooled expert"),
                },
                needed: Bytes(stride),
                limit: Bytes(self.max),
            });
        }
        let mut chunks = kept.to_vec();
        self.sizes.extend(kept.iter().map(|&(_, slots, key)| (key, u64::from(slots) * stride)));
        let mut first: u32 = kept.iter().map(|(_, slots, _)| slots).sum();
        while first < count {
            let here = (count - first).min(u32::try_from(per_chunk).unwrap_or(u32::MAX));
            let key = Key::Experts(of, role, chunks.len() as u16);
            self.sizes.insert(key, u64::from(here) * stride);
            chunks.push((first, here, key));
            first += here;
        }
        Ok(chunks)
    }

    pub fn kv_cache(&mut self, held: &BTreeSet<WeightUnit>, settings: &Settings) -> Result<(), LayoutError> {
        for unit in held {
            let WeightUnit::TokenMixer(block) = *unit else { continue };
            // Blocks that share keys have one cache, also where the block that writes it is not held, as in a trial.
            let block = kv_owner(self.spec, block);
            let state = self.spec.state_bytes(usize::from(block.0)).0;
            let bytes = kv_cache_buffer(self.spec, block, settings.context, settings.kv_cache).0.max(state);
            if bytes > self.max {
                return Err(LayoutError::BufferLimit {
                    what: format!("The context of block {}", block.0),
                    needed: Bytes(bytes),
                    limit: Bytes(self.max),
                });
            }
            if state > 0 {
                self.sizes.insert(Key::State(block), state);
                continue;
            }
            self.sizes.insert(Key::Keys(block), align(bytes));
            if self.spec.attention(usize::from(block.0)).latent.is_none() {
                self.sizes.insert(Key::Values(block), align(bytes));
            }
        }
        Ok(())
    }

    pub fn scratch(&mut self, held: &BTreeSet<WeightUnit>, settings: &Settings) -> Result<(), LayoutError> {
        for (scratch, bytes) in scratch_sizes(self.spec, held, settings) {
            if bytes > self.max {
                return Err(LayoutError::BufferLimit {
                    what: format!("Scratch memory ({scratch:?}) for {} rows", tokens_at_once(settings)),
                    needed: Bytes(bytes),
                    limit: Bytes(self.max),
                });
            }
            self.sizes.insert(Key::Scratch(scratch), bytes);
        }
        Ok(())
    }

    pub fn finish(mut self, settings: &Settings, held: &BTreeSet<WeightUnit>) -> Layout {
        let mut buffers: Vec<PlannedBuffer> = self
            .sizes
            .iter()
            .map(|(key, &bytes)| PlannedBuffer { name: key.name(), purpose: key.purpose(), bytes: Bytes(bytes) })
            .collect();
        let readback = readback_sizes(self.spec, held, settings);
        let mut add = |name: String, purpose, bytes| buffers.push(PlannedBuffer { name, purpose, bytes: Bytes(bytes) });
        add("uniforms".into(), Purpose::Parameters, PARAMS_STRIDE * PARAMS_COUNT);
        add("codebooks".into(), Purpose::Parameters, CODEBOOK_BYTES);
        for i in 0..settings.staging_count {
            add(format!("staging {i}"), Purpose::Staging, u64::from(settings.staging_bytes));
        }
        for i in 0..settings.in_flight.max(1) {
            add(format!("readback {i}"), Purpose::Readback, readback.most);
        }
        if readback.logits > 0 {
            add("readback of logits".into(), Purpose::Readback, readback.logits);
        }
        let total = buffers.iter().map(|buffer| buffer.bytes).sum();
        // Small tables: first the RoPE table of each block, then the slot table of each block.
        let mut at = 0;
        let mut rope_table = BTreeMap::new();
        for (index, attention) in self.spec.attention_blocks().enumerate() {
            rope_table.insert(BlockIndex(index as u16), at);
            at += rope_table_bytes(attention);
        }
        for places in self.experts.values_mut() {
            places.table = at;
            at += align(Widths::of(self.spec).experts * 4);
        }
        let pages = page_count(settings);
        let prefill_tokens = tokens_at_once(settings) as u32;
        let Self { sizes, places, experts, classes, pool_slots, .. } = self;
        Layout {
            buffers,
            total,
            sizes,
            places,
            experts,
            classes,
            pool_slots,
            rope_table,
            usual_readback_bytes: readback.usual,
            readback_bytes: readback.most,
            logits_bytes: readback.logits,
            pages,
            prefill_tokens,
        }
    }
}
