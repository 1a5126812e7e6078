//! From a piece of work to a submit: checks, inputs and kernels.

use std::rc::Rc;

use potluck_plan::{
    BatchToken, BiasedTokens, BlockIndex, BlockRange, Input, KernelClass, Outcome, Position, Task, Then, Work,
};

use crate::runtime::clock;
use crate::runtime::core::Core;
use crate::runtime::encode::{Batch, Encoder};
use crate::runtime::encode_ahead::Parts;
use crate::runtime::error::EngineError;
use crate::runtime::events::Event;
use crate::runtime::kv_pages::Rows;
use crate::runtime::layout::Scratch;
use crate::runtime::model::Model;
use crate::runtime::notify::Notify;
use crate::runtime::pieces::{self, rows_of};
use crate::runtime::queue::Pending;
use crate::runtime::recorder::{Program, Recorder};
use crate::runtime::sampled_tokens::Choice;
#[cfg(target_arch = "wasm32")]
use crate::runtime::step_times::StepKind;
use crate::runtime::submit::{ProgramKey, Run, Source, Submitter};

impl Core {
    /// Starts waiting work in order as far as possible. Work that turns out to be impossible is answered with its
    /// error.
    pub fn pump(&mut self, notify: &Notify) {
        while let Some(work) = self.queue.next() {
            let (ticket, bytes) = (work.ticket, self.model.result(&work.task).map_or(0, |result| result.bytes()));
            if self.free_readback(bytes).is_none() {
                if !self.queue.has_pending() && !self.can_read(bytes) {
                    self.queue.take_next();
                    self.queue.answer(
                        ticket,
                        Outcome::Failed("The result does not fit the engine's buffers.".into()),
                        0.0,
                    );
                    self.forget_due();
                    continue;
                }
                return;
            }
            let Some(work) = self.queue.take_next() else { return };
            let ticket = work.ticket;
            if let Err(error) = self.start(work, notify) {
                let outcome =
                    if error == EngineError::Lost { Outcome::DeviceLost } else { Outcome::Failed(error.to_string()) };
                self.queue.answer(ticket, outcome, 0.0);
            }
            self.forget_due();
        }
    }

    /// Finds a free readback buffer for a result.
    fn free_readback(&mut self, bytes: u64) -> Option<usize> {
        let Model { gpu, memory, .. } = &mut self.model;
        let before = self.readbacks.bytes();
        let free = self.readbacks.free(bytes, gpu, memory);
        if self.readbacks.bytes() != before {
            // A buffer became larger: nothing may hold on to the smaller one.
            self.encode_ahead.clear();
        }
        free
    }

    /// Whether some readback buffer has room for a result, or may get it.
    fn can_read(&self, bytes: u64) -> bool {
        self.readbacks.can_read(bytes, self.model.memory.layout())
    }

