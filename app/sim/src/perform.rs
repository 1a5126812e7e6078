//! Performs actions like a driver, on the virtual clock.

use std::collections::BTreeSet;
use std::sync::Arc;

use potluck_plan::{
    BatchToken, BlockIndex, BlockRange, Bytes, Computed, ConversationId, ExpertId, Input, KernelClass, LmHeadRequest,
    LmHeadTokens, LogitsRequest, ModelId, Outcome, PlanEpoch, PooledExperts, Position, Task, Then, WeightUnit, Work,
};
use potluck_planner::measures::{MIN_RUNS, RUNS};
use potluck_protocol::{
    AnswerPart, CalibrationRuns, ExpertHint, Frame, LoadFault, LoadPhase, LoadReport, ModelCard, ModelSource,
};
use potluck_swarm::{Action, Event, LoadRequest, OpenedModel, resident_bytes};

use super::engine::{GAP, NO_STATE, OUT_OF_PAGES, SimEngine, SimModel};
use super::fault::{Endless, TRICKLE_MILLIS};
use super::language::Bytewise;
use super::peer::SimPeer;
use super::protection;
use super::world::{Scheduled, World};

/// Tokens of a chunk when a device is timed.
const CHUNK: u32 = 64;
/// A device on which a few blocks take longer is timed with fewer runs, and not with a chunk.
const QUICK_MILLIS: f64 = 8.0;
/// A page needs this long to keep renewed keys.
const KEEP_MILLIS: f64 = 20.0;
/// Milliseconds to read a model's header.
const OPEN_MILLIS: f64 = 5.0;

impl World {
    pub(super) fn perform(&mut self, index: usize, action: Action) {
        match action {
            Action::Send { to, frame } => {
                self.check_claim(index, &frame);
                self.check_words(index, to, &frame);
                if let (true, Frame::ExpertCall(call)) = (self.misleads, &frame) {
                    let hint = self.wrong_hint(call.epoch);
                    self.send(index, to, hint);
                }
                if let Some((to, lie)) = self.of_the_next_plan(index, &frame) {
                    self.send(index, to, lie);
                }
                self.note_text(index, &frame);
                for frame in self.falsified(index, frame) {
                    self.send(index, to, frame);
                }
            }
            Action::OpenModel(source) => {
                let model = Arc::new(opened(&self.model, source));
                self.schedule(self.now + OPEN_MILLIS, index, Scheduled::Event(Event::ModelOpened(model)));
            }
            Action::Calibrate { model, .. } => {
                self.check_protection(index, None);
                self.calibrate(index, model.id);
            }
            Action::Load(load) => {
                self.check_protection(index, Some(&load.units));
                self.check_load_of_ends(index, &load.units);
                self.load(index, load);
            }
            Action::Unload => {
                self.peers[index].interrupt_load(&self.model, self.now);
                self.peers[index].engine = SimEngine::default();
            }
            Action::Expect => self.peers[index].expecting += 1,
            Action::Foresee(wanted) => self.shadow.iter_mut().for_each(|shadow| shadow.is_wanted(wanted)),
            Action::Compute(work) => {
                self.foresee(index, &work.task);
                self.check_work_on_ends(index, &work.task);
                self.compute(index, &work);
            }
            // Allowed: that work runs nevertheless, and that its result is nobody's.
            Action::Cancel(_) => self.peers[index].cancelled += 1,
            Action::LoadAhead(experts) => {
                let peer = &mut self.peers[index];
                let absent = peer.engine.slots_mut().load_ahead(&experts);
                let millis = self.loading_millis(index, &absent);
                let peer = &mut self.peers[index];
                peer.guessed += absent.len() as u64;
                peer.engine_free = peer.engine_free.max(self.now) + millis;
            }
            Action::WakeAt(at) => self.schedule(at.0, index, Scheduled::Event(Event::Wake)),
            Action::Forget(conversation) => self.peers[index].engine.forget(conversation),
            Action::Answer(request, part) => {
                let (now, ended) = (self.now, matches!(part, AnswerPart::End { .. }));
                let tokens = self.peers[index].answers.entry(request).or_default().record(part, now);
                self.timeline.tokens(now, tokens as u32);
                if ended {
                    self.continue_chat(index, request);
                }
            }
            Action::Admitted(peer) => {
                if let Some(with) = self.peers.iter().position(|known| known.id == peer) {
                    self.share_secret(index, with, false);
                }
            }
            Action::Regroup(generation) => {
                self.peers[index].group = Some(generation);
                self.regroup();
            }
            Action::Renewed { link, generation } => {
                (self.peers[index].link, self.peers[index].group) = (link, Some(generation));
                self.tell_links(index);
            }
            Action::GiveRenewed(peer) => {
                if let Some(with) = self.peers.iter().position(|known| known.id == peer) {
                    self.share_secret(index, with, true);
                }
            }
            // Renewed keys take a moment to be kept; nobody may have them before.
            Action::DoorsChanged(doors) if doors.link != self.peers[index].doors.link => {
                self.schedule(self.now + KEEP_MILLIS, index, Scheduled::Kept(doors));
            }
            Action::DoorsChanged(doors) => {
                self.peers[index].doors = *doors;
                self.tell_links(index);
            }
            Action::TakeOver(succession) => self.take_over(index, &succession),
            Action::StepDown => self.step_down(index),
            Action::Close { reason } => {
                self.peers[index].closed = reason;
                self.hang_up(index);
            }
            _ => {}
        }
    }

