//! Opening models, loading weights, and reading pieces of the host's file.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use futures::future::{AbortHandle, Abortable};
use potluck_gguf::Metadata;
use potluck_panel::NoticeLevel;
use potluck_plan::{Bytes, PeerId};
use potluck_protocol::{LoadPhase, ModelCard, ModelSource, PieceRequest};
use potluck_swarm::{Event, LoadRequest};

use super::storage::remember;
use super::{Input, Node, is_own_file};
use crate::compute::Compute;
use crate::events::Inputs;
use crate::loader::{Load, LoadError, Progress};
use crate::open::{Model, OpenError, Opener};
use crate::platform::{LocalFile, Platform};

impl Node {
    pub(super) fn open_model(&mut self, source: ModelSource) {
        let files = self.host.as_ref().map(|host| host.files.clone()).unwrap_or_default();
        let Some(opener) = self.opener() else { return };
        let inputs = self.inputs.clone();
        if let (ModelSource::File { name, .. }, true) = (&source, files.is_empty()) {
            return inputs.event(Event::ModelFailed(OpenError::FileGone(name.clone()).to_string()));
        }
        self.platform.spawn.spawn(Box::pin(async move {
            let told = std::cell::Cell::new(false);
            let waiting = |done: u64, total: u64| {
                if !told.replace(true) {
                    let percent = 100 * done / total.max(1);
                    inputs.send(Input::Notice(format!("The relay still checks this model's file ({percent} %).")));
                }
            };
            match opener.open(&source, &files, waiting).await {
                Ok((model, metadata)) => inputs.send(Input::Opened(Rc::new(model), Box::new(metadata))),
                Err(error) => inputs.event(Event::ModelFailed(error.to_string())),
            }
        }));
    }

    pub(super) fn model_opened(&mut self, model: &Rc<Model>, metadata: &Metadata) {
        let Some(host) = &self.host else { return };
        match model.for_coordinator(metadata, host.context) {
            Ok((opened, remarks)) => {
                remarks.into_iter().for_each(|remark| self.notice(NoticeLevel::Info, remark));
                *self.opened.borrow_mut() = Some(model.clone());
                self.event(Event::ModelOpened(Arc::new(opened)));
            }
            Err(error) => self.event(Event::ModelFailed(error.to_string())),
        }
    }

    pub(super) fn cancel_load(&mut self) {
        if let Some(load) = self.load.take() {
            load.abort();
        }
    }

    pub(super) fn start_load(&mut self, request: LoadRequest) {
        self.cancel_load();
        let Some(opening) = self.opening(&request.model) else { return };
        let epoch = request.epoch;
        let task = LoadTask {
            platform: self.platform.clone(),
            inputs: self.inputs.clone(),
            compute: self.compute.clone(),
            opening,
            request,
        };
        let inputs = self.inputs.clone();
        let (abort, registration) = AbortHandle::new_pair();
        self.load = Some(abort);
        self.platform.spawn.spawn(Box::pin(async move {
            match Abortable::new(task.run(), registration).await {
                Ok(Ok(())) => inputs.event(Event::Loaded(epoch)),
                Ok(Err(error)) => inputs.event(Event::LoadFailed(epoch, error.fault())),
                // A newer load took its place and answers for itself.
                Err(_) => {}
            }
            inputs.send(Input::Changed);
        }));
    }

    fn opening(&self, card: &ModelCard) -> Option<Opening> {
        let files = match &self.host {
            Some(host) if is_own_file(&card.source) => host.files.clone(),
            _ => Vec::new(),
        };
        Some(Opening { opened: self.opened.clone(), opener: self.opener()?, files })
    }

    /// Times two ranges of a model on this device. Nothing waits here: the coordinator has patience of its own.
    pub(super) fn calibrate(&mut self, card: ModelCard, budget: Bytes) {
        let Some(opening) = self.opening(&card) else { return };
        let (platform, inputs, compute) = (self.platform.clone(), self.inputs.clone(), self.compute.clone());
        self.platform.spawn.spawn(Box::pin(async move {
            let runs = match opening.model(&card).await {
                Ok(model) => {
                    if model.source.manners().keep {
                        remember(&platform, &model.card).await;
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
        let files = self.host.as_ref().map(|host| host.files.as_slice()).unwrap_or_default();
        let end = offset.checked_add(u64::from(len));
        let file = files.get(usize::from(file)).cloned();
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

/// What a model's header is read with.
struct Opening {
    opened: Rc<RefCell<Option<Rc<Model>>>>,
    opener: Opener,
    files: Vec<Rc<dyn LocalFile>>,
}

struct LoadTask {
    platform: Platform,
    inputs: Inputs,
    compute: Rc<Compute>,
    opening: Opening,
    request: LoadRequest,
}

impl LoadTask {
    async fn run(self) -> Result<(), LoadError> {
        let request = &self.request;
        let (inputs, epoch) = (self.inputs.clone(), request.epoch);
        let tell = move |report, used| inputs.event(Event::LoadProgress { epoch, report, used });
        let progress = Rc::new(Progress::new(self.platform.clone(), Box::new(tell)));
        progress.phase(LoadPhase::Find);
        let model = self.opening.model(&request.model).await?;
        if model.source.manners().keep {
            remember(&self.platform, &model.card).await;
        }
        let wanted = request.units.iter().copied().collect();
        self.compute.recall_tuning().await;
        let load = self.load(&model, &progress)?;
        let held = load.holds(&wanted);
        let weights = load.hold(&wanted)?;
        // Kernels that compute were tested when they came: what computes now is not held up by another test.
        let known = self.compute.is_tested() && (held || load.is_prepared());
        let testing = (!known).then(|| self.compute.testing());
        let verdict = load.run(testing.is_some()).await;
        match &verdict {
            Ok(Some(verdict)) => self.compute.tested(verdict),
            Err(LoadError::Wrong(verdict)) => self.compute.tested(verdict),
            _ => {}
        }
        verdict?;
        self.compute.holds(weights);
        progress.phase(LoadPhase::Ready);
        Ok(())
    }

    fn load(&self, model: &Model, progress: &Rc<Progress>) -> Result<Load, LoadError> {
        let LoadRequest { context, kv_cache: state, budget, .. } = self.request;
        let (engine, units) = self.compute.engine_for(model, (context, state), budget)?;
        let inputs = self.inputs.clone();
        Ok(Load {
            platform: self.platform.clone(),
            engine,
            compute: self.compute.clone(),
            model: model.card.id,
            units,
            source: model.source.clone(),
            progress: progress.clone(),
            notice: Box::new(move |sentence| inputs.send(Input::Notice(sentence))),
        })
    }
}

impl Opening {
    /// The model of the card: the one opened last, or opened now.
    async fn model(&self, card: &ModelCard) -> Result<Rc<Model>, LoadError> {
        let known = self.opened.borrow().clone();
        if let Some(model) = known.filter(|model| model.card.id == card.id) {
            return Ok(model);
        }
        let model = Rc::new(self.opener.open_card(card, &self.files).await?);
        *self.opened.borrow_mut() = Some(model.clone());
        Ok(model)
    }
}
