//! Opens models, loads and times weights, and reads pieces of the host's file.

use std::rc::Rc;
use std::sync::Arc;

use futures::future::Abortable;
use potluck_engine::EngineError;
use potluck_gguf::Metadata;
use potluck_model::LocalTime;
use potluck_panel::NoticeLevel;
use potluck_plan::{Bytes, PeerId, WeightUnit};
use potluck_protocol::{LoadPhase, ModelCard, ModelSource, PieceRequest};
use potluck_swarm::{Event, LoadRequest};
use potluck_text::texts;

use super::hosting::HostingId;
use super::models::{Chooser, Opening};
use super::{Input, Inputs, Node};
use crate::compute::{Calls, Compute, SharedPool};
use crate::loader::{ExpertLoader, Load, LoadError, Progress};
use crate::open::{Model, OpenError};
use crate::platform::{Platform, Traffic};
use crate::storage::remember;

impl Node {
    pub(super) fn open_model(&mut self, source: ModelSource) {
        let files = self.hosting.files().to_vec();
        let (Some(identity), Some(hosting)) = (&self.identity, self.hosting.id()) else { return };
        let opener = self.models.opener(identity.relay.clone());
        let (inputs, shared) = (self.inputs.clone(), self.hosting.is_shared());
        if let (ModelSource::File { name, .. }, true) = (&source, files.is_empty()) {
            return inputs.event(Event::ModelFailed(OpenError::FileGone(name.clone()).to_string()));
        }
        let (clock, traffic, waiting) = (self.platform.clock.clone(), opener.traffic.clone(), inputs.clone());
        // Without end: it is dropped when the model is open.
        let tell_waits = async move {
            let mut waited = false;
            loop {
                clock.sleep(1_000.0).await;
                let waits = traffic.waits(clock.now());
                if let Some(seconds) = waits {
                    waiting.send(Input::FileChecked(texts().weights.server_waits(seconds)));
                } else if waited {
                    waiting.send(Input::FileChecked(texts().weights.server_asked_again().to_owned()));
                }
                waited = waits.is_some();
            }
        };
        let opening = async move {
            let reported = std::cell::Cell::new(None);
            let on_hashing = |done: u64, total: u64| {
                let percent = 100 * done / total.max(1);
                let before = reported.replace(Some(percent));
                if before != Some(percent) {
                    inputs.send(Input::Checked(Bytes(done), Bytes(total)));
                }
                if before.is_none() {
                    let who = if matches!(source, ModelSource::File { .. }) { "This device" } else { "The relay" };
                    inputs.send(Input::FileChecked(format!("{who} still checks this model's file ({percent} %).")));
                }
            };
            let opened = if shared {
                opener.open_shared(&source, &files, on_hashing).await
            } else {
                opener.open(&source, &files, on_hashing).await
            };
            let opened = opened.map(|(model, metadata)| (Rc::new(model), Box::new(metadata)));
            inputs.send(Input::Opened(hosting, opened.map_err(|error| error.to_string())));
        };
        let opening = async move {
            let opening = std::pin::pin!(opening);
            let telling = std::pin::pin!(tell_waits);
            futures::future::select(opening, telling).await;
        };
        let opening = Abortable::new(opening, self.tasks.new_opening());
        // Once it is aborted, nobody waits for it.
        self.platform.spawn.spawn(Box::pin(async move { _ = opening.await }));
    }

    /// Opening a model ended. One of a room that this node has left since does not count.
    pub(super) fn opened(&mut self, hosting: HostingId, opened: Result<(Rc<Model>, Box<Metadata>), String>) {
        match opened {
            _ if self.hosting.id() != Some(hosting) => {}
            Ok((model, metadata)) => self.model_opened(&model, &metadata),
            Err(sentence) => self.event(Event::ModelFailed(sentence)),
        }
    }

