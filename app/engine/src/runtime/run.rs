//! From a piece of work to a submit: checks, inputs and kernels.

use std::rc::Rc;

use potluck_plan::{
    BatchToken, BlockIndex, BlockRange, Input, KernelClass, LmHeadRequest, LmHeadTokens, LogitsRequest, Outcome,
    Position, Task, Then, Ticket, Work,
};

use crate::runtime::clock;
use crate::runtime::core::{Core, Event};
use crate::runtime::encode::Batch;
use crate::runtime::error::EngineError;
#[cfg(target_arch = "wasm32")]
use crate::runtime::gpu::AdapterKind;
use crate::runtime::kv_pages::Rows;
use crate::runtime::layout::{Key, Layout, Scratch};
use crate::runtime::memory::Slice;
use crate::runtime::notify::Notify;
use crate::runtime::pieces::{self, Joining};
use crate::runtime::readback::Pending;
use crate::runtime::recorder::{Program, Recorder};
use crate::runtime::sampled_tokens::Choice;
use crate::runtime::sizes::lm_head_tokens;
use crate::runtime::submit::{Copy, ProgramKey, Run, Source, Submitter};

impl Core {
    /// Starts waiting work in order as far as possible. Work that turns out to be impossible is answered with its
    /// error.
    pub fn pump(&mut self, notify: &Notify) {
        while let Some(work) = self.waiting.front() {
            let (ticket, bytes) = (work.ticket, self.result(&work.task).map_or(0, |result| result.bytes()));
            if self.free_readback(bytes).is_none() {
                if self.pending.is_empty() && !self.can_read(bytes) {
                    self.waiting.pop_front();
                    self.answer(ticket, Outcome::Failed("The result does not fit the engine's buffers.".into()), 0.0);
                    continue;
                }
                return;
            }
            let Some(work) = self.waiting.pop_front() else { return };
            let ticket = work.ticket;
            if let Err(error) = self.start(work, notify) {
                let outcome =
                    if error == EngineError::Lost { Outcome::DeviceLost } else { Outcome::Failed(error.to_string()) };
                self.answer(ticket, outcome, 0.0);
            }
        }
    }

    /// Accepts a piece of work: starts it, or queues it behind others.
    pub fn submit(&mut self, work: Work, notify: &Notify) -> Result<(), EngineError> {
        self.check_alive()?;
        let work = Work { task: self.end_at_pool(work.task), ..work };
        self.check(&work.task)?;
        if matches!(work.task, Task::Experts { .. }) {
            self.asked = clock::now();
        }
        // Also if some are missing: loading those must not evict the others.
        self.touch_experts(&work.task);
        if let Some(missing) = self.missing_experts(&work.task) {
            self.answer(work.ticket, missing, 0.0);
            notify.event(Event::Answered);
            return Ok(());
        }
        self.use_experts(&work.task);
        let max = self.tokens_at_once(&work.task)?;
        if rows_of(&work.task) > max {
            let ticket = work.ticket;
            let pieces = pieces::cut(work.task, max);
            self.joining.insert(ticket, Joining::new(pieces.len()));
            self.waiting.extend(pieces.into_iter().map(|task| Work { ticket, task }));
            self.pump(notify);
            return Ok(());
        }
        let bytes = self.result(&work.task)?.bytes();
        if !self.waiting.is_empty() || self.free_readback(bytes).is_none() {
            if !self.can_read(bytes) {
                return Err(EngineError::TooManyRows {
                    rows: rows_of(&work.task),
                    max: self.max_batch_tokens(KernelClass::Prefill),
                });
            }
            self.waiting.push_back(work);
            return Ok(());
        }
        self.start(work, notify)
    }

