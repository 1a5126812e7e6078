//! The world: peers on a virtual clock, and the queue of what happens when.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use potluck_panel::Timeline;
use potluck_plan::{Ends, KvCacheType, LogitBias, Millis, Plan, PlanEpoch, Pooling};
use potluck_predict::PredictorKind;
use potluck_protocol::{
    AnswerForm, DeputyChoice, Doors, Hedging, IssuedInvite, LogitOptions, Message, ModelSource, PlanStatus,
    PromptRequest, RequestId, Role, Sharing, ToolOffer,
};
use potluck_swarm::{Event, HintOptions, Membership, Peer, RelayRoute, SpotChecks, SwarmView, TraceLine};

use super::device::SimDevice;
use super::engine::SimModel;
use super::false_passes::FalsePasses;
use super::fault::Fault;
use super::forge::Forging;
use super::language::sampling;
use super::peer::{Answer, SimPeer, invite};
use super::random::{Random, mix};
use super::relay::{Downlink, Relay, Uplink};
use super::shadow::SimShadow;
use super::succession::Hosts;
use super::words::Heard;

/// A driver sends ticks this often.
const TICK_MILLIS: f64 = 200.0;
/// One-way trips to open a WebSocket: three round trips, of which the last half is the relay's first message.
const DIAL_TRIPS: f64 = 5.0;

/// Something that is due. What happens inside a peer is dropped if the peer was restarted meanwhile.
pub(super) enum Scheduled {
    Enter,
    Dial,
    Event(Event),
    AtPeer(RelayRoute, Downlink),
    /// The peer's load with this number has ended.
    Loaded(u64),
    /// The page has kept who may come in, with renewed keys.
    Kept(Box<Doors>),
    /// Sessions under an older group secret end.
    Overdue,
    AtRelay(RelayRoute, Uplink),
    GivenUp(RelayRoute),
    Fault(Fault),
    Prompt(PromptRequest),
}

impl Scheduled {
    /// It happens inside the peer's tab, which may be closed or frozen.
    fn is_inside(&self) -> bool {
        matches!(
            self,
            Self::Enter
                | Self::Dial
                | Self::Event(_)
                | Self::AtPeer(..)
                | Self::Loaded(_)
                | Self::Kept(_)
                | Self::Overdue
        )
    }
}

/// A person who asks the next question as soon as an answer has ended.
struct Chat {
    text: String,
    max_tokens: u32,
    until: f64,
}

/// Requests of the first chat begin here, those of the second at twice as many.
const CHAT_REQUESTS: u32 = 1_000;

/// Time (as bits, which sort like positive times), sequence number, peer, the peer's life.
type Due = Reverse<(u64, u64, usize, u64)>;

/// A simulated room.
///
/// ```
/// use potluck_protocol::Sharing;
/// use potluck_sim::{Fault, SimDevice, SimModel, World, undisturbed};
///
/// let model = SimModel::dense(6);
/// let device = || SimDevice::with_budget(620);
/// let mut world = World::new(1, model.clone(), Sharing::Fastest, device());
/// let worker = world.add(device(), 0.0);
/// world.add(device(), 0.0);
/// world.prompt(0, 1, "how do bees find home?", 40, 3_000.0);
/// world.fault(Fault::Kill(worker), 3_400.0);
/// world.run(120_000.0, |world| world.answer(0, 1).is_some_and(|answer| answer.end.is_some()));
///
/// let prompt: Vec<u32> = "how do bees find home?".bytes().map(u32::from).collect();
/// assert_eq!(world.answer(0, 1).unwrap().tokens, undisturbed(&model, &prompt, 40));
/// assert_eq!(world.violation(), None);
/// ```
pub struct World {
    pub(super) model: SimModel,
    pub(super) peers: Vec<SimPeer>,
    pub(super) relay: Relay,
    pub(super) now: f64,
    pub(super) random: Random,
    pub(super) timeline: Timeline,
    pub(super) shown_plan: Option<(PlanEpoch, bool)>,
    chats: Vec<Chat>,
    pub(super) share: Sharing,
    pub(super) kv_cache: Option<KvCacheType>,
    pub(super) in_advance: bool,
    pub(super) on_demand: bool,
    pub(super) deputy: DeputyChoice,
    pub(super) hosts: Hosts,
    pub(super) protect: bool,
    pub(super) ends: Ends,
    pub(super) heard: Heard,
    /// Where the host finds the model.
    pub source: ModelSource,
    /// Every call comes with a hint that is wrong.
    pub(super) misleads: bool,
    /// Beside the host's stage.
    pub(super) shadow: Option<SimShadow>,
    pub(super) pooling: Pooling,
    pub(super) spot_checks: SpotChecks,
    due: BinaryHeap<Due>,
    pending: BTreeMap<u64, Scheduled>,
    sequence: u64,
    fingerprint: u64,
    pub(super) forging: Forging,
    pub(super) false_passes: FalsePasses,
    pub(super) violation: Option<String>,
}