    fn model_opened(&mut self, model: &Rc<Model>, metadata: &Metadata) {
        let Some(context) = self.hosting.context() else { return };
        #[cfg(not(target_arch = "wasm32"))]
        if let Err(sentence) = self.compute.shadows.check_file(&model.card.name, metadata, &model.spec) {
            return self.event(Event::ModelFailed(sentence));
        }
        let now = LocalTime::from_unix(self.platform.clock.unix_seconds());
        match model.for_coordinator(metadata, context, now) {
            Ok((opened, remarks)) => {
                remarks.into_iter().for_each(|remark| self.notice(NoticeLevel::Info, remark));
                self.hosting.hashed(model.source.group_list());
                self.models.remember(model.clone());
                self.hosting.opened(model.clone());
                self.lend_beside_shadow();
                self.event(Event::ModelOpened(Arc::new(opened)));
            }
            Err(error) => self.event(Event::ModelFailed(error.to_string())),
        }
    }

    pub(super) fn start_load(&mut self, request: LoadRequest) {
        self.tasks.abort_load();
        let Some(opening) = self.opening(&request.model) else { return };
        let epoch = request.epoch;
        let hosts = self.hosting.open_model().is_some_and(|(hosted, _)| hosted.card.id == request.model.id);
        let task = LoadTask {
            platform: self.platform.clone(),
            inputs: self.inputs.clone(),
            compute: self.compute.clone(),
            traffic: self.models.traffic.clone(),
            opening,
            request,
        };
        let inputs = self.inputs.clone();
        let registration = self.tasks.new_load();
        self.platform.spawn.spawn(Box::pin(async move {
            match Abortable::new(task.run(), registration).await {
                Ok(Ok(())) => inputs.event(Event::Loaded(epoch)),
                Ok(Err(error)) => {
                    if matches!(error, LoadError::Engine(EngineError::Lost)) {
                        // The loss explains itself, and gives up what this load was for.
                        inputs.send(Input::DeviceLost);
                    }
                    if hosts && error.is_of_model() {
                        inputs.event(Event::ModelFailed(error.to_string()));
                    }
                    inputs.event(Event::LoadFailed(epoch, error.fault()));
                }
                // A newer load replaced it and reports for itself.
                Err(_) => {}
            }
            inputs.send(Input::Changed);
        }));
    }

    fn opening(&mut self, card: &ModelCard) -> Option<Opening> {
        let relay = self.identity.as_ref()?.relay.clone();
        let chooser = if self.hosting.id().is_some() { Chooser::Here } else { Chooser::Elsewhere };
        let opening = self.models.opening(relay, self.hosting.files_of(&card.source), chooser);
        if opening.may_follow(card)
            && let Some(server) = self.models.new_server(card, chooser)
        {
            self.notice(NoticeLevel::Info, texts().weights.from_server(server));
        }
        Some(opening)
    }

    /// Times two ranges of a model's blocks on this device. Nothing here limits the time: the coordinator has its own timeout.
    pub(super) fn calibrate(&mut self, card: ModelCard, budget: Bytes) {
        let Some(opening) = self.opening(&card) else { return };
        let (platform, inputs, compute) = (self.platform.clone(), self.inputs.clone(), self.compute.clone());
        self.platform.spawn.spawn(Box::pin(async move {
            let runs = match opening.model(&card).await {
                Ok(model) => {
                    if model.source.fetch_policy().cache {
                        remember(&platform, &model).await;
                    }
                    let early = |runs| inputs.event(Event::Calibrated(card.id, Ok(runs)));
                    compute.calibrate(&model, budget, &early).await.map_err(|error| error.to_string())
                }
                Err(error) => Err(error.to_string()),
            };
            if let Err(sentence) = &runs {
                log::info!("the model's blocks were not timed: {sentence}");
            }
            inputs.event(Event::Calibrated(card.id, runs));
        }));
    }

    pub(super) fn read_piece(&mut self, peer: PeerId, request: PieceRequest) {
        let PieceRequest { id, file, offset, len } = request;
        let end = offset.checked_add(u64::from(len));
        let file = self.hosting.file(file);
        let inputs = self.inputs.clone();
        let refuse = |sentence: &str| inputs.event(Event::PieceRead { peer, id, bytes: Err(sentence.to_owned()) });
        match (file, end) {
            _ if len > PieceRequest::MAX_LEN => refuse("more bytes than allowed were asked for at once."),
            (None, _) => refuse("it has no such file."),
            (Some(file), Some(end)) if end <= file.len() => {
                let inputs = self.inputs.clone();
                self.platform.spawn.spawn(Box::pin(async move {
                    let bytes = file.read(offset, u64::from(len)).await;
                    inputs.event(Event::PieceRead { peer, id, bytes });
                }));
            }
            _ => refuse("the file ends before these bytes."),
        }
    }
}