    fn submitter(&self) -> Submitter<'_> {
        let Model { gpu, profile, .. } = &self.model;
        Submitter::new(&gpu.device, &gpu.queue, self.recording.arena(), profile.max_submit_bytes())
    }

    /// Encodes steps that are expected, unless work waits. Only a few at a time, because messages wait meanwhile; those that have been
    /// expected for longest come first, because they come again first.
    pub fn encode_next(&mut self) {
        const AT_ONCE: usize = 2;
        for _ in 0..AT_ONCE {
            if self.queue.has_waiting() || self.model.gpu.lost() {
                return;
            }
            let Some(next) = self.encode_ahead.take_next() else { return };
            // Where nothing else is in flight, its result will come in the first buffer that has room.
            let Some(target) = self.readbacks.first(next.bytes()).cloned() else { continue };
            let after = self.model.copies(&next.parts, &target, 0);
            let run = Run { before: Vec::new(), program: next.program.clone(), reach: next.reach, after };
            let Some(commands) = self.submitter().encode(&run) else { continue };
            self.encode_ahead.keep(next, target, commands);
        }
    }

    /// Accepts a piece of work: starts it, or queues it behind others.
    pub fn submit(&mut self, work: Work, notify: &Notify) -> Result<(), EngineError> {
        self.check_alive()?;
        let work = Work { task: self.model.end_at_pool(work.task), ..work };
        self.model.check(&work.task)?;
        if matches!(work.task, Task::Experts { .. }) {
            self.asked = clock::now();
        }
        // Also if some are missing: loading those must not evict the others.
        self.model.touch_experts(&work.task);
        if let Some(missing) = self.model.missing_experts(&work.task) {
            self.queue.answer(work.ticket, missing, 0.0);
            notify.event(Event::Answered);
            return Ok(());
        }
        self.model.use_experts(&work.task);
        let max = self.model.tokens_at_once(&work.task)?;
        if rows_of(&work.task) > max {
            let ticket = work.ticket;
            let pieces = pieces::cut(work.task, max);
            self.queue.wait_for_pieces(ticket, pieces);
            self.pump(notify);
            return Ok(());
        }
        let bytes = self.model.result(&work.task)?.bytes();
        if self.queue.has_waiting() || self.free_readback(bytes).is_none() {
            if !self.can_read(bytes) {
                return Err(EngineError::TooManyRows {
                    rows: rows_of(&work.task),
                    max: self.model.max_batch_tokens(KernelClass::Prefill),
                });
            }
            self.queue.wait(work);
            return Ok(());
        }
        self.start(work, notify)
    }

    /// Encodes and submits. On error nothing changes.
    fn start(&mut self, work: Work, notify: &Notify) -> Result<(), EngineError> {
        self.check_alive()?;
        self.model.check(&work.task)?;
        if let Some(missing) = self.model.missing_experts(&work.task) {
            self.queue.answer(work.ticket, missing, 0.0);
            notify.event(Event::Answered);
            return Ok(());
        }
        let started = crate::runtime::clock::now();
        let result = self.model.result(&work.task)?;
        let bytes = result.bytes();
        let max = self.model.max_batch_tokens(KernelClass::Prefill);
        let index = self.free_readback(bytes).ok_or(EngineError::TooManyRows { rows: max + 1, max })?;
        let target = self.readbacks.buffer(index).clone();
        #[cfg(target_arch = "wasm32")]
        let step = StepKind::of(&work.task);
        let mut encoded = None;
        let runs = match work.task {
            Task::Forward { batch: rows, class, input, blocks, then, biases } => {
                let program = self.forward(&rows, class, &input, blocks, (then, &biases))?;
                encoded = self.take_encoded(&program, reach(&rows), &result.parts, &target);
                let after = self.model.copies(&result.parts, &target, 0);
                vec![Run { before: Vec::new(), program, reach: reach(&rows), after }]
            }
            Task::Continue { row, token, steps, sampling } => {
                self.continue_decode(row, token, steps, sampling, &result.parts, &target)?
            }
            Task::Experts { block, class, normed, experts, sum } => {
                self.model.write(Scratch::Normed, 0, bytemuck::cast_slice(&normed));
                self.model.write_chosen(block, &experts)?;
                let batch = Batch { n: experts.len() as u32, class };
                let key = ProgramKey::Experts { n: batch.n, block, sums: sum.is_some() };
                let (program, parts) = match sum {
                    Some(weights) => {
                        self.model.write_gates(block, weights.iter().map(|weights| weights.iter().copied()))?;
                        (self.program(class, key, |encoder| encoder.expert_sums(block, batch))?, result.parts)
                    }
                    None => {
                        let program = self.program(class, key, |encoder| encoder.experts(block, batch))?;
                        let parts = self.model.copied_outputs(block, &experts, result.parts, target.size())?;
                        (program, parts)
                    }
                };
                encoded = self.take_encoded(&program, 0, &parts, &target);
                let after = self.model.copies(&parts, &target, 0);
                vec![Run { before: Vec::new(), program, reach: 0, after }]
            }
        };
        let submission = match encoded {
            Some(commands) => self.model.gpu.queue.submit([commands]),
            None => self.submitter().submit(&runs),
        };
        self.dispatches = runs.iter().map(|run| run.program.dispatches(run.reach)).sum();
        self.readbacks.begin(index);
        let (ticket, kind) = (work.ticket, result.kind);
        self.queue.begin(Pending {
            ticket,
            readback: index,
            bytes,
            kind,
            started,
            working: self.model.gpu.usage().begin(),
            #[cfg(target_arch = "wasm32")]
            step,
            submission,
        });
        #[cfg(target_arch = "wasm32")]
        self.begin_kicks(notify);
        let notify = notify.clone();
        target.map_async(wgpu::MapMode::Read, ..bytes, move |mapped| {
            notify.event(Event::Readback(index, mapped.is_ok()));
        });
        Ok(())
    }

    /// The commands of a step if they are encoded already. Once it is answered, those of the next one will be.
    fn take_encoded(
        &mut self,
        program: &Rc<Program>,
        reach: u32,
        parts: &Parts,
        target: &wgpu::Buffer,
    ) -> Option<wgpu::CommandBuffer> {
        let encoded = self.encode_ahead.take(program, reach, parts, target);
        self.encode_ahead.expect(program, reach, parts);
        encoded
    }

    /// The cached program of a decode step; any other task is recorded anew.
    pub fn program(
        &mut self,
        class: KernelClass,
        key: ProgramKey,
        record: impl FnOnce(&mut Encoder<'_>) -> Result<(), EngineError>,
    ) -> Result<Rc<Program>, EngineError> {
        if let Some(kept) = self.recording.cached(class, &key) {
            return Ok(kept);
        }
        let mut encoder = self.encoder(Recorder::default());
        record(&mut encoder)?;
        let program = encoder.finish();
        Ok(self.recording.keep(class, key, program))
    }

    /// Places the batch in the KV cache, writes its inputs, and finds or records its program.
    pub(crate) fn forward(
        &mut self,
        rows: &[BatchToken],
        class: KernelClass,
        input: &Input,
        blocks: BlockRange,
        (then, biases): (Then, &[BiasedTokens]),
    ) -> Result<Rc<Program>, EngineError> {
        let batch = Batch { n: rows.len() as u32, class };
        let mut touched: Vec<BlockIndex> = blocks.iter().collect();
        if let Then::Route(block) = then {
            touched.push(block);
        }
        if !touched.is_empty() {
            let placed = self.conversations.place(rows, &touched, class, Rows::Together)?;
            self.model.write(Scratch::Rows, 0, bytemuck::cast_slice(&placed.rows));
            self.model.write(Scratch::KvPages, 0, bytemuck::cast_slice(&placed.table));
        }
        let from = match input {
            Input::Tokens(tokens) => {
                self.model.write(Scratch::Tokens, 0, bytemuck::cast_slice(tokens));
                Source::Tokens
            }
            Input::Hidden(values) => {
                self.model.write(Scratch::Hidden, 0, bytemuck::cast_slice(values));
                Source::Hidden
            }
            Input::Experts(outputs) => {
                self.model.write_outputs(outputs)?;
                Source::Experts(outputs.block)
            }
        };
        let last = rows[rows.len() - 1];
        let changes = self.model.write_changes(rows.len(), then, biases);
        let samples = matches!(then, Then::LmHead(request) if request.logits.candidates().is_some());
        // A conversation keeps its slot from token to token, so that its program stays the same.
        rows.iter().filter(|row| !samples || row.conversation != last.conversation).for_each(|row| {
            self.conversations.sampled_tokens().forget(row.conversation);
        });
        let slot = if samples { self.conversations.sampled_tokens().slot(last.conversation) } else { 0 };
        let key = ProgramKey::Forward { n: batch.n, from, blocks, then, changes, slot };
        let program = self.program(class, key, |encoder| {
            match from {
                Source::Tokens => encoder.embed(&encoder.model().scratch(Scratch::Tokens), batch)?,
                Source::Hidden => {}
                Source::Experts(block) => encoder.combine(block, batch)?,
            }
            encoder.record_forward(batch, blocks, then, changes, slot)
        })?;
        if samples {
            self.conversations.sampled_tokens().keep(slot, Position(last.position.0 + 1), Choice::Best);
        }
        Ok(program)
    }
}

/// One past the last position in the batch.
fn reach(rows: &[BatchToken]) -> u32 {
    rows.iter().map(|row| row.position.0 + 1).max().unwrap_or(0)
}
