//! Peers, links, devices and faults on a virtual clock.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use potluck_plan::{Bytes, Computed, Millis, PeerId, PlanEpoch};
use potluck_protocol::{
    AnswerPart, AnswerStop, Contribution, DeviceKind, Frame, Message, ModelCard, ModelSource, PromptRequest, RequestId,
    Role, Sampling, Session, Share,
};

use super::engine::{CONTEXT, SimEngine, SimModel};
use super::language::Bytewise;
use super::random::Random;
use crate::{Action, Destination, Event, HostCommand, Identity, LoadRequest, OpenedModel, Peer, RelayRoute, SwarmView};

/// A peer's line to the relay.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// One way, milliseconds.
    pub latency: f64,
    /// Up to so much more, uniformly.
    pub jitter: f64,
}

/// A peer's device.
#[derive(Clone, Copy, Debug)]
pub struct SimDevice {
    /// Bytes it lends; `None`: a guest.
    pub budget: Option<u64>,
    /// Milliseconds for one row through one block.
    pub block_millis: f64,
    /// Bytes a second of its downloads.
    pub download: f64,
    /// Its line.
    pub link: Link,
    /// It came by the room's link; otherwise the host has to let it in.
    pub invited: bool,
}

/// What can go wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// The tab is killed.
    Kill(usize),
    /// The tab is reloaded: a new session of the same peer enters after so many milliseconds.
    Reload(usize, f64),
    /// The connection drops and is back after so many milliseconds.
    Outage(usize, f64),
    /// The whole relay restarts.
    RelayRestart(f64),
    /// The GPU device is lost.
    DeviceLost(usize),
}

/// What came of a question.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Tokens.
    pub tokens: Vec<u32>,
    /// How it ended.
    pub end: Option<AnswerStop>,
    /// Recoveries on the way.
    pub recoveries: u32,
}

enum Happening {
    Event(Event),
    Fault(Fault),
    Enter,
    Prompt(PromptRequest),
    Loaded(PlanEpoch),
}

struct SimPeer {
    id: PeerId,
    device: SimDevice,
    machine: Peer,
    /// Counts restarts; what was under way for an earlier life is dropped.
    life: u64,
    route: Option<RelayRoute>,
    engine: SimEngine,
    engine_free: f64,
    load: Option<LoadRequest>,
    answers: BTreeMap<RequestId, Answer>,
    is_host: bool,
}

type Due = Reverse<(u64, u64, usize, u64)>;

/// A simulated room.
pub struct World {
    model: SimModel,
    share: Share,
    peers: Vec<SimPeer>,
    now: f64,
    due: BinaryHeap<Due>,
    happenings: BTreeMap<u64, Happening>,
    sequence: u64,
    next_route: u32,
    /// When the last frame from one route reaches another: frames on a line are never overtaken.
    lines: BTreeMap<(usize, usize), f64>,
    random: Random,
}

impl World {
    /// A world with a host, which is the first device.
    pub fn new(seed: u64, model: SimModel, share: Share, host: SimDevice) -> Self {
        let mut world = Self {
            model,
            share,
            peers: Vec::new(),
            now: 0.0,
            due: BinaryHeap::new(),
            happenings: BTreeMap::new(),
            sequence: 0,
            next_route: 1,
            lines: BTreeMap::new(),
            random: Random(seed),
        };
        world.add(host, 0.0);
        world.peers[0].is_host = true;
        world
    }

    /// Another device enters at a time. Returns its index.
    pub fn add(&mut self, device: SimDevice, at: f64) -> usize {
        let index = self.peers.len();
        let id = PeerId([index as u8 + 1; 16]);
        self.peers.push(SimPeer {
            id,
            device,
            machine: Peer::new(identity(id, 0)),
            life: 0,
            route: None,
            engine: SimEngine::default(),
            engine_free: 0.0,
            load: None,
            answers: BTreeMap::new(),
            is_host: false,
        });
        self.schedule(at, index, Happening::Enter);
        index
    }

    /// A fault at a time.
    pub fn fault(&mut self, fault: Fault, at: f64) {
        let index = match fault {
            Fault::Kill(index) | Fault::Reload(index, _) | Fault::Outage(index, _) | Fault::DeviceLost(index) => index,
            Fault::RelayRestart(_) => 0,
        };
        self.schedule(at, index, Happening::Fault(fault));
    }

    /// A peer asks at a time.
    pub fn prompt(&mut self, index: usize, request: u32, text: &str, max_tokens: u32, at: f64) {
        let prompt = PromptRequest {
            request: RequestId(request),
            conversation: format!("conversation {request}"),
            messages: vec![Message { role: Role::User, content: text.into() }],
            raw: true,
            max_tokens,
            sampling: Sampling { temperature: 0.0, top_k: 0, top_p: 1.0, min_p: 0.0, repetition_penalty: 1.0, seed: 0 },
        };
        self.schedule(at, index, Happening::Prompt(prompt));
    }