struct LoadTask {
    platform: Platform,
    inputs: Inputs,
    compute: Rc<Compute>,
    traffic: Traffic,
    opening: Opening,
    request: LoadRequest,
}

impl LoadTask {
    async fn run(self) -> Result<(), LoadError> {
        let request = &self.request;
        let (inputs, epoch) = (self.inputs.clone(), request.epoch);
        let report = move |report, used| inputs.event(Event::LoadProgress { epoch, report, used });
        let progress = Progress::new(self.platform.clone(), Box::new(report)).counting(self.traffic.clone());
        let progress = Rc::new(progress);
        progress.phase(LoadPhase::Find);
        let model = progress.watch(self.opening.model(&request.model)).await?;
        if model.source.fetch_policy().cache {
            remember(&self.platform, &model).await;
        }
        let wanted = request.units.iter().copied().collect();
        self.compute.tuning.recall().await;
        let load = self.load(&model, &progress)?;
        let resident = load.is_resident(&wanted);
        self.compute.on_demand.end(&request.pool);
        let weight_bytes = load.reserve_pool(&wanted, &request.pool)?;
        // Kernels in use were tested when they were compiled. Another test would only delay work under way.
        let needs_test = !(self.compute.self_tests.have_passed() && (resident || load.is_prepared()));
        let testing = needs_test.then(|| self.compute.self_tests.begin());
        let verdict = load.run(testing.is_some()).await;
        match &verdict {
            Ok(Some(verdict)) => self.compute.self_tests.ended(verdict),
            Err(LoadError::WrongResults(verdict)) => self.compute.self_tests.ended(verdict),
            _ => {}
        }
        verdict?;
        let calls = self.calls(&model).await?;
        let loader = ExpertLoader::new(self.silent(&model)?);
        let pool = SharedPool { pool: request.pool.clone(), experts: request.pool_experts };
        self.compute.set_on_demand(loader, pool, calls);
        self.compute.set_weight_bytes(weight_bytes);
        progress.phase(LoadPhase::Ready);
        Ok(())
    }

    /// Who calls the experts in this device's slots, and who says beforehand which.
    async fn calls(&self, model: &Model) -> Result<Calls, LoadError> {
        let LoadRequest { units, pool, hints, .. } = &self.request;
        let is_stage = units.iter().any(|unit| matches!(unit, WeightUnit::TokenMixer(_)));
        if *hints {
            let shadow = self.compute.shadows.start_for_hints(self.silent(model)?).await;
            shadow.unwrap_or_else(|sentence| self.inputs.send(Input::Notice(sentence)));
        } else if pool.blocks.is_empty() || !is_stage {
            self.compute.shadows.end();
        }
        if !is_stage {
            return Ok(Calls::FromElsewhere);
        }
        // A stage that asks others first hints, and guesses nothing for itself.
        let guesses = if *hints { None } else { self.compute.guesses(model, pool, self.silent(model)?).await };
        Ok(Calls::Own(guesses))
    }

    /// Loads whose progress nobody sees: those of experts on demand. What keeps them from the cache is said once.
    fn silent(&self, model: &Model) -> Result<Load, LoadError> {
        let progress = Rc::new(Progress::new(self.platform.clone(), Box::new(|_, _| {})));
        let load = self.load(model, &progress)?;
        let (say, said) = (load.notice, std::cell::Cell::new(false));
        let notice = Box::new(move |sentence| {
            if !said.replace(true) {
                say(sentence);
            }
        });
        Ok(Load { notice, ..load })
    }

    fn load(&self, model: &Model, progress: &Rc<Progress>) -> Result<Load, LoadError> {
        let (engine, units) = self.compute.engine_for(model, &self.request)?;
        let inputs = self.inputs.clone();
        Ok(Load {
            platform: self.platform.clone(),
            engine,
            tuner: self.compute.tuning.clone(),
            model: model.card.id,
            units,
            names: model.names.clone(),
            source: model.source.clone(),
            progress: progress.clone(),
            notice: Box::new(move |sentence| inputs.send(Input::Notice(sentence))),
        })
    }
}