    /// Cancels work that has not started.
    pub fn cancel(&mut self, ticket: Ticket) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|work| work.ticket != ticket);
        let dropped = before - self.waiting.len();
        (0..dropped).for_each(|_| self.answer(ticket, Outcome::Cancelled, 0.0));
        dropped > 0
    }

    /// Encodes and submits. On error nothing changes.
    fn start(&mut self, work: Work, notify: &Notify) -> Result<(), EngineError> {
        self.check_alive()?;
        self.check(&work.task)?;
        if let Some(missing) = self.missing_experts(&work.task) {
            self.answer(work.ticket, missing, 0.0);
            notify.event(Event::Answered);
            return Ok(());
        }
        let started = crate::runtime::clock::now();
        let result = self.result(&work.task)?;
        let bytes = result.bytes();
        let max = self.max_batch_tokens(KernelClass::Prefill);
        let index = self.free_readback(bytes).ok_or(EngineError::TooManyRows { rows: max + 1, max })?;
        let target = self.readbacks[index].slab.buffer.clone();
        #[cfg(target_arch = "wasm32")]
        let poll_kicked = self.wants_poll_kicks(&work.task);
        let mut encoded = None;
        let runs = match work.task {
            Task::Forward { batch: rows, class, input, blocks, then } => {
                let program = self.forward(&rows, class, &input, blocks, then)?;
                encoded = self.encode_ahead.take(&program, reach(&rows), &result.parts, &target);
                self.encode_ahead.expect(&program, reach(&rows), &result.parts, bytes);
                let after = self.copies(&result.parts, &target, 0);
                vec![Run { before: Vec::new(), program, reach: reach(&rows), after }]
            }
            Task::Continue { row, token, steps, sampling } => {
                self.continue_decode(row, token, steps, sampling, &result.parts, &target)?
            }
            Task::Experts { block, class, normed, experts } => {
                self.write(Scratch::Normed, 0, bytemuck::cast_slice(&normed));
                self.write_chosen(block, &experts)?;
                let batch = Batch { n: experts.len() as u32, class };
                let key = ProgramKey::Experts { n: batch.n, block };
                let program = self.program(class, key, |core, rec, layout| core.experts(rec, layout, block, batch))?;
                let after = self.copies(&result.parts, &target, 0);
                vec![Run { before: Vec::new(), program, reach: 0, after }]
            }
        };
        let submission = match encoded {
            Some(commands) => self.gpu.queue.submit([commands]),
            None => {
                let max = self.profile.max_submit_bytes();
                Submitter::new(&self.gpu.device, &self.gpu.queue, &self.uniforms.buffer, max).submit(&runs)
            }
        };
        self.dispatches = runs.iter().map(|run| run.program.dispatches(run.reach)).sum();
        self.readbacks[index].busy = true;
        let (ticket, kind) = (work.ticket, result.kind);
        #[cfg(target_arch = "wasm32")]
        if poll_kicked {
            notify.kick(ticket);
        }
        self.pending.push_back(Pending {
            ticket,
            readback: index,
            bytes,
            kind,
            started,
            working: self.gpu.usage().begin(),
            #[cfg(target_arch = "wasm32")]
            poll_kicked,
            submission,
        });
        let notify = notify.clone();
        target.map_async(wgpu::MapMode::Read, ..bytes, move |mapped| {
            notify.event(Event::Readback(index, mapped.is_ok()));
        });
        Ok(())
    }

    /// Whether to send poll kicks: for a decode step with nothing else in flight, and never on a software adapter.
    #[cfg(target_arch = "wasm32")]
    fn wants_poll_kicks(&self, task: &Task) -> bool {
        let decodes = match task {
            Task::Forward { class, .. } | Task::Experts { class, .. } => *class == KernelClass::Decode,
            Task::Continue { .. } => false,
        };
        decodes && self.pending.is_empty() && self.gpu.capabilities().kind != AdapterKind::Software
    }

    /// The cached program of a decode step; any other task is recorded anew.
    pub fn program(
        &mut self,
        class: KernelClass,
        key: ProgramKey,
        record: impl FnOnce(&mut Core, &mut Recorder, &Layout) -> Result<(), EngineError>,
    ) -> Result<Rc<Program>, EngineError> {
        if let (KernelClass::Decode, Some(kept)) = (class, self.programs.get(&key)) {
            return Ok(kept);
        }
        let layout = self.layout.clone();
        let mut rec = Recorder::default();
        record(self, &mut rec, &layout)?;
        let program = rec.finish();
        Ok(match class {
            KernelClass::Decode => self.programs.keep(&self.gpu.queue, &self.uniforms.buffer, key, program),
            KernelClass::Prefill => Rc::new(program),
        })
    }

    /// Places the batch in the KV cache, writes its inputs, and finds or records its program.
    pub(crate) fn forward(
        &mut self,
        rows: &[BatchToken],
        class: KernelClass,
        input: &Input,
        blocks: BlockRange,
        then: Then,
    ) -> Result<Rc<Program>, EngineError> {
        let batch = Batch { n: rows.len() as u32, class };
        let mut touched: Vec<BlockIndex> = blocks.iter().collect();
        if let Then::Route(block) = then {
            touched.push(block);
        }
        if !touched.is_empty() {
            let placed = self.pages.place(rows, &touched, class, Rows::Together)?;
            self.write(Scratch::Rows, 0, bytemuck::cast_slice(&placed.rows));
            self.write(Scratch::KvPages, 0, bytemuck::cast_slice(&placed.table));
        }
        let from = match input {
            Input::Tokens(tokens) => {
                self.write(Scratch::Tokens, 0, bytemuck::cast_slice(tokens));
                Source::Tokens
            }
            Input::Hidden(values) => {
                self.write(Scratch::Hidden, 0, bytemuck::cast_slice(values));
                Source::Hidden
            }
            Input::Experts(outputs) => {
                self.write_outputs(outputs)?;
                Source::Experts(outputs.block)
            }
        };
        let last = rows[rows.len() - 1];
        let samples = matches!(then, Then::LmHead(LmHeadRequest { logits: LogitsRequest::Top(_), .. }));
        // A conversation keeps its slot from token to token, so that its program stays the same.
        rows.iter().filter(|row| !samples || row.conversation != last.conversation).for_each(|row| {
            self.sampled_tokens.forget(row.conversation);
        });
        let slot = if samples { self.sampled_tokens.slot(last.conversation) } else { 0 };
        let key = ProgramKey::Forward { n: batch.n, from, blocks, then, slot };
        let program = self.program(class, key, |core, rec, layout| {
            match from {
                Source::Tokens => core.embed(rec, layout, &core.scratch(Scratch::Tokens), batch)?,
                Source::Hidden => {}
                Source::Experts(block) => core.combine(rec, layout, block, batch)?,
            }
            core.record_forward(rec, layout, batch, blocks, then, slot)
        })?;
        if samples {
            self.sampled_tokens.keep(slot, Position(last.position.0 + 1), Choice::Best);
        }
        Ok(program)
    }

    /// Blocks and what follows them, from the hidden vectors on.
    pub fn record_forward(
        &mut self,
        rec: &mut Recorder,
        layout: &Layout,
        batch: Batch,
        blocks: BlockRange,
        then: Then,
        slot: usize,
    ) -> Result<(), EngineError> {
        for block in blocks.iter() {
            self.token_mixer(rec, layout, block, batch)?;
            if self.expert_count(block) == 0 {
                self.dense(rec, layout, block, batch)?;
            } else {
                self.route(rec, layout, block, batch)?;
                self.experts_added(rec, layout, block, batch)?;
            }
        }
        match then {
            Then::Nothing | Then::Hidden => {}
            Then::Route(block) => {
                self.token_mixer(rec, layout, block, batch)?;
                self.route(rec, layout, block, batch)?;
            }
            Then::LmHead(request) => {
                let (first, n) = if request.tokens == LmHeadTokens::Last { (batch.n - 1, 1) } else { (0, batch.n) };
                let max = lm_head_tokens(&self.settings);
                for done in (0..n).step_by(max as usize) {
                    let some = max.min(n - done);
                    self.logits(rec, layout, first + done, some)?;
                    if let LogitsRequest::Top(count) = request.logits {
                        self.select_candidates(rec, (done, some), u32::from(count), slot);
                    }
                }
            }
        }
        Ok(())
    }

    /// Copies parts of scratch buffers to consecutive offsets starting at `at`.
    pub(crate) fn copies(&self, parts: &[(Scratch, u64, u64)], target: &wgpu::Buffer, mut at: u64) -> Vec<Copy> {
        parts
            .iter()
            .map(|&(scratch, offset, size)| {
                let slab = self.memory.slab(Key::Scratch(scratch.home())).clone();
                let copy = Copy { from: Slice { slab, offset, size }, to: target.clone(), at };
                at += size;
                copy
            })
            .collect()
    }

    /// Writes to a scratch buffer, from byte `at` on.
    pub(crate) fn write(&self, scratch: Scratch, at: u64, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.gpu.queue.write_buffer(&self.scratch(scratch).slab.buffer, at, bytes);
        }
    }
}

/// One past the last position in the batch.
fn reach(rows: &[BatchToken]) -> u32 {
    rows.iter().map(|row| row.position.0 + 1).max().unwrap_or(0)
}

/// Number of tokens in a task.
pub fn rows_of(task: &Task) -> usize {
    match task {
        Task::Forward { batch: rows, .. } => rows.len(),
        Task::Continue { .. } => 1,
        Task::Experts { experts, .. } => experts.len(),
    }
}