impl World {
    /// A world with a host, which is the first device.
    pub fn new(seed: u64, model: SimModel, share: Sharing, host: SimDevice) -> Self {
        let mut world = Self {
            model,
            peers: Vec::new(),
            relay: Relay::default(),
            now: 0.0,
            random: Random(seed),
            timeline: Timeline::default(),
            shown_plan: None,
            chats: Vec::new(),
            share,
            kv_cache: None,
            in_advance: true,
            on_demand: false,
            deputy: DeputyChoice::Nobody,
            hosts: Hosts::default(),
            protect: false,
            ends: Ends::Anywhere,
            heard: Heard::default(),
            source: ModelSource::Relay { name: "sim".into() },
            misleads: false,
            shadow: None,
            pooling: Pooling { replicas: 1, hedging: Hedging::Adaptive, ..Pooling::default() },
            spot_checks: SpotChecks { share: 0.0, ..SpotChecks::default() },
            due: BinaryHeap::new(),
            pending: BTreeMap::new(),
            sequence: 0,
            fingerprint: 0,
            forging: Forging::new(seed),
            false_passes: FalsePasses::new(seed),
            violation: None,
        };
        world.add(host, 0.0);
        world.peers[0].is_host = true;
        world
    }

    /// The host chooses a KV cache type; otherwise the largest one that fits is taken.
    pub fn prefer_kv_cache(&mut self, kv_cache: KvCacheType) {
        self.kv_cache = Some(kv_cache);
    }

    /// Each pooled expert has so many holders where memory allows, and stages ask them like this.
    pub fn pool_experts(&mut self, replicas: u8, hedging: Hedging) {
        (self.pooling.replicas, self.pooling.hedging) = (replicas, hedging);
    }

    /// This share of holders' answers is computed again.
    pub fn check_answers(&mut self, share: f64) {
        self.spot_checks.share = share;
    }

    /// The host's secret, which decides what it checks.
    pub fn check_by(&mut self, secret: u64) {
        self.spot_checks.secret = secret;
    }

    /// The host gives out this many invites, each for any number of devices.
    pub fn give_out_invites(&mut self, count: u8) {
        let issued =
            (0..count).map(|number| IssuedInvite { invite: invite(number), revoked: false, devices: Vec::new() });
        self.peers[0].doors.invites = issued.collect();
    }

    /// Experts for which a peer's work had to wait until they were loaded.
    pub fn missed(&self, index: usize) -> u64 {
        self.peers[index].missed
    }

    /// The plan that runs, as the host shows it.
    pub fn plan_up(&self) -> Option<Plan> {
        let plan = &self.view(0).room?.plan;
        plan.plan.clone().filter(|_| plan.status == PlanStatus::Up)
    }

    /// The least holders that any pooled expert has; none while nothing is pooled.
    pub fn fewest_holders(&self) -> usize {
        self.plan_up().and_then(|plan| plan.pooled().map(|(.., holders)| holders.len()).min()).unwrap_or(0)
    }

    /// Stages send a wrong hint with every call.
    pub fn mislead(&mut self) {
        self.misleads = true;
    }

    /// The host has a shadow that expects this text, prompt and answer, with what share of its tokens right, every how many
    /// milliseconds one, as long as it is wanted.
    pub fn expect_text(&mut self, text: Vec<u32>, right: f64, millis: f64) {
        self.shadow = Some(SimShadow::tokens(text, right, millis));
        let host = &mut self.peers[0];
        host.hints = HintOptions { predictor: PredictorKind::Shadow, shadow: true, ..HintOptions::default() };
        host.machine = host.fresh_machine();
    }

    /// The host has a shadow that is believed, and that says anything at any time, some of it of a text.
    pub fn foretell(&mut self, seed: u64, text: Vec<u32>) {
        self.shadow = Some(SimShadow::Any { random: Random(seed), text });
        let host = &mut self.peers[0];
        let predictor = PredictorKind::Shadow;
        host.hints = HintOptions { predictor, shadow: true, always: true, lead: 1, ..HintOptions::default() };
        host.machine = host.fresh_machine();
    }

    /// Experts that a peer has loaded on a guess.
    pub fn guessed(&self, index: usize) -> u64 {
        self.peers[index].guessed
    }

