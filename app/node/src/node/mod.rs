//! The driver's loop: inputs in, the state machine's actions out.

mod benching;
mod commands;
mod loading;
mod storage;

use std::cell::RefCell;
use std::rc::Rc;

use futures::future::AbortHandle;
use potluck_engine::GpuOptions;
use potluck_gguf::Metadata;
use potluck_panel as panel;
use potluck_plan::{Bytes, PeerId, PlanEpoch};
use potluck_planner::measures::Measure;
use potluck_protocol::{Contribution, FrameError, ModelSource, Session};
use potluck_swarm::{Action, Event, HostCommand, Identity, Peer};

use crate::compute::{Compute, Measured};
use crate::events::{InputQueue, Inputs};
use crate::open::{Model, Opener};
use crate::platform::{LocalFile, Platform};
use crate::relay::{Relay, RelayError};
use crate::room::{LineOptions, LineState, Listing, RoomLine};
use crate::source::{PieceDesk, Traffic};
use crate::status::{Own, RoomName, notice_level, snapshot};

/// Kernels of two peers with one class compute alike; raised when kernels change what they compute.
pub const KERNEL_CLASS: u32 = 1;
/// Milliseconds between two ticks.
const TICK: f64 = 200.0;
/// Milliseconds between two snapshots for the page.
const SNAPSHOT: f64 = 150.0;

/// What reaches the loop.
pub enum Input {
    /// For the state machine.
    Event(Event),
    /// From the page, with the files it chose beside it.
    Page(panel::ToNode, Vec<Rc<dyn LocalFile>>),
    /// A model on this device, without any room: for measuring and for one prompt at a terminal.
    Alone(HostCommand, u64, Vec<Rc<dyn LocalFile>>),
    /// The line to the relay.
    Line(LineState),
    /// A sentence for the page.
    Notice(String),
    /// A frame that could not be read.
    BadFrame(FrameError),
    /// The GPU was opened, or not.
    GpuOpened,
    /// The GPU is gone.
    DeviceLost,
    /// The GPU was opened again, or not.
    GpuReopened,
    /// The device was measured, for the so-many-th loan.
    Measured(u64, Result<Measured, String>),
    /// A room is there to host in.
    RoomReady(Box<panel::HostChoice>, Result<(RoomName, Option<Listing>), RelayError>),
    /// The model to host was opened.
    Opened(Rc<Model>, Box<Metadata>),
    /// How many bytes a load has brought to the GPU; the page's snapshot changed.
    Changed,
    /// End the loop.
    Quit,
}

/// How a node is set up.
pub struct NodeOptions {
    /// Which GPU to open.
    pub gpu: GpuOptions,
    /// Hears everything for the page.
    pub page: Rc<dyn Fn(panel::ToPage)>,
    /// For measurements only: every piece of work runs so often on the GPU before its result counts. 1 is a device as it is.
    pub slow: u32,
    /// For measurements only: what its planner must not know when it hosts.
    pub hidden: Vec<Measure>,
}

/// A peer's driver.
pub struct Node {
    platform: Platform,
    inputs: Inputs,
    page: Rc<dyn Fn(panel::ToPage)>,
    compute: Rc<Compute>,
    hidden: Vec<Measure>,
    traffic: Traffic,
    desk: PieceDesk,
    identity: Option<Start>,
    peer: Option<Peer>,
    /// What came before the peer existed.
    early: Vec<Input>,
    line: Option<RoomLine>,
    line_state: Option<LineState>,
    room: Option<RoomName>,
    host: Option<Hosted>,
    load: Option<AbortHandle>,
    bench: Option<AbortHandle>,
    opened: Rc<RefCell<Option<Rc<Model>>>>,
    /// What the page lends.
    budget: Option<Bytes>,
    /// How often it has said so.
    loans: u64,
    /// The device is being measured for the newest loan.
    measuring: bool,
    /// The GPU is gone and is being opened again.
    reopening: bool,
    changed: bool,
    told: f64,
    bad_frame_told: bool,
}

struct Start {
    peer: PeerId,
    name: String,
    kind: panel::DeviceKind,
    relay: Relay,
}

/// What only a host has.
struct Hosted {
    files: Vec<Rc<dyn LocalFile>>,
    context: u32,
}

impl Node {
    /// A node; [`Node::run`] starts it. Also the channel to it.
    pub fn new(platform: Platform, options: NodeOptions) -> (Self, InputQueue, Inputs) {
        let (inputs, queue) = crate::events::channel();
        let compute = Compute::new(platform.clone(), inputs.clone(), options.gpu, options.slow);
        let node = Self {
            desk: PieceDesk::new(inputs.clone()),
            compute,
            hidden: options.hidden,
            inputs: inputs.clone(),
            platform,
            page: options.page,
            traffic: Traffic::default(),
            identity: None,
            peer: None,
            early: Vec::new(),
            line: None,
            line_state: None,
            room: None,
            host: None,
            load: None,
            bench: None,
            opened: Rc::default(),
            budget: None,
            measuring: false,
            reopening: false,
            loans: 0,
            changed: false,
            told: f64::MIN,
            bad_frame_told: false,
        };
        (node, queue, inputs)
    }