    /// The peers whose devices are the same GPU, itself among them. They come within moments, so all are timed at once.
    fn on_gpu_of(&self, index: usize) -> impl Iterator<Item = usize> {
        let gpu = self.peers[index].device.gpu;
        let shares = move |(other, peer): (usize, &SimPeer)| {
            (other == index || gpu.is_some() && peer.device.gpu == gpu).then_some(other)
        };
        self.peers.iter().enumerate().filter_map(shares)
    }

    /// Times ranges like a device: with its noise, one run after the other, and after what it loads.
    fn calibrate(&mut self, index: usize, model: ModelId) {
        let (short, long) = (BlockRange::new(0, 1), BlockRange::new(0, self.model.blocks.min(3)));
        let mut spent = 0.0;
        let sharing = self.on_gpu_of(index).count() as f64;
        let mut runs = |class: KernelClass, tokens: u32, blocks: BlockRange, then: Then| -> Vec<f64> {
            let row = |position| BatchToken { conversation: ConversationId(0), position: Position(position) };
            let batch: Vec<BatchToken> = (0..tokens).map(row).collect();
            let input = Input::Hidden(Vec::new());
            let task = Task::Forward { batch, class, input, blocks, then, biases: Vec::new() };
            let peer = &self.peers[index];
            let millis = peer.device.millis(&self.model, &task) * peer.slowed * sharing;
            let run = |_| {
                let noise = 1.0 + peer.device.noise * (2.0 * self.random.unit() - 1.0);
                spent += millis * noise;
                millis * noise
            };
            (0..if millis < QUICK_MILLIS { RUNS } else { MIN_RUNS }).map(run).collect()
        };
        let lm_head = Then::LmHead(LmHeadRequest { tokens: LmHeadTokens::Last, logits: LogitsRequest::Top(1) });
        let decode_long = runs(KernelClass::Decode, 1, long, Then::Hidden);
        let quick = decode_long.iter().all(|millis| *millis < QUICK_MILLIS);
        let mut chunk =
            |blocks| if quick { runs(KernelClass::Prefill, CHUNK, blocks, Then::Hidden) } else { Vec::new() };
        let (prefill_short, prefill_long) = (chunk(short), chunk(long));
        let calibration = CalibrationRuns {
            short,
            long,
            decode_short: runs(KernelClass::Decode, 1, short, Then::Hidden),
            decode_long,
            decode_lm_head: runs(KernelClass::Decode, 1, short, lm_head),
            decode_paused: Vec::new(),
            short_paused: Vec::new(),
            lm_head_paused: Vec::new(),
            pauses_follow: false,
            chunk: CHUNK,
            prefill_short,
            prefill_long,
        };
        let at = self.peers[index].load_ends(&self.model).max(self.now) + spent;
        self.schedule(at, index, Scheduled::Event(Event::Calibrated(model, Ok(calibration))));
    }