    /// How often a peer's engine was told to drop work.
    pub fn cancelled(&self, index: usize) -> u32 {
        self.peers[index].cancelled
    }

    /// When experts of a peer were called last; before the first call long ago.
    pub fn last_called(&self, index: usize) -> f64 {
        self.peers[index].called
    }

    /// Nothing is loaded before the model fits.
    pub fn wait_with_loading(&mut self) {
        self.in_advance = false;
    }

    /// Devices may load experts on demand: into slots, the one used longest ago makes room, and work waits meanwhile.
    pub fn load_on_demand(&mut self) {
        self.on_demand = true;
    }

    /// Another device enters at a time. Returns its index.
    pub fn add(&mut self, device: SimDevice, at: f64) -> usize {
        let index = self.peers.len();
        self.peers.push(SimPeer::new(index, device));
        self.schedule(at, index, Scheduled::Enter);
        index
    }

    /// Another device claims the room as its host at a time. Returns its index.
    pub fn add_host(&mut self, device: SimDevice, at: f64) -> usize {
        let index = self.add(device, at);
        self.peers[index].is_host = true;
        index
    }

    /// Why a peer had to leave the room, if it had to.
    pub fn closed(&self, index: usize) -> Option<&str> {
        self.peers[index].closed.as_deref()
    }

    /// A fault at a time.
    pub fn fault(&mut self, fault: Fault, at: f64) {
        self.schedule(at, fault.device().unwrap_or(0), Scheduled::Fault(fault));
    }

    /// A peer asks at a time, in a conversation of its own.
    pub fn prompt(&mut self, index: usize, request: u32, text: &str, max_tokens: u32, at: f64) {
        self.ask(index, request, &format!("conversation {request}"), text, max_tokens, at);
    }

    /// A peer asks at a time, in a conversation; `text` is all of it so far.
    pub fn ask(&mut self, index: usize, request: u32, conversation: &str, text: &str, max_tokens: u32, at: f64) {
        self.schedule(at, index, Scheduled::Prompt(question(request, conversation, text, max_tokens, None)));
    }

    /// A peer sends a conversation of messages at a time, through the chat template.
    pub fn converse(&mut self, index: usize, request: u32, messages: Vec<Message>, max_tokens: u32, at: f64) {
        let name = format!("conversation {request}");
        let question = question(request, &name, "", max_tokens, None);
        self.schedule(at, index, Scheduled::Prompt(PromptRequest { messages, raw: false, ..question }));
    }

    /// A peer asks at a time, in a conversation of its own, for a sampled answer, which repeats itself.
    pub fn ask_sampled(&mut self, index: usize, request: u32, text: &str, max_tokens: u32, seed: u64, at: f64) {
        let name = format!("conversation {request}");
        self.schedule(at, index, Scheduled::Prompt(question(request, &name, text, max_tokens, Some(seed))));
    }

    /// A peer asks at a time, in a conversation of its own, with a bias of the logits, and for log-probabilities.
    pub fn ask_biased(&mut self, index: usize, request: u32, text: &str, max_tokens: u32, bias: LogitBias, at: f64) {
        let name = format!("conversation {request}");
        let logits = LogitOptions { bias, top_logprobs: Some(1), form: AnswerForm::Free };
        let question = PromptRequest { logits, ..question(request, &name, text, max_tokens, None) };
        self.schedule(at, index, Scheduled::Prompt(question));
    }

    /// A peer asks at a time, in a conversation of its own, for an answer of this form: one of the language's expressions.
    pub fn ask_formed(&mut self, index: usize, request: u32, text: &str, max_tokens: u32, form: &str, at: f64) {
        let name = format!("conversation {request}");
        let logits = LogitOptions { form: AnswerForm::Regex(form.to_owned()), ..LogitOptions::default() };
        let question = PromptRequest { logits, ..question(request, &name, text, max_tokens, None) };
        self.schedule(at, index, Scheduled::Prompt(question));
    }

    /// A peer asks the same question again and again, from one time until another, each time in a new conversation.
    pub fn chat(&mut self, index: usize, text: &str, max_tokens: u32, from: f64, until: f64) {
        self.chats.push(Chat { text: text.to_owned(), max_tokens, until });
        self.prompt(index, CHAT_REQUESTS * self.chats.len() as u32, text, max_tokens, from);
    }