    /// The host lets a peer in, or not.
    pub fn admit(&mut self, index: usize, allow: bool) {
        let peer = self.peers[index].id;
        self.event(0, Event::Admit { peer, allow });
    }

    /// What came of a question.
    pub fn answer(&self, index: usize, request: u32) -> Option<&Answer> {
        self.peers[index].answers.get(&RequestId(request))
    }

    /// How a peer stands.
    pub fn view(&self, index: usize) -> SwarmView<'_> {
        self.peers[index].machine.view()
    }

    /// The virtual clock, milliseconds.
    pub fn now(&self) -> f64 {
        self.now
    }

    /// Runs until a time, or until `done`.
    pub fn run(&mut self, until: f64, done: impl Fn(&World) -> bool) {
        while let Some(Reverse((at, sequence, index, life))) = self.due.pop() {
            let at = f64::from_bits(at);
            if at > until {
                self.due.push(Reverse((at.to_bits(), sequence, index, life)));
                self.now = until;
                return;
            }
            self.now = at;
            let Some(happening) = self.happenings.remove(&sequence) else { continue };
            let outside = matches!(happening, Happening::Enter | Happening::Fault(_) | Happening::Prompt(_));
            if outside || self.peers[index].life == life {
                self.happen(index, happening);
            }
            if done(self) {
                return;
            }
        }
    }

    fn schedule(&mut self, at: f64, index: usize, happening: Happening) {
        self.sequence += 1;
        self.happenings.insert(self.sequence, happening);
        // Times are positive, so their bits sort as they do.
        self.due.push(Reverse((at.max(self.now).to_bits(), self.sequence, index, self.peers[index].life)));
    }

    fn happen(&mut self, index: usize, happening: Happening) {
        match happening {
            Happening::Event(Event::Tick) => {
                self.schedule(self.now + 200.0, index, Happening::Event(Event::Tick));
                self.event(index, Event::Tick);
            }
            Happening::Event(event) => self.event(index, event),
            Happening::Prompt(prompt) => {
                self.peers[index].answers.insert(prompt.request, Answer::default());
                self.event(index, Event::Prompt(prompt));
            }
            Happening::Enter => self.enter(index),
            Happening::Loaded(epoch) => self.loaded(index, epoch),
            Happening::Fault(fault) => self.strike(fault),
        }
    }

    fn enter(&mut self, index: usize) {
        let peer = &self.peers[index];
        let first = match peer.is_host {
            true => Event::Host(HostCommand {
                source: ModelSource::Relay { name: "sim".into() },
                key: "key".into(),
                context: CONTEXT,
                share: self.share,
                last_epoch: PlanEpoch(0),
            }),
            false => Event::Join { key: peer.device.invited.then(|| "key".into()) },
        };
        let contribution = peer.device.budget.map(|budget| Contribution {
            budget: Bytes(budget),
            bandwidth: 160.0 / peer.device.block_millis * 1e3,
            sync_millis: 1.0,
        });
        self.event(index, first);
        if let Some(contribution) = contribution {
            self.event(index, Event::Contribute(contribution));
        }
        self.connect(index);
        self.schedule(self.now + self.random.0 as f64 % 200.0, index, Happening::Event(Event::Tick));
    }

    fn connect(&mut self, index: usize) {
        let route = RelayRoute(self.next_route);
        self.next_route += 1;
        let members: Vec<RelayRoute> = self.peers.iter().filter_map(|peer| peer.route).collect();
        self.peers[index].route = Some(route);
        let others = self.others(index);
        self.deliver(index, index, Event::Connected { members });
        for other in others {
            self.deliver(index, other, Event::RouteJoined(route));
        }
    }

    fn disconnect(&mut self, index: usize) {
        let Some(route) = self.peers[index].route.take() else { return };
        for other in self.others(index) {
            self.deliver(index, other, Event::RouteLeft(route));
        }
    }

    fn others(&self, index: usize) -> Vec<usize> {
        (0..self.peers.len()).filter(|other| *other != index && self.peers[*other].route.is_some()).collect()
    }

    /// Over both lines, never overtaking what went the same way before.
    fn deliver(&mut self, from: usize, to: usize, event: Event) {
        let mut leg = |index: usize| {
            let link = self.peers[index].device.link;
            link.latency + link.jitter * self.random.unit()
        };
        let at = self.now + leg(from) + leg(to);
        let line = self.lines.entry((from, to)).or_insert(0.0);
        *line = line.max(at);
        let at = *line;
        self.schedule(at, to, Happening::Event(event));
    }

    fn strike(&mut self, fault: Fault) {
        match fault {
            Fault::Kill(index) => self.kill(index),
            Fault::Reload(index, back) => {
                self.kill(index);
                let peer = &mut self.peers[index];
                peer.machine = Peer::new(identity(peer.id, peer.life));
                self.schedule(self.now + back, index, Happening::Enter);
            }
            Fault::Outage(index, back) => self.outage(index, back),
            Fault::RelayRestart(back) => (0..self.peers.len()).for_each(|index| self.outage(index, back)),
            Fault::DeviceLost(index) => {
                let peer = &mut self.peers[index];
                peer.engine = SimEngine::default();
                peer.load = None;
                self.event(index, Event::DeviceLost("the GPU device was lost".into()));
            }
        }
    }

    fn kill(&mut self, index: usize) {
        self.disconnect(index);
        let peer = &mut self.peers[index];
        peer.life += 1;
        peer.engine = SimEngine::default();
        peer.load = None;
    }

    fn outage(&mut self, index: usize, back: f64) {
        if self.peers[index].route.is_none() {
            return;
        }
        self.disconnect(index);
        self.event(index, Event::Disconnected);
        self.schedule(self.now + back, index, Happening::Event(Event::Connected { members: Vec::new() }));
    }

    fn event(&mut self, index: usize, event: Event) {
        if matches!(event, Event::Connected { .. }) && self.peers[index].route.is_none() {
            self.connect(index);
            return;
        }
        let now = Millis(self.now);
        let actions = self.peers[index].machine.on(event, now);
        for action in actions {
            self.perform(index, action);
        }
    }

    fn perform(&mut self, index: usize, action: Action) {
        match action {
            Action::Send { to, frame } => self.send(index, to, frame),
            Action::OpenModel(source) => {
                let model = Arc::new(opened(&self.model, source));
                self.schedule(self.now + 5.0, index, Happening::Event(Event::ModelOpened(model)));
            }
            Action::Load(load) => {
                let shape = self.model.shape();
                let bytes: Bytes = load.units.iter().map(|unit| shape.unit_bytes(*unit)).sum();
                let millis = bytes.0 as f64 / self.peers[index].device.download * 1e3;
                let epoch = load.epoch;
                self.peers[index].load = Some(load);
                self.schedule(self.now + millis, index, Happening::Loaded(epoch));
            }
            Action::Unload => {
                self.peers[index].engine = SimEngine::default();
                self.peers[index].load = None;
            }
            Action::Compute(work) => self.compute(index, &work),
            Action::Forget(conversation) => self.peers[index].engine.forget(conversation),
            Action::Answer(request, part) => self.record(index, request, part),
            _ => {}
        }
    }

    fn loaded(&mut self, index: usize, epoch: PlanEpoch) {
        let peer = &mut self.peers[index];
        let Some(load) = peer.load.as_ref().filter(|load| load.epoch == epoch) else { return };
        let shape = self.model.shape();
        let bytes: Bytes = load.units.iter().map(|unit| shape.unit_bytes(*unit)).sum();
        assert!(bytes <= load.budget, "peer {index} was told to hold {bytes} of {}", load.budget);
        peer.engine.hold(&load.units);
        self.event(index, Event::Loaded(epoch));
    }

    fn compute(&mut self, index: usize, work: &potluck_plan::Work) {
        let model = self.model.clone();
        let peer = &mut self.peers[index];
        let outcome = peer.engine.run(&model, work);
        let rows = match &work.task {
            potluck_plan::Task::Forward { rows, blocks, .. } => rows.len() * usize::from(blocks.len() + 1),
            potluck_plan::Task::Experts { routes, .. } => routes.len(),
        };
        let millis = 1.0 + rows as f64 * peer.device.block_millis;
        peer.engine_free = peer.engine_free.max(self.now) + millis;
        let at = peer.engine_free;
        let computed = Computed { ticket: work.ticket, outcome, millis };
        self.schedule(at, index, Happening::Event(Event::Computed(computed)));
    }

    fn send(&mut self, index: usize, to: Destination, frame: Frame) {
        let Some(route) = self.peers[index].route else { return };
        let from = self.peers[index].id;
        let receivers: Vec<usize> = match to {
            Destination::Everyone => self.others(index),
            Destination::Route(to) => {
                self.others(index).into_iter().filter(|i| self.peers[*i].route == Some(to)).collect()
            }
        };
        for receiver in receivers {
            self.deliver(index, receiver, Event::Frame { route, from, frame: frame.clone() });
        }
    }

    fn record(&mut self, index: usize, request: RequestId, part: AnswerPart) {
        let answer = self.peers[index].answers.entry(request).or_default();
        match part {
            AnswerPart::Text { tokens, .. } => answer.tokens.extend(tokens),
            AnswerPart::Recovering(_) => answer.recoveries += 1,
            AnswerPart::End { stop, .. } => answer.end = Some(stop),
            AnswerPart::Queued(_) | AnswerPart::Reading(..) | AnswerPart::Unknown => {}
        }
    }
}

fn identity(peer: PeerId, session: u64) -> Identity {
    Identity {
        peer,
        session: Session(session),
        build: "sim".into(),
        kernel_class: 1,
        name: format!("Device {}", peer.0[0]),
        kind: DeviceKind::Native,
        adapter: "simulated".into(),
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
        shape,
        overhead: Bytes(10),
        language: Arc::new(Bytewise),
    }
}