    fn load(&mut self, index: usize, load: LoadRequest) {
        let peer = &mut self.peers[index];
        peer.interrupt_load(&self.model, self.now);
        let millis = peer.device.load_millis(&self.model, &load.units, peer.engine.resident(), &peer.stored);
        let wanted: Vec<WeightUnit> =
            load.units.iter().filter(|unit| peer.engine.resident().contains(unit)).copied().collect();
        peer.engine.set_resident(&wanted, &PooledExperts::default());
        peer.loads += 1;
        let number = peer.loads;
        let endless = peer.next_load.take();
        peer.trickles = (endless == Some(Endless::Trickling)).then_some(self.now);
        if endless.is_some() {
            // It never completes.
            peer.load = Some((load, f64::INFINITY));
            return;
        }
        peer.load = Some((load, self.now));
        self.schedule(self.now + millis, index, Scheduled::Loaded(number));
    }

    /// Reports the progress of a device's load, as a driver does.
    pub(super) fn report_progress(&mut self, index: usize) {
        let peer = &self.peers[index];
        let is_heard_of = |since: f64| since.is_finite() || peer.trickles.is_some();
        let Some((load, since)) = peer.load.as_ref().filter(|(_, since)| is_heard_of(*since)) else { return };
        let ends = peer.load_ends(&self.model);
        let resident = peer.engine.resident();
        let missing: Bytes = load
            .units
            .iter()
            .filter(|unit| !resident.contains(unit))
            .map(|unit| self.model.shape().unit_bytes(*unit))
            .sum();
        let share = if ends > *since { ((self.now - since) / (ends - since)).min(1.0) } else { 1.0 };
        let done = match peer.trickles {
            Some(since) => (self.now - since) / TRICKLE_MILLIS,
            None => missing.0 as f64 * share,
        };
        let report = LoadReport {
            phase: LoadPhase::Download,
            done: Bytes(done as u64),
            total: missing,
            rate: peer.device.download,
            cached: Bytes::ZERO,
            waits: 0,
        };
        let (epoch, used) = (load.epoch, resident_bytes(&self.model.shape(), &load.units, load.context));
        self.event(index, Event::LoadProgress { epoch, report, used });
    }

    pub(super) fn loaded(&mut self, index: usize, number: u64) {
        let peer = &mut self.peers[index];
        // A newer load replaces an older one.
        let Some((load, _)) = peer.load.take_if(|_| peer.loads == number) else { return };
        let epoch = load.epoch;
        let shapes = self.model.shapes();
        let Some(shape) = shapes.iter().find(|shape| shape.kv_cache == load.kv_cache) else { return };
        let slots = shape.pooled_bytes(&load.pool);
        let bytes = resident_bytes(shape, &load.units, load.context).saturating_add(slots);
        if bytes > load.budget {
            self.violation = Some(format!("device {index} was told to hold {bytes} of {} for {epoch:?}", load.budget));
            return;
        }
        let keys = |unit: &WeightUnit| match unit {
            WeightUnit::TokenMixer(block) => shape.blocks[usize::from(block.0)].kv_cache_per_position.0 / 2,
            _ => 0,
        };
        let unseen = load.units.iter().any(|unit| keys(unit) * u64::from(load.context) > peer.device.binding);
        if unseen {
            self.violation = Some(format!("device {index} was told to hold keys that its kernels do not see"));
            return;
        }
        let needed = bytes.saturating_add(Bytes(peer.device.padding));
        if needed > load.budget {
            let sentence = format!("This share needs {needed} of GPU memory, {} are set.", load.budget);
            self.event(index, Event::LoadFailed(epoch, LoadFault::NoRoom(sentence)));
            return;
        }
        peer.engine.set_resident(&load.units, &load.pool);
        peer.stored.extend(&load.units);
        self.event(index, Event::Loaded(epoch));
    }

