//! The driver's event loop: it feeds inputs to the state machine and performs the state machine's actions.
//!
//! [`Node`] only dispatches. Each part of its state is a type that owns its invariant: [`membership`] (connection and room),
//! [`contribution`] (what this device contributes), [`guessers`] (who guesses experts), [`hosting`] (what only a host has), [`models`] (what models are opened with),
//! [`page`] (messages to the page) and [`tasks`] (a load and a benchmark that can be aborted).

mod benching;
mod commands;
mod contribution;
mod doors;
mod gpu_loss;
mod guessers;
mod hosting;
mod input;
mod loading;
mod membership;
mod models;
mod page;
mod storage;
mod tasks;

use std::rc::Rc;

use potluck_engine::GpuOptions;
use potluck_panel as panel;
use potluck_plan::{Millis, PeerId};
use potluck_planner::measures::Measure;
use potluck_protocol::Session;
use potluck_swarm::{Action, Event, HintOptions, Identity, Peer, Pooling};
use potluck_trust::{DeviceId, IdentityKeys};

use self::contribution::ContributionState;
use self::doors::Words;
use self::guessers::Guessers;
use self::hosting::Hosting;
use self::membership::RoomMembership;
use self::models::Models;
use self::page::PageLink;
use self::tasks::Tasks;
use crate::compute::{Compute, GuessOptions, Hesitation};
use crate::events::{InputQueue, Inputs};
use crate::platform::Platform;
use crate::relay::Relay;
use crate::room::{LineOptions, LineState, RoomLine};
use crate::status::{Own, notice_level, snapshot};

pub use self::input::Input;

/// Kernels of two peers with the same class compute the same bits. Raised when kernels change their results.
pub const KERNEL_CLASS: u32 = 1;
/// Milliseconds between two ticks.
const TICK_MILLIS: f64 = 200.0;
/// An input that takes so long holds other work up.
const SLOW_MILLIS: f64 = 3.0;

/// How a node is set up.
pub struct NodeOptions {
    /// Which GPU to open.
    pub gpu: GpuOptions,
    /// Receives all messages to the page.
    pub page: Rc<dyn Fn(panel::ToPage)>,
    /// For measurements only: how many times the GPU runs every piece of work before its result counts. 1 is full speed;
    /// 0 is full speed, but calls of experts are answered with zeros.
    pub slow: u32,
    /// For measurements only: how long outputs of experts wait before they count, each for itself.
    pub hesitation: Option<Hesitation>,
    /// For measurements only: what the planner must not know when this node hosts.
    pub hidden: Vec<Measure>,
    /// How experts are spread where this node hosts.
    pub pooling: Pooling,
    /// Whether experts may be loaded on demand in rooms that this node hosts.
    pub on_demand: bool,
    /// Who guesses which experts come next, where they come on demand.
    pub guesses: GuessOptions,
    /// How holders that load on demand are told what they will be asked for.
    pub hints: HintOptions,
    /// For measurements only: how many lines of the recording are kept.
    pub recorded: Option<usize>,
}

/// A peer's driver.
pub struct Node {
    platform: Platform,
    inputs: Inputs,
    page: PageLink,
    compute: Rc<Compute>,
    identity: Option<NodeIdentity>,
    peer: Option<Peer>,
    /// Inputs that arrived before the peer existed.
    early_inputs: Vec<Input>,
    membership: RoomMembership,
    contribution: ContributionState,
    hosting: Hosting,
    pooling: Pooling,
    on_demand: bool,
    guessers: Guessers,
    recorded: Option<usize>,
    models: Models,
    tasks: Tasks,
    words: Words,
}

/// Who this node is; known once the page said [`panel::ToNode::Start`].
struct NodeIdentity {
    keys: IdentityKeys,
    peer: PeerId,
    device: DeviceId,
    name: String,
    kind: panel::DeviceKind,
    relay: Relay,
}

impl Node {
    /// Creates a node and the channel to it; [`Node::run`] starts it.
    pub fn new(platform: Platform, options: NodeOptions) -> (Self, InputQueue, Inputs) {
        let (inputs, queue) = crate::events::channel();
        let pace = (options.slow, options.hesitation);
        let compute = Compute::new(platform.clone(), inputs.clone(), options.gpu, pace, options.guesses.clone());
        let node = Self {
            page: PageLink::new(options.page),
            compute,
            models: Models::new(platform.clone(), inputs.clone()),
            inputs: inputs.clone(),
            platform,
            identity: None,
            peer: None,
            early_inputs: Vec::new(),
            membership: RoomMembership::default(),
            contribution: ContributionState::default(),
            hosting: Hosting::new(options.hidden),
            pooling: options.pooling,
            on_demand: options.on_demand,
            guessers: Guessers::new(options.guesses, options.hints),
            recorded: options.recorded,
            tasks: Tasks::default(),
            words: Words::default(),
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
            let (name, began) = (input.name(), self.platform.clock.now());
            self.handle(input);
            let handled = self.platform.clock.now();
            self.send_snapshot();
            self.note_slow(name, [began, handled, self.platform.clock.now()]);
        }
        self.tasks.abort_opening();
        self.tasks.abort_load();
        self.tasks.abort_bench();
        self.compute.unload();
    }