    /// An answer has ended: whoever chats asks again.
    pub(super) fn continue_chat(&mut self, index: usize, request: RequestId) {
        let chat = (request.0 / CHAT_REQUESTS).checked_sub(1).and_then(|chat| self.chats.get(chat as usize));
        if let Some(chat) = chat.filter(|chat| self.now < chat.until) {
            let (text, max_tokens) = (chat.text.clone(), chat.max_tokens);
            self.prompt(index, request.0 + 1, &text, max_tokens, self.now);
        }
    }

    /// All answers so far, with who asked.
    pub fn answers(&self) -> impl Iterator<Item = (usize, &Answer)> {
        self.peers.iter().enumerate().flat_map(|(index, peer)| peer.answers.values().map(move |answer| (index, answer)))
    }

    /// The host found a peer's results wrong.
    pub fn has_blamed(&self, index: usize) -> bool {
        self.peers[0].machine.has_blamed(self.peers[index].id)
    }

    /// The host lets a peer in, or not.
    pub fn admit(&mut self, index: usize, allow: bool) {
        let peer = self.peers[index].id;
        self.event(0, Event::Admit { peer, allow });
    }

    /// The host chooses how work is shared out.
    pub fn set_sharing(&mut self, sharing: Sharing) {
        self.event(0, Event::SetSharing(sharing));
    }

    /// The host puts a peer out.
    pub fn remove(&mut self, index: usize) {
        let peer = self.peers[index].id;
        self.event(0, Event::Remove(peer));
    }

    /// The host puts a peer's device out for good.
    pub fn ban(&mut self, index: usize) {
        let peer = self.peers[index].id;
        self.event(0, Event::Ban(peer));
    }

    /// The host renews the room's link.
    pub fn renew(&mut self) {
        self.event(0, Event::Renew);
    }

    /// The number of the link that a peer has; of the room's link, on the host.
    pub fn link(&self, index: usize) -> u32 {
        self.peers[index].link
    }

    /// The host's list of who is in the room has this peer.
    pub fn is_listed(&self, index: usize) -> bool {
        let peer = self.peers[index].id;
        self.view(0).room.is_some_and(|room| room.members.iter().any(|member| member.peer == peer))
    }

    /// Somebody gives a peer the room's newest link.
    pub fn give_link(&mut self, index: usize) {
        self.peers[index].link = self.peers[0].link;
    }

    /// The generation of the group secret that a peer has; none before the host let it in.
    pub fn group(&self, index: usize) -> Option<u32> {
        self.peers[index].group
    }

    /// The peers with which a peer has a session.
    pub fn in_session(&self, index: usize) -> Vec<usize> {
        let line = self.peers[index].line.as_ref();
        line.iter().flat_map(|line| &line.sessions).filter_map(|route| self.behind(*route)).collect()
    }

    /// Somebody writes a question at a peer.
    pub fn write(&mut self, index: usize) {
        self.event(index, Event::Writing);
    }

    /// How often a peer's device was told that work is about to come.
    pub fn expecting(&self, index: usize) -> u32 {
        self.peers[index].expecting
    }

    /// A peer stops an answer now.
    pub fn stop(&mut self, index: usize, request: u32) {
        self.event(index, Event::Stop(RequestId(request)));
    }

    /// What came of a question.
    pub fn answer(&self, index: usize, request: u32) -> Option<&Answer> {
        self.peers[index].answers.get(&RequestId(request))
    }