    /// Handles inputs until [`Input::Quit`].
    pub async fn run(mut self, mut queue: InputQueue) {
        self.start_ticking();
        while let Some(input) = queue.next().await {
            if matches!(input, Input::Quit) {
                break;
            }
            self.handle(input);
            self.tell_page();
        }
        self.cancel_load();
        self.stop_bench();
        self.compute.unload();
    }

    fn start_ticking(&self) {
        let (clock, inputs) = (self.platform.clock.clone(), self.inputs.clone());
        self.platform.spawn.spawn(Box::pin(async move {
            while inputs.is_open() {
                inputs.event(Event::Tick);
                clock.sleep(TICK).await;
            }
        }));
        // Natively results are only handed out when asked; in a browser they come by themselves.
        #[cfg(not(target_arch = "wasm32"))]
        {
            let compute = Rc::downgrade(&self.compute);
            self.platform.spawn.spawn(Box::pin(async move {
                while let Some(compute) = compute.upgrade() {
                    if compute.poll() {
                        // Others get their turn: frames, ticks, and the work that a result leads to.
                        tokio::task::yield_now().await;
                    } else {
                        compute.busy().await;
                    }
                }
            }));
        }
    }

    fn handle(&mut self, input: Input) {
        if self.peer.is_none() && !matches!(input, Input::GpuOpened | Input::Page(panel::ToNode::Start { .. }, _)) {
            return match input {
                Input::Event(Event::Tick) => {}
                input => self.early.push(input),
            };
        }
        match input {
            Input::Event(event) => self.event(event),
            Input::Page(command, files) => self.command(command, files),
            Input::Alone(command, budget, files) => self.host_alone(command, budget, files),
            Input::Line(state) => self.line_changed(state),
            Input::Notice(sentence) => self.notice(panel::NoticeLevel::Warning, sentence),
            Input::BadFrame(error) => self.bad_frame(&error),
            Input::GpuOpened => self.gpu_opened(),
            Input::DeviceLost => self.device_lost(),
            Input::GpuReopened => self.gpu_reopened(),
            Input::Measured(loan, measured) => self.measured(loan, measured),
            Input::RoomReady(choice, room) => self.room_ready(*choice, room),
            Input::Opened(model, metadata) => self.model_opened(&model, &metadata),
            Input::Changed => self.changed = true,
            Input::Quit => {}
        }
    }