    /// Has the recording say what held everything else up.
    fn note_slow(&mut self, name: &str, [began, handled, shown]: [Millis; 3]) {
        if shown.0 - began.0 >= SLOW_MILLIS
            && let Some(peer) = &mut self.peer
        {
            let (handled, shown) = (handled.0 - began.0, shown.0 - handled.0);
            peer.note(
                format!("{name} took {handled:.1} ms, and what the page shows {shown:.1} ms"),
                self.platform.clock.now(),
            );
        }
    }

    fn start_ticking(&self) {
        let (clock, inputs) = (self.platform.clock.clone(), self.inputs.clone());
        self.platform.spawn.spawn(Box::pin(async move {
            while inputs.is_open() {
                inputs.event(Event::Tick);
                clock.sleep(TICK_MILLIS).await;
            }
        }));
        // A native GPU returns results only when polled; in a browser they arrive by themselves.
        #[cfg(not(target_arch = "wasm32"))]
        {
            let compute = Rc::downgrade(&self.compute);
            self.platform.spawn.spawn(Box::pin(async move {
                while let Some(compute) = compute.upgrade() {
                    if compute.poll() {
                        // Let others run: frames, ticks, and the work that follows from a result.
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
                input => self.early_inputs.push(input),
            };
        }
        match input {
            Input::Event(event) => self.event(event),
            Input::Page(command, files) => self.command(command, files),
            Input::Alone(command, budget, files) => self.host_alone(command, budget, files),
            Input::Line(state) => self.line_changed(state),
            Input::Notice(sentence) => self.notice(panel::NoticeLevel::Warning, sentence),
            Input::FileChecked(sentence) => self.warn_while(panel::Condition::FileChecked, sentence),
            Input::ShadowFailed(sentence) => self.shadow_failed(sentence),
            Input::BadFrame(error) => {
                if let Some(sentence) = self.page.first_bad_frame(&error) {
                    self.notice(panel::NoticeLevel::Warning, sentence);
                }
            }
            Input::GpuOpened => self.gpu_opened(),
            Input::DeviceLost => self.device_lost(),
            Input::GpuReopened => self.gpu_reopened(),
            Input::Measured(generation, measured) => self.measured(generation, measured),
            Input::Opened(hosting, opened) => self.opened(hosting, opened),
            Input::Changed => self.page.mark_changed(),
            Input::Quit => {}
        }
    }

    fn event(&mut self, event: Event) {
        if matches!(event, Event::Tick) {
            self.membership.tick();
            if self.compute.lost() {
                self.device_lost();
            }
        }
        if let Event::PeerConnected { peer, device, .. } = event {
            self.words.met(peer, device);
        }
        let Some(peer) = &mut self.peer else { return };
        let actions = peer.on(event, self.platform.clock.now());
        // Frames that follow one another go together, and none waits for anything else.
        let mut is_held = false;
        for action in actions {
            let is_frame = matches!(action, Action::Send { .. });
            match (is_held, is_frame) {
                (false, true) => self.membership.hold(),
                (true, false) => self.membership.release(),
                _ => {}
            }
            is_held = is_frame;
            self.perform(action);
        }
        if is_held {
            self.membership.release();
        }
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Send { to, frame } => {
                if let Err(error) = self.membership.send(to, &frame) {
                    self.notice(panel::NoticeLevel::Error, format!("A message could not be sent: {error}."));
                }
            }
            Action::OpenModel(source) => self.open_model(source),
            Action::Load(request) => self.start_load(request),
            Action::Calibrate { model, budget } => self.calibrate(model, budget),
            Action::Admitted(peer) => self.membership.admit(peer),
            Action::Regroup(generation) => self.membership.regroup(generation),
            Action::DoorsChanged(doors) => self.page.send(panel::ToPage::Doors(doors)),
            Action::Unload => {
                self.tasks.abort_load();
                self.compute.unload();
            }
            Action::Expect => self.compute.expect_tokens(),
            Action::Compute(work) => self.compute.submit(work),
            Action::Cancel(ticket) => self.compute.cancel(ticket),
            Action::LoadAhead(experts) => self.compute.load_ahead(experts),
            Action::Foresee(wanted) => self.compute.foresee(wanted),
            Action::WakeAt(at) => self.wake_at(at),
            Action::Forget(conversation) => self.compute.forget(conversation),
            Action::Answer(request, part) => {
                self.page.send(panel::ToPage::Answer { request, event: part });
            }
            Action::Notice { severity, sentence, condition } => {
                self.notice_of(notice_level(severity), sentence, condition);
            }
            Action::ViewChanged => self.page.mark_changed(),
            Action::Close { reason } => {
                self.membership.close(reason);
                self.tasks.abort_opening();
                self.hosting.end();
                self.forget_guesser();
                self.page.mark_changed();
            }
            Action::ReadPiece { peer, request } => self.read_piece(peer, request),
            Action::DeliverPiece { id, bytes } => self.models.requests.deliver(id, bytes),
        }
    }

    /// Sends the state machine a wake-up at this time of the clock.
    fn wake_at(&self, at: Millis) {
        let (clock, inputs) = (self.platform.clock.clone(), self.inputs.clone());
        self.platform.spawn.spawn(Box::pin(async move {
            clock.sleep((at.0 - clock.now().0).max(0.0)).await;
            inputs.event(Event::Wake);
        }));
    }

    /// The peer exists from now on: what arrived meanwhile is handled.
    fn gpu_opened(&mut self) {
        let Some(identity) = &self.identity else { return };
        let peer = Peer::new(Identity {
            peer: identity.peer,
            device: identity.device,
            session: Session(u64::from_le_bytes(self.platform.random_bytes())),
            build: panel::BUILD.to_owned(),
            kernel_class: KERNEL_CLASS,
            name: identity.name.clone(),
            kind: identity.kind,
            adapter: self.compute.adapter(),
        });
        self.peer = Some(match self.recorded {
            Some(lines) => peer.with_trace(lines),
            None => peer,
        });
        self.forget_guesser();
        self.page.mark_changed();
        std::mem::take(&mut self.early_inputs).into_iter().for_each(|input| self.handle(input));
    }

    fn open_line(&mut self, options: LineOptions) {
        let (platform, inputs) = (&self.platform, self.inputs.clone());
        self.membership.connect(|| RoomLine::open(platform, options, inputs));
    }

    fn line_changed(&mut self, state: LineState) {
        let Some(closed) = self.membership.line_changed(state) else { return };
        if let Some(sentence) = closed {
            self.notice(panel::NoticeLevel::Error, sentence);
        }
        self.page.mark_changed();
    }

    fn notice(&self, level: panel::NoticeLevel, sentence: String) {
        self.notice_of(level, sentence, None);
    }

    /// A warning until a condition is over.
    fn warn_while(&self, condition: panel::Condition, sentence: String) {
        self.notice_of(panel::NoticeLevel::Warning, sentence, Some(condition));
    }

    fn notice_of(&self, level: panel::NoticeLevel, sentence: String, condition: Option<panel::Condition>) {
        let max_waiting = self.inputs.max_waiting();
        let details =
            format!("build {}, {}, at most {max_waiting} events waited", panel::BUILD, self.compute.adapter());
        self.page.send(panel::ToPage::Notice(panel::Notice { level, sentence, details, condition }));
    }

    /// Sends the page a snapshot if something changed and the last one is old enough.
    fn send_snapshot(&mut self) {
        let Some(identity) = &self.identity else { return };
        if !self.page.take_changed(self.platform.clock.now()) {
            return;
        }
        let view = self.peer.as_ref().map(Peer::view);
        let members = view.as_ref().and_then(|view| view.room).map(|room| room.members.iter()).into_iter().flatten();
        let own = Own {
            peer: identity.peer,
            words: self.words.of_device(identity.device),
            members_words: members.filter_map(|member| Some((member.peer, self.words.of_peer(member.peer)?))).collect(),
            doors: view.as_ref().and_then(|view| self.doors_report(view.doors?)),
            line: self.membership.line_state(),
            room: self.membership.room(),
            device: self.compute.report(),
            loaded: self.compute.weight_bytes().0,
            on_demand: self.compute.on_demand_report(),
            shadow: self.compute.shadow_report(),
            downloaded: self.models.traffic.bytes(),
            direct_frames: self.membership.direct_frames(),
            sealing: self.membership.sealing(),
            measuring: self.contribution.is_measuring(),
        };
        self.page.send(panel::ToPage::Status(Box::new(snapshot(view.as_ref(), own))));
    }
}