    /// A peer's view.
    pub fn view(&self, index: usize) -> SwarmView<'_> {
        self.peers[index].machine.view()
    }

    /// A peer's state machine.
    pub fn machine(&self, index: usize) -> &Peer {
        &self.peers[index].machine
    }

    /// What a peer has recorded.
    pub fn trace(&self, index: usize) -> Vec<TraceLine> {
        self.peers[index].machine.trace()
    }

    /// The virtual clock, milliseconds.
    pub fn now(&self) -> f64 {
        self.now
    }

    /// A rule that a state machine broke, if one was broken.
    pub fn violation(&self) -> Option<&str> {
        self.violation.as_deref()
    }

    /// Notes that a rule was broken. The first one counts: what is broken later may follow from it.
    pub(super) fn violate(&mut self, what: String) {
        self.violation.get_or_insert(what);
    }

    /// A hash of everything that happened: two runs with the same one are the same run.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Tokens, entries, departures and plans so far.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// Runs until a time, or until `done`.
    pub fn run(&mut self, until: f64, done: impl Fn(&World) -> bool) {
        while let Some(Reverse((at, sequence, index, life))) = self.due.pop() {
            let time = f64::from_bits(at);
            if time > until {
                self.due.push(Reverse((at, sequence, index, life)));
                self.now = until;
                return;
            }
            self.now = time;
            self.fingerprint = mix(self.fingerprint ^ at.rotate_left(17) ^ sequence << 8 ^ index as u64);
            let Some(scheduled) = self.pending.remove(&sequence) else { continue };
            let peer = &self.peers[index];
            if !scheduled.is_inside() {
                self.dispatch(index, scheduled);
            } else if peer.life == life && peer.frozen_until > self.now {
                // It keeps its number, so that nothing that came later overtakes it if the tab stays frozen for longer.
                let until = peer.frozen_until.to_bits();
                self.pending.insert(sequence, scheduled);
                self.due.push(Reverse((until, sequence, index, life)));
            } else if peer.life == life {
                self.dispatch(index, scheduled);
            }
            if done(self) {
                return;
            }
        }
    }

    pub(super) fn schedule(&mut self, at: f64, index: usize, scheduled: Scheduled) {
        self.sequence += 1;
        self.pending.insert(self.sequence, scheduled);
        self.due.push(Reverse((at.max(self.now).to_bits(), self.sequence, index, self.peers[index].life)));
    }

    fn dispatch(&mut self, index: usize, scheduled: Scheduled) {
        match scheduled {
            Scheduled::Event(Event::Tick) => {
                self.schedule(self.now + TICK_MILLIS, index, Scheduled::Event(Event::Tick));
                self.report_progress(index);
                self.renew_lease(index);
                self.event(index, Event::Tick);
            }
            Scheduled::Event(event) => self.event(index, event),
            Scheduled::AtPeer(route, what) => self.at_peer(index, route, what),
            // The page has no Send while it is not in a room with a host.
            Scheduled::Prompt(prompt) if self.view(index).membership != Membership::Inside => {
                self.schedule(self.now + TICK_MILLIS, index, Scheduled::Prompt(prompt));
            }
            Scheduled::Prompt(prompt) => {
                self.peers[index].answers.insert(prompt.request, Answer::default());
                self.event(index, Event::Prompt(prompt));
            }
            Scheduled::Enter => self.enter(index),
            Scheduled::Dial => self.dialled(index),
            Scheduled::Loaded(load) => self.loaded(index, load),
            Scheduled::Kept(doors) => {
                let link = doors.link;
                // Those that it has may be newer ones, from after the renewal.
                if self.peers[index].doors.link != link {
                    self.peers[index].doors = *doors;
                }
                self.event(index, Event::DoorsKept(link));
            }
            Scheduled::Overdue => self.end_overdue(index),
            Scheduled::AtRelay(route, what) => self.at_relay(index, route, what),
            Scheduled::GivenUp(route) => self.given_up(route, index),
            Scheduled::Fault(fault) => self.inject(fault),
        }
    }

    fn enter(&mut self, index: usize) {
        self.annotate_entry(index);
        let peer = &mut self.peers[index];
        peer.present = true;
        let first = if peer.is_host {
            (peer.link, peer.group) = (peer.doors.link, Some(peer.doors.generation));
            Event::Host(self.host_command(index))
        } else {
            Event::Join
        };
        let dial = self.now + DIAL_TRIPS * self.peers[index].device.link.latency;
        self.event(index, first);
        self.contribute(index);
        self.schedule(dial, index, Scheduled::Dial);
        let tick = self.now + TICK_MILLIS * self.random.unit();
        self.schedule(tick, index, Scheduled::Event(Event::Tick));
    }

    /// The peer's owner contributes its device, if it has a budget.
    pub(super) fn contribute(&mut self, index: usize) {
        if let Some(contribution) = self.peers[index].device.contribution() {
            self.event(index, Event::Contribute(contribution));
        }
    }

    /// Feeds a peer's state machine an event and performs its actions.
    pub(super) fn event(&mut self, index: usize, event: Event) {
        if !self.peers[index].present {
            return;
        }
        let peer = &mut self.peers[index];
        if let Some(recorded) = &mut peer.recorded {
            recorded.push((event.clone(), Millis(self.now)));
        }
        let actions = peer.machine.on(event, Millis(self.now));
        for action in actions {
            self.perform(index, action);
        }
        if index == 0 {
            self.annotate_plan();
        }
    }
}

fn question(request: u32, conversation: &str, text: &str, max_tokens: u32, seed: Option<u64>) -> PromptRequest {
    PromptRequest {
        request: RequestId(request),
        conversation: conversation.to_owned(),
        messages: vec![Message::new(Role::User, text)],
        raw: true,
        max_tokens,
        sampling: sampling(seed),
        reasoning: None,
        tools: ToolOffer::default(),
        logits: LogitOptions::default(),
    }
}
