//! The driver's event loop: it feeds inputs to the state machine and performs the state machine's actions.
//!
//! [`Node`] only dispatches: commands of the page go to [`commands`], events to the state machine, whose answers [`actions`] performs.
//! Each part of its state is a type that owns its invariant: [`membership`] (connection and room), [`contribution`] (what this device
//! contributes), [`guessers`] (who guesses experts), [`hosting`] (what only a host has), [`models`] (what models are opened with),
//! [`page`] (messages to the page) and [`tasks`] (a load and a benchmark that can be aborted).

mod actions;
mod benching;
mod commands;
mod contributing;
mod contribution;
mod decisions;
mod doors;
mod gpu_loss;
mod guessers;
mod guessing;
mod hosting;
mod input;
mod loading;
mod membership;
mod models;
mod page;
mod reporting;
mod storage;
mod succession;
mod tasks;
mod ticking;

use std::rc::Rc;

use potluck_engine::GpuOptions;
use potluck_panel as panel;
use potluck_plan::{Millis, PeerId};
use potluck_protocol::StartId;
use potluck_swarm::{Event, HintOptions, Identity, Peer, SpotChecks};
use potluck_trust::{DeviceId, IdentityKeys};

use self::contribution::ContributionState;
use self::decisions::DecisionLog;
use self::doors::Devices;
use self::guessers::Guessers;
use self::hosting::Hosting;
use self::membership::RoomMembership;
use self::models::Models;
use self::page::PageLink;
use self::tasks::Tasks;
use crate::compute::{Compute, GuessOptions};
use crate::platform::Platform;
use crate::relay::Relay;
use crate::room::{LineOptions, LineState, RoomLine};

pub use self::input::{Input, InputQueue, Inputs};

/// Kernels of two peers with the same class compute the same bits. Raised when kernels change their results.
pub const KERNEL_CLASS: u32 = 1;
/// An input that takes so long holds other work up.
const SLOW_MILLIS: f64 = 3.0;

/// How a node is set up.
#[derive(Clone, Default)]
pub struct NodeOptions {
    /// Which GPU to open.
    pub gpu: GpuOptions,
    /// Which answers are computed again where this node hosts, but for the secret.
    pub spot_checks: SpotChecks,
    /// Whether experts may be loaded on demand in rooms that this node hosts.
    pub on_demand: bool,
    /// Who guesses which experts come next, where they come on demand.
    pub guesses: GuessOptions,
    /// How holders that load on demand are told what they will be asked for.
    pub hints: HintOptions,
    /// What the state machine has besides, before its first event; nothing in a page.
    pub peer_setup: Option<Rc<dyn Fn(Peer) -> Peer>>,
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
    decision_log: DecisionLog,
    membership: RoomMembership,
    contribution: ContributionState,
    hosting: Hosting,
    spot_checks: SpotChecks,
    on_demand: bool,
    guessers: Guessers,
    peer_setup: Option<Rc<dyn Fn(Peer) -> Peer>>,
    models: Models,
    tasks: Tasks,
    devices: Devices,
    /// Where it connects to other devices.
    direct: panel::DirectConnections,
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
    /// Creates a node and the channel to it; [`Node::run`] starts it. `page` receives all messages to the page.
    pub fn new(
        platform: Platform,
        page: Rc<dyn Fn(panel::ToPage)>,
        options: NodeOptions,
    ) -> (Self, InputQueue, Inputs) {
        let (inputs, queue) = crate::events::channel();
        let compute = Compute::new(platform.clone(), inputs.sink(), options.gpu, options.guesses.clone());
        let node = Self {
            page: PageLink::new(page),
            compute,
            models: Models::new(platform.clone(), inputs.sink()),
            inputs: inputs.clone(),
            platform,
            identity: None,
            peer: None,
            early_inputs: Vec::new(),
            decision_log: DecisionLog::default(),
            membership: RoomMembership::default(),
            contribution: ContributionState::default(),
            hosting: Hosting::default(),
            spot_checks: options.spot_checks,
            on_demand: options.on_demand,
            guessers: Guessers::new(options.guesses, options.hints),
            peer_setup: options.peer_setup,
            tasks: Tasks::default(),
            devices: Devices::default(),
            direct: panel::DirectConnections::default(),
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

    fn handle(&mut self, input: Input) {
        if self.peer.is_none() && !matches!(input, Input::GpuOpened | Input::Page(panel::ToNode::Start { .. }, _)) {
            return match input {
                Input::Event(Event::Tick) => {}
                input => self.early_inputs.push(input),
            };
        }
        match input {
            Input::Event(event) => self.event(event),
            Input::Frame(event, _place) => self.event(event),
            Input::Page(command, files) => self.command(command, files),
            Input::Alone(command, budget, files) => self.host_alone(command, budget, files),
            Input::Line(state) => self.line_changed(state),
            Input::Notice(sentence) => self.notice(panel::NoticeLevel::Warning, sentence),
            Input::LinkRenewed(room, key) => self.link_renewed(&room, key),
            Input::FileChecked(sentence) => self.warn_while(panel::Condition::FileChecked, sentence),
            Input::Checked(done, total) => {
                self.hosting.checked(done, total);
                self.page.mark_changed();
            }
            Input::ShadowFailed(sentence) => self.shadow_failed(sentence),
            Input::BadFrame(error, _place) => {
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

    /// The peer exists from now on: what arrived meanwhile is handled.
    fn gpu_opened(&mut self) {
        let Some(identity) = &self.identity else { return };
        let peer = Peer::new(Identity {
            peer: identity.peer,
            device: identity.device,
            start: StartId(u64::from_le_bytes(self.platform.random_bytes())),
            build: panel::BUILD.to_owned(),
            kernel_class: KERNEL_CLASS,
            name: identity.name.clone(),
            kind: identity.kind,
            adapter: self.compute.device.adapter(),
        });
        self.peer = Some(match &self.peer_setup {
            Some(setup) => setup(peer),
            None => peer,
        });
        self.forget_guesser();
        self.page.mark_changed();
        std::mem::take(&mut self.early_inputs).into_iter().for_each(|input| self.handle(input));
    }

    pub(super) fn open_line(&mut self, options: LineOptions) {
        let (platform, events) = (&self.platform, self.inputs.sink());
        self.membership.connect(|| RoomLine::open(platform, options, events));
    }

    /// A room has another link; the page keeps it.
    pub(super) fn link_renewed(&mut self, room: &str, key: String) {
        self.membership.has_key(room, key);
        self.page.mark_changed();
    }

    fn line_changed(&mut self, state: LineState) {
        let Some(closed) = self.membership.line_changed(state) else { return };
        if let Some(sentence) = closed {
            self.notice(panel::NoticeLevel::Error, sentence);
        }
        self.page.mark_changed();
    }
}