    fn event(&mut self, event: Event) {
        if matches!(event, Event::Tick) && self.compute.lost() {
            self.device_lost();
        }
        let Some(peer) = &mut self.peer else { return };
        let actions = peer.on(event, self.platform.clock.now());
        actions.into_iter().for_each(|action| self.perform(action));
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Send { to, frame } => {
                if let Some(line) = &self.line
                    && let Err(error) = line.send(to, &frame)
                {
                    self.notice(panel::NoticeLevel::Error, format!("A message could not be sent: {error}."));
                }
            }
            Action::OpenModel(source) => self.open_model(source),
            Action::Load(request) => self.start_load(request),
            Action::Calibrate { model, budget } => self.calibrate(model, budget),
            Action::Unload => {
                self.cancel_load();
                self.compute.unload();
            }
            Action::Expect => self.compute.expect_rows(),
            Action::Compute(work) => self.compute.submit(work),
            Action::Forget(conversation) => self.compute.forget(conversation),
            Action::Answer(request, part) => {
                (self.page)(panel::ToPage::Answer { request, event: part });
            }
            Action::Notice { severity, sentence } => self.notice(notice_level(severity), sentence),
            Action::ViewChanged => self.changed = true,
            Action::Close { reason } => {
                self.line = None;
                self.line_state = reason.map(LineState::Closed);
                self.host = None;
                if self.line_state.is_none() {
                    self.room = None;
                }
                self.changed = true;
            }
            Action::ReadPiece { peer, request } => self.read_piece(peer, request),
            Action::DeliverPiece { id, bytes } => self.desk.deliver(id, bytes),
        }
    }

    fn gpu_opened(&mut self) {
        let Some(start) = &self.identity else { return };
        self.peer = Some(Peer::new(Identity {
            peer: start.peer,
            session: Session(u64::from_le_bytes(self.platform.random_bytes())),
            build: panel::BUILD.to_owned(),
            kernel_class: KERNEL_CLASS,
            name: start.name.clone(),
            kind: start.kind,
            adapter: self.compute.adapter(),
        }));
        self.changed = true;
        std::mem::take(&mut self.early).into_iter().for_each(|input| self.handle(input));
    }

    fn line_changed(&mut self, state: LineState) {
        if self.line.is_some() {
            if let LineState::Closed(sentence) = &state {
                self.line = None;
                self.notice(panel::NoticeLevel::Error, sentence.clone());
            }
            self.line_state = Some(state);
            self.changed = true;
        }
    }

    fn open_line(&mut self, options: LineOptions) {
        if let Some(start) = &self.identity {
            // The old line must be gone before the new one dials: the relay would take us for two members.
            self.line = None;
            self.line_state = Some(LineState::Connecting);
            self.line = Some(RoomLine::open(&self.platform, start.peer, options, self.inputs.clone()));
        }
    }

    /// Every piece of work under way tells of a lost device: the first one counts. Until the GPU is open again this peer lends
    /// nothing, so that nobody plans with it and no load of its own fails for want of a GPU.
    fn device_lost(&mut self) {
        if !self.compute.lost() || std::mem::replace(&mut self.reopening, true) {
            return;
        }
        self.cancel_load();
        self.compute.close();
        // What is being measured just now counts no more.
        self.loans += 1;
        self.measuring = self.budget.is_some();
        if self.measuring {
            let sentence = "The browser lost this device's GPU. It is opened again and its part is loaded anew.";
            self.notice(panel::NoticeLevel::Warning, sentence.to_owned());
            self.event(Event::DeviceLost(sentence.to_owned()));
            self.event(Event::StopContributing);
        }
        self.changed = true;
        let (compute, inputs) = (self.compute.clone(), self.inputs.clone());
        self.platform.spawn.spawn(Box::pin(async move {
            compute.reopen().await;
            inputs.send(Input::GpuReopened);
        }));
    }

    /// Lends again what it lent.
    fn gpu_reopened(&mut self) {
        self.reopening = false;
        self.measuring = false;
        self.changed = true;
        match (self.compute.report().trouble, self.budget) {
            (Some(trouble), lent) => {
                self.budget = None;
                let still = if lent.is_some() { " This device lends nothing any more." } else { "" };
                self.notice(panel::NoticeLevel::Error, format!("The GPU did not come back. {trouble}{still}"));
            }
            (None, Some(budget)) => self.contribute(budget.0),
            (None, None) => {}
        }
    }

    /// Measures the device and lends; one that is being opened again follows when it is there.
    fn contribute(&mut self, budget: u64) {
        self.budget = Some(Bytes(budget));
        if self.reopening {
            return;
        }
        self.loans += 1;
        self.measuring = true;
        let (compute, inputs, loan) = (self.compute.clone(), self.inputs.clone(), self.loans);
        self.platform.spawn.spawn(Box::pin(async move {
            inputs.send(Input::Measured(loan, compute.measure().await));
        }));
    }

    /// Measuring takes a while: only the newest loan counts, and none that was taken back meanwhile.
    fn measured(&mut self, loan: u64, measured: Result<Measured, String>) {
        if loan == self.loans {
            self.measuring = false;
        }
        let Some(budget) = self.budget.filter(|_| loan == self.loans) else { return };
        match measured {
            Ok(Measured { bandwidth, sync_millis }) => {
                let binding = self.compute.binding().unwrap_or(Bytes(u64::MAX));
                self.event(Event::Contribute(Contribution { budget, binding, bandwidth, sync_millis }));
            }
            Err(sentence) => self.notice(panel::NoticeLevel::Error, sentence),
        }
    }

    fn bad_frame(&mut self, error: &FrameError) {
        if !std::mem::replace(&mut self.bad_frame_told, true) {
            let sentence =
                format!("A message of another device cannot be read: {error}. Reload the pages of all devices.");
            self.notice(panel::NoticeLevel::Warning, sentence);
        }
    }

    fn notice(&self, level: panel::NoticeLevel, sentence: String) {
        let most = self.inputs.most_waiting();
        let details = format!("build {}, {}, at most {most} events waited", panel::BUILD, self.compute.adapter());
        (self.page)(panel::ToPage::Notice(panel::Notice { level, sentence, details }));
    }

    fn tell_page(&mut self) {
        let now = self.platform.clock.now().0;
        let Some(start) = self.identity.as_ref().filter(|_| self.changed && now - self.told >= SNAPSHOT) else {
            return;
        };
        self.changed = false;
        self.told = now;
        let view = self.peer.as_ref().map(Peer::view);
        let own = Own {
            peer: start.peer,
            line: self.line_state.as_ref(),
            room: self.room.as_ref(),
            device: self.compute.report(),
            loaded: self.compute.weights().0,
            downloaded: self.traffic.bytes(),
            direct_frames: self.line.as_ref().map_or(0, RoomLine::direct_frames),
            measuring: self.measuring,
        };
        (self.page)(panel::ToPage::Status(Box::new(snapshot(view.as_ref(), own))));
    }

    fn opener(&self) -> Option<Opener> {
        let start = self.identity.as_ref()?;
        Some(Opener {
            platform: self.platform.clone(),
            relay: start.relay.clone(),
            traffic: self.traffic.clone(),
            desk: self.desk.clone(),
        })
    }
}

/// A room that is hosted again after a reload must go on above the plans it had: seconds of the clock are above them,
/// since plans are made less often.
fn epoch_after_reload(platform: &Platform) -> PlanEpoch {
    const SINCE: u64 = 1_767_225_600;
    PlanEpoch(u32::try_from(platform.clock.unix_seconds().saturating_sub(SINCE)).unwrap_or(u32::MAX / 2))
}

/// The host's file, if that is where the model is.
fn is_own_file(source: &ModelSource) -> bool {
    matches!(source, ModelSource::File { .. })
}
