//! The engine's internals: a model on a device, the work on its way, and what the device keeps for both.
//!
//! Each part keeps its own invariant and knows none of the others but those it is given. This module puts them together;
//! `run` takes a piece of work to a submit, `continuation` does for multi-step decode.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use potluck_model::{ModelSpec, UnitMap};
use potluck_plan::{
    Arithmetic, BlockIndex, Bytes, Computed, ConversationId, Outcome, PooledExperts, Ticket, WeightUnit,
};
use potluck_shaders::{NO_SLOT, reference};

use crate::runtime::clock;
use crate::runtime::conversations::Conversations;
use crate::runtime::encode::Encoder;
use crate::runtime::encode_ahead::EncodeAhead;
use crate::runtime::error::EngineError;
use crate::runtime::events::{Event, Inbox};
use crate::runtime::gpu::Gpu;
use crate::runtime::layout::{Key, Layout, Scratch, SlotsOf};
use crate::runtime::memory::{Memory, Slab};
use crate::runtime::model::Model;
use crate::runtime::notify::Notify;
use crate::runtime::pool::named_experts;
use crate::runtime::profile::Profile;
use crate::runtime::queue::Queue;
use crate::runtime::readbacks::Readbacks;
use crate::runtime::recorder::Recorder;
use crate::runtime::recording::Recording;
use crate::runtime::settings::Settings;
use crate::runtime::slots::{ExpertKey, Keep, SlotLoad, Slots};
use crate::runtime::staging::{Piece, Staging, StagingRing};
use crate::runtime::upload_samples::UploadSamples;
use crate::runtime::weights::Weights;

mod continuation;
mod run;