    /// Loads experts into slots: from the device's storage, if it had them before.
    fn loading_millis(&mut self, index: usize, experts: &[(BlockIndex, ExpertId)]) -> f64 {
        let units: Vec<WeightUnit> =
            experts.iter().map(|(block, expert)| WeightUnit::Expert(*block, *expert)).collect();
        let peer = &mut self.peers[index];
        let millis = peer.device.load_millis(&self.model, &units, &BTreeSet::new(), &peer.stored);
        peer.stored.extend(&units);
        millis
    }

    /// A hint that names any experts at all, some of which do not exist.
    fn wrong_hint(&mut self, epoch: PlanEpoch) -> Frame {
        let (blocks, experts) = (u64::from(self.model.blocks) + 1, u64::from(self.model.experts) + 2);
        let mut random = || (BlockIndex(self.random.below(blocks) as u16), ExpertId(self.random.below(experts) as u16));
        let count = 6;
        Frame::ExpertHint(ExpertHint { epoch, experts: (0..count).map(|_| random()).collect() })
    }

    /// What the host's shadow says while a token's first blocks are computed.
    fn foresee(&mut self, index: usize, task: &Task) {
        let Task::Forward { batch, class, input: Input::Tokens(_), .. } = task else { return };
        let (Some(shadow), [first, ..]) = (self.shadow.as_mut().filter(|_| index == 0), &batch[..]) else { return };
        let conversation = first.conversation;
        for (word, at) in shadow.words(&self.model, *class, batch, self.now) {
            self.schedule(at, index, Scheduled::Event(Event::Foreseen(conversation, word)));
        }
    }

    /// One queue a device: its state changes in the order of submission, results come when their time is over. An engine that
    /// shares its GPU measures its wait for the others, too.
    fn compute(&mut self, index: usize, work: &Work) {
        let noise = self.random.unit();
        let peer = &mut self.peers[index];
        peer.engine.samples_otherwise = peer.device.samples_otherwise;
        let mut outcome = peer.engine.run(&self.model, work);
        let missed = peer.engine.slots_mut().take_missed();
        peer.missed += missed.len() as u64;
        let loading = self.loading_millis(index, &missed);
        let peer = &mut self.peers[index];
        if let Some(wrong) = peer.wrong {
            wrong.corrupt(&mut outcome, &mut self.random);
        }
        if outcome == Outcome::Failed(OUT_OF_PAGES.into()) {
            self.violation = Some(format!("device {index} was given more rows than it has pages for"));
        }
        if outcome == Outcome::Failed(GAP.into()) {
            let what = || format!("device {index} was told to go on behind positions that it has not computed");
            self.violation.get_or_insert_with(what);
        }
        if outcome == Outcome::Failed(NO_STATE.into()) {
            self.violation = Some(format!("device {index} was told to go on from a state that it did not keep"));
        }
        let noise = 1.0 + peer.device.noise * (2.0 * noise - 1.0);
        let millis = peer.device.millis(&self.model, &work.task) * peer.slowed * peer.device.in_use * noise + loading;
        let own = peer.engine_free.max(self.now);
        let free = self.on_gpu_of(index).map(|other| self.peers[other].engine_free).fold(own, f64::max);
        let millis = free - own + millis;
        let peer = &mut self.peers[index];
        peer.engine_free = own + millis;
        let at =
            peer.engine_free + peer.device.hesitation.map_or(0.0, |delay| delay.draw(&work.task, &mut self.random));
        let computed = Computed { ticket: work.ticket, outcome, millis };
        self.schedule(at, index, Scheduled::Event(Event::Computed(computed)));
    }
}

fn opened(model: &SimModel, source: ModelSource) -> OpenedModel {
    let shape = model.shape();
    OpenedModel {
        card: ModelCard {
            id: shape.model,
            source,
            name: "sim".into(),
            architecture: "sim".into(),
            quantization: "F32".into(),
            bytes: Bytes(1),
            parameters: 1,
            active_parameters: 1,
            blocks: model.blocks,
            experts: model.experts,
            context: 4096,
            licence: "MIT".into(),
        },
        shapes: model.shapes(),
        parts: Some(Arc::new(protection::parts(&shape))),
        shape,
        overhead: Bytes(10),
        language: Arc::new(Bytewise),
    }
}