/// The state behind a [`crate::Engine`].
pub struct Core {
    /// The model, its kernels and its weights.
    pub model: Model,
    recording: Recording,
    conversations: Conversations,
    /// Conversations to forget once no waiting work names them.
    forgotten: BTreeSet<ConversationId>,
    queue: Queue,
    readbacks: Readbacks,
    staging: StagingRing,
    /// What was uploaded since it was compared last.
    pub upload_samples: UploadSamples,
    encode_ahead: EncodeAhead,
    inbox: Inbox,
    /// When experts were last asked for, on [`crate::runtime::clock::now`]: somebody's answer waits for them.
    asked: f64,
    /// Dispatches of the most recently submitted work.
    dispatches: u32,
    #[cfg(target_arch = "wasm32")]
    poll_kicks: crate::runtime::poll_kick::PollKicks,
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
        let mut memory = Memory::new(layout);
        let recording = Recording::new(gpu, &mut memory);
        let mut readbacks = Readbacks::new(settings.in_flight);
        readbacks.adjust(gpu, &mut memory);
        Ok(Self {
            recording,
            conversations: Conversations::new(crate::runtime::sizes::page_count(&settings)),
            forgotten: BTreeSet::new(),
            queue: Queue::default(),
            readbacks,
            staging: StagingRing::new(&settings),
            upload_samples: UploadSamples::default(),
            encode_ahead: EncodeAhead::default(),
            inbox: Inbox::default(),
            asked: f64::NEG_INFINITY,
            dispatches: 0,
            #[cfg(target_arch = "wasm32")]
            poll_kicks: crate::runtime::poll_kick::PollKicks::default(),
            model: Model {
                gpu: gpu.clone(),
                spec,
                units,
                settings,
                profile,
                tried: BTreeMap::new(),
                memory,
                weights: Weights::default(),
            },
        })
    }

    /// Changes memory to what `units` and the pool need. Units that stay keep their bytes.
    pub fn hold(&mut self, units: &BTreeSet<WeightUnit>, pool: &PooledExperts) -> Result<Layout, EngineError> {
        self.check_alive()?;
        let Model { gpu, spec, units: map, settings, memory, weights, .. } = &mut self.model;
        let old = memory.layout().clone();
        let limits = &gpu.capabilities().limits;
        let layout = Layout::plan_after(&old.experts, spec, map, (units, pool), settings, limits)?;
        let changed: BTreeSet<BlockIndex> = old
            .experts
            .iter()
            .filter(|(block, places)| layout.experts.get(block).is_none_or(|new| !places.stay_in(new)))
            .map(|(&block, _)| block)
            .collect();
        let renewed = |key: &Key| matches!(key, Key::Experts(SlotsOf::Block(block), ..) if changed.contains(block));
        self.recording.clear();
        self.encode_ahead.clear();
        self.upload_samples.clear();
        let was = memory.adopt(&gpu.device, layout, renewed);
        let layout = memory.layout().clone();
        if (&layout.classes, &layout.pool_slots) != (&old.classes, &old.pool_slots) {
            let slots = Slots::new(layout.classes.clone(), layout.pool_slots.clone());
            weights.set_slots(slots.evicting(settings.eviction));
        }
        weights.hold(units, map, layout.sizes.contains_key(&Key::Table(0)));
        self.move_experts(&old, &layout, &was, &changed);
        drop(was);
        let Model { gpu, spec, memory, .. } = &mut self.model;
        let recurrent = (0..spec.blocks.len()).filter(|block| spec.recurrent(*block).is_some());
        let blocks = units.iter().filter_map(|unit| match unit {
            WeightUnit::TokenMixer(block) => Some(*block),
            _ => None,
        });
        self.conversations.set_blocks(blocks.collect(), recurrent.map(|block| BlockIndex(block as u16)).collect());
        self.readbacks.adjust(gpu, memory);
        self.write_tables();
        Ok((*layout).clone())
    }

    /// Copies the remaining experts from their old slots to their new ones.
    fn move_experts(&self, old: &Layout, new: &Layout, was: &BTreeMap<Key, Rc<Slab>>, changed: &BTreeSet<BlockIndex>) {
        let mut encoder = self.model.gpu.device.create_command_encoder(&Default::default());
        for block in changed {
            let (Some(from), Some(to)) = (old.experts.get(block), new.experts.get(block)) else { continue };
            for ((_, matrix_from), (_, matrix_to)) in from.all().zip(to.all()) {
                for (expert, &slot_to) in &to.slots {
                    let Some(&slot_from) = from.slots.get(expert) else { continue };
                    let (key_from, at_from) = matrix_from.slot(slot_from);
                    let (key_to, at_to) = matrix_to.slot(slot_to);
                    let source = &was[&key_from].buffer;
                    let target = &self.model.memory.slab(key_to).buffer;
                    encoder.copy_buffer_to_buffer(source, at_from, target, at_to, matrix_to.bytes());
                }
            }
        }
        self.model.gpu.queue.submit([encoder.finish()]);
    }

    /// Writes the RoPE tables and slot tables.
    fn write_tables(&mut self) {
        let tables = self.model.memory.slab(Key::Scratch(Scratch::Tables)).clone();
        let write = |offset: u64, values: &[u32]| {
            self.model.gpu.queue.write_buffer(&tables.buffer, offset, bytemuck::cast_slice(values));
        };
        for (block, &offset) in &self.model.memory.layout().rope_table {
            let rope = &self.model.spec.attention(usize::from(block.0)).rope;
            let rope_table = reference::rope_table_of(&rope.frequencies());
            if !rope_table.is_empty() {
                write(offset, &rope_table);
            }
        }
        for (block, places) in &self.model.memory.layout().experts {
            let mut table = vec![NO_SLOT; self.model.expert_count(*block) as usize];
            for (expert, &slot) in &places.slots {
                table[usize::from(expert.0)] = slot;
            }
            write(places.table, &table);
        }
        self.model.write_pool_tables();
        self.model.write_head_tables();
    }

    /// Records kernels after those that are recorded.
    pub fn encoder(&mut self, rec: Recorder) -> Encoder<'_> {
        Encoder::new(&self.model, &mut self.recording, rec)
    }

    /// Pipelines, and what is recorded with them.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// The model and the recording, both to be changed.
    pub fn parts(&mut self) -> (&mut Model, &mut Recording) {
        (&mut self.model, &mut self.recording)
    }

    /// Drops all that was recorded with the kernels in use, because others are from now on.
    pub fn drop_programs(&mut self) {
        self.recording.drop_programs();
        self.encode_ahead.clear();
    }

    /// False if the tensor is resident although its unit is not finished, as with a shared embedding table.
    pub fn needs(&self, unit: WeightUnit, tensor: usize) -> bool {
        let tensor = self.model.units.tensors(unit).get(tensor);
        self.model.weights.needs(unit, tensor.map(|tensor| tensor.role))
    }

    /// Marks a unit as completely uploaded.
    pub fn finish(&mut self, unit: WeightUnit) -> Result<(), EngineError> {
        if let WeightUnit::Expert(block, expert) = unit
            && self.model.weights.slots().has(block)
        {
            return self.model.finish_expert((block, expert));
        }
        self.model.weights.finish(unit)
    }

    /// Marks all held units as missing; their memory stays.
    pub fn invalidate_weights(&mut self) {
        self.upload_samples.clear();
        self.model.weights.invalidate();
        self.model.write_pool_tables();
    }

    /// Sets the total memory budget.
    pub fn set_budget(&mut self, budget: Bytes) {
        self.model.settings.budget = budget;
    }

    /// Experts that work in the engine's queue names: their slots must not change.
    fn needed_experts(&self) -> BTreeSet<ExpertKey> {
        self.queue.waiting().flat_map(|work| named_experts(&work.task)).collect()
    }

    /// Gives an expert of a pooled block a slot.
    pub fn load_expert(&mut self, expert: ExpertKey, keep: Keep) -> Result<SlotLoad, EngineError> {
        self.check_alive()?;
        let needed = self.needed_experts();
        self.model.load_expert(expert, keep, &needed)
    }

    /// Frees the slot of an expert.
    pub fn drop_expert(&mut self, expert: ExpertKey) -> Result<(), EngineError> {
        self.check_alive()?;
        let needed = self.needed_experts();
        self.model.drop_expert(expert, &needed)
    }

    /// What the device keeps of conversations.
    pub fn conversations(&self) -> &Conversations {
        &self.conversations
    }

    /// The same, to be changed.
    pub fn conversations_mut(&mut self) -> &mut Conversations {
        &mut self.conversations
    }

    /// The staging buffers.
    pub fn staging(&self) -> &StagingRing {
        &self.staging
    }

    /// The same, to be changed.
    pub fn staging_mut(&mut self) -> &mut StagingRing {
        &mut self.staging
    }

    /// A staging buffer if one is free now.
    pub fn take_staging(&mut self, notify: &Notify) -> Option<Staging> {
        self.staging.take(&self.model.gpu, notify)
    }

    /// Copies pieces to their tensors. The copies precede any work submitted later.
    pub fn upload(&mut self, staging: &Staging, pieces: &[Piece]) -> Result<(), EngineError> {
        self.check_alive()?;
        staging.check()?;
        let mut copies = Vec::new();
        for piece in pieces {
            self.model.locate(piece, staging.len(), &mut copies)?;
        }
        self.upload_samples.note(&self.model, staging, pieces);
        self.staging.upload(staging, &copies, &self.model.gpu, &self.model.memory);
        Ok(())
    }

    /// Where device callbacks queue their events.
    pub fn inbox(&self) -> &Inbox {
        &self.inbox
    }

    /// Handles an event of the device.
    pub fn handle(&mut self, event: Event) {
        match event {
            Event::Readback(index, mapped) => self.receive(index, mapped),
            Event::Staging(index, true) => self.staging.give_back(index),
            Event::Staging(_, false) => self.model.gpu.mark_lost(),
            Event::Answered => {}
        }
    }

    /// Handles a mapped result.
    fn receive(&mut self, index: usize, mapped: bool) {
        let Some(pending) = self.queue.take_pending(index) else { return };
        let gpu = &self.model.gpu;
        let outcome = if mapped {
            self.readbacks.read(index, pending.bytes, pending.kind, gpu)
        } else {
            gpu.mark_lost();
            Outcome::DeviceLost
        };
        let now = clock::now();
        #[cfg(target_arch = "wasm32")]
        if mapped {
            self.poll_kicks.received(pending.as_oldest(), now);
        }
        self.queue.answer(pending.ticket, outcome, now - pending.started);
    }

    /// Work on its way.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Takes the results that are ready.
    pub fn take_answers(&mut self) -> VecDeque<Computed> {
        self.queue.take_answers()
    }

    /// Fails everything in flight because the device is lost.
    pub fn fail_all(&mut self) {
        self.queue.fail_all();
    }

    /// Cancels work that has not started.
    pub fn cancel(&mut self, ticket: Ticket) -> bool {
        let cancelled = self.queue.cancel(ticket);
        self.forget_due();
        cancelled
    }

    /// Frees what is kept of a conversation, but not before waiting work that uses it: the gap would fail the other conversations of its
    /// batch, too.
    pub fn forget(&mut self, conversation: ConversationId) {
        self.forgotten.insert(conversation);
        self.forget_due();
    }

    fn forget_due(&mut self) {
        if self.forgotten.is_empty() {
            return;
        }
        let needed = self.queue.conversations();
        let (waits, due): (BTreeSet<_>, BTreeSet<_>) =
            std::mem::take(&mut self.forgotten).into_iter().partition(|conversation| needed.contains(conversation));
        self.forgotten = waits;
        due.into_iter().for_each(|conversation| self.conversations.forget(conversation));
    }

    /// When experts were last asked for.
    pub fn asked(&self) -> f64 {
        self.asked
    }

    /// Dispatches of the most recently submitted work.
    pub fn dispatches(&self) -> u32 {
        self.dispatches
    }

    /// Decode steps so far whose commands were already encoded when their input arrived.
    pub fn encoded_in_advance(&self) -> u64 {
        self.encode_ahead.used()
    }

    /// Sends poll kicks if the oldest work in flight is worth it, and no loop does yet. Software adapters get
    /// none.
    #[cfg(target_arch = "wasm32")]
    pub fn begin_kicks(&mut self, notify: &Notify) {
        if self.model.gpu.capabilities().kind == crate::runtime::gpu::AdapterKind::Software {
            return;
        }
        let oldest = self.queue.oldest().map(crate::runtime::queue::Pending::as_oldest);
        if let Some(begun) = self.poll_kicks.begin(oldest, clock::now()) {
            notify.kick(begun);
        }
    }

    /// What a loop that sends poll kicks does next.
    #[cfg(target_arch = "wasm32")]
    pub fn next_kick(&mut self, by: crate::runtime::poll_kick::LoopId) -> crate::runtime::poll_kick::Next {
        let oldest = self.queue.oldest().map(crate::runtime::queue::Pending::as_oldest);
        self.poll_kicks.look(by, oldest, clock::now())
    }

    /// Returns an error if the device is lost.
    pub fn check_alive(&self) -> Result<(), EngineError> {
        if self.model.gpu.lost() { Err(EngineError::Lost) } else { Ok(()) }
    }

    /// Frees all memory on the device.
    pub fn destroy(&mut self) {
        self.recording.clear();
        self.encode_ahead.clear();
        self.model.memory.clear();
        self.readbacks.clear();
        self.staging.close();
        self.model.weights.clear();
    }
}
