//! Input and output of the state machines. No I/O, no clock: the driver in `potluck-node`, the simulator and the
//! tests feed the same events and perform the same actions.

use std::sync::Arc;

use potluck_panel::Condition;
use potluck_plan::{
    Arithmetic, BlockIndex, Bytes, Computed, ConversationId, DeviceId, Ends, ExpertId, KvCacheType, Millis, ModelId,
    ModelShape, PeerId, PlanEpoch, PooledExperts, Pooling, Ticket, WeightUnit, Work,
};
use potluck_predict::{PredictorKind, ShadowWord};
use potluck_protocol::{
    AnswerPart, CalibrationRuns, Contribution, DeputyChoice, DeviceKind, Doors, Frame, Invite, InviteId, Leaving,
    LoadFault, LoadReport, ModelCard, ModelSource, PieceFault, PieceRequest, PromptRequest, RequestId, Sharing,
    Succession, UnixSeconds,
};

use crate::{FileParts, Language, Ownership};

/// A peer's address on the relay; new at every connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelayRoute(pub u32);

/// A model whose header is read: everything the coordinator and the executor need, besides the weights.
#[derive(Clone)]
pub struct OpenedModel {
    /// As people see it.
    pub card: ModelCard,
    /// Sizes for planning, with the KV cache type in use.
    pub shape: ModelShape,
    /// The sizes with each KV cache type that this model supports, largest first.
    pub shapes: Vec<ModelShape>,
    /// Bytes that every device with work needs besides weights and KV cache, as the engine's layout says.
    pub overhead: Bytes,
    /// Text to tokens and back.
    pub language: Arc<dyn Language>,
    /// Where its units lie in the host's file, if others get them from there.
    pub parts: Option<Arc<FileParts>>,
}

impl OpenedModel {
    /// Its sizes with a KV cache type, if it supports it.
    pub fn shape_with(&self, kv_cache: KvCacheType) -> Option<&ModelShape> {
        self.shapes.iter().find(|shape| shape.kv_cache == kv_cache)
    }
}

/// Input of the state machine.
#[derive(Clone)]
pub enum Event {
    /// The page opens a room with a model.
    Host(HostCommand),
    /// The page enters a room.
    Join,
    /// The page contributes this device; budget and speed were measured.
    Contribute(Contribution),
    /// The page stops contributing.
    StopContributing,
    /// The page leaves the room, which it may be the host of.
    Leave(Leaving),
    /// The page renames the device.
    Rename(String),
    /// The tab was hidden or shown.
    Visibility {
        /// Hidden now.
        hidden: bool,
    },
    /// The host lets a waiting peer in, or not.
    Admit {
        /// Who.
        peer: PeerId,
        /// In, or not.
        allow: bool,
    },
    /// The host puts a member out. It may come back.
    Remove(PeerId),
    /// The host puts a member's device out for good.
    Ban(PeerId),
    /// The host lets a banned device in again.
    Unban(DeviceId),
    /// The host gives out an invite, which the driver has signed.
    Invite(Invite),
    /// The host takes an invite back.
    Revoke(InviteId),
    /// The host renews the room's link, door keys and group secret.
    Renew,
    /// Answer to [`Action::DoorsChanged`]: doors with this number of the link are kept, so that no reload loses them.
    DoorsKept(u32),
    /// The other answer: doors with this number of the link cannot be kept. Renewed keys that they have are given to nobody.
    DoorsLost(u32),
    /// The host chose another way of sharing the work.
    SetSharing(Sharing),
    /// The host chose who hosts the room if it is lost.
    SetDeputy(DeputyChoice),
    /// Somebody writes a question on the page.
    Writing,
    /// The page asks the model.
    Prompt(PromptRequest),
    /// The page stops an answer.
    Stop(RequestId),

    /// The relay let this peer into the room.
    Connected,
    /// A sealed session with a peer is up. A newer session of the same peer replaces the older one.
    PeerConnected {
        /// Its address on the relay.
        route: RelayRoute,
        /// Who it is: it has proved to hold this peer's key.
        peer: PeerId,
        /// Its device: the device's key has certified the peer's.
        device: DeviceId,
        /// What else it has proved.
        proof: Proof,
        /// The time here, which decides whether an invite has expired.
        at: UnixSeconds,
    },
    /// Somebody's connection, or the session over it, ended.
    RouteLeft(RelayRoute),
    /// The relay put this host out: a newer connection holds the room's owner key. The driver does not redial.
    Replaced,
    /// The relay does not have this peer as the host any more: another device hosts the room in a later term.
    Superseded,
    /// The relay does not let this peer take over from a host that it hears.
    HostPresent,
    /// The relay has confirmed that this peer hosts.
    LeaseRenewed {
        /// When it was asked.
        asked: Millis,
    },
    /// The connection to the relay was lost; the driver redials.
    Disconnected,
    /// A frame arrived over the session with a peer.
    Frame {
        /// From which connection.
        route: RelayRoute,
        /// The sender, as its session has proved.
        from: PeerId,
        /// The frame.
        frame: Frame,
    },

    /// Answer to [`Action::OpenModel`].
    ModelOpened(Arc<OpenedModel>),
    /// Answer to [`Action::OpenModel`], or what a load found out about the model's bytes: one sentence.
    ModelFailed(String),
    /// Progress of [`Action::Load`].
    LoadProgress {
        /// Of the load.
        epoch: PlanEpoch,
        /// How far.
        report: LoadReport,
        /// Bytes of weights and KV cache on the GPU now.
        used: Bytes,
    },
    /// Answer to [`Action::Load`]: everything is on the GPU and tested.
    Loaded(PlanEpoch),
    /// Answer to [`Action::Load`].
    LoadFailed(PlanEpoch, LoadFault),
    /// A result of [`Action::Compute`].
    Computed(Computed),
    /// A shadow of this device's model says which tokens a conversation of its engine's work will have, and what they will use, in any
    /// block and as early or late as it likes. Changes no result.
    Foreseen(ConversationId, ShadowWord),
    /// Answer to [`Action::Calibrate`]: the times, or one sentence.
    Calibrated(ModelId, Result<CalibrationRuns, String>),
    /// The GPU device is gone; the driver opens another and everything on it must be loaded again.
    DeviceLost(String),

    /// The driver's loader needs bytes of the host's file.
    PieceWanted(PieceRequest),
    /// Answer to [`Action::ReadPiece`].
    PieceRead {
        /// Who asked.
        peer: PeerId,
        /// Its id of the piece.
        id: u64,
        /// The bytes, or one sentence.
        bytes: Result<Vec<u8>, String>,
    },
    /// Sent at least four times a second.
    Tick,
    /// The time of [`Action::WakeAt`] has come. One too many does no harm.
    Wake,
}

/// What was chosen on the page when the room was opened.
#[derive(Clone, Debug, PartialEq)]
pub struct HostCommand {
    /// Where the model is.
    pub source: ModelSource,
    /// Positions of context, all conversations together.
    pub context: u32,
    /// KV cache type; `None` for the largest type with which model and context fit.
    pub kv_cache: Option<KvCacheType>,
    /// How products are computed.
    pub arithmetic: Arithmetic,
    /// How work is shared out.
    pub sharing: Sharing,
    /// Where the ends of the model may be.
    pub ends: Ends,
    /// Epoch above every plan epoch this host has used (kept over reloads), or 0.
    pub last_epoch: PlanEpoch,
    /// Devices load the part they will most likely get before the model fits the room.
    pub in_advance: bool,
    /// Who may come in, as it was kept.
    pub doors: Doors,
    /// The time of day, for the log of the doors.
    pub at: UnixSeconds,
    /// How experts are spread over devices.
    pub pooling: Pooling,
    /// Which answers of holders and stages are computed again.
    pub spot_checks: SpotChecks,
    /// A device whose memory does not hold all experts of its blocks may load them on demand.
    pub on_demand: bool,
    /// The host keeps everything but experts, and sends of its file only the experts that a device is to hold.
    pub protect: bool,
    /// Who hosts the room if this host is lost.
    pub deputy: DeputyChoice,
    /// The room's keys and the term, without which nobody can take over.
    pub ownership: Option<Ownership>,
}

impl HostCommand {
    /// Another device may host the room if this host is lost. A file on its disk goes with it.
    #[must_use]
    pub fn has_deputy(&self) -> bool {
        let is_file = matches!(self.source, ModelSource::File { .. });
        self.deputy != DeputyChoice::Nobody && self.ownership.is_some() && !is_file
    }

    /// Opens a model with this context; nothing else is chosen.
    #[must_use]
    pub fn of(source: ModelSource, context: u32) -> Self {
        Self {
            source,
            context,
            kv_cache: None,
            arithmetic: Arithmetic::Exact,
            sharing: Sharing::Fastest,
            ends: Ends::default(),
            last_epoch: PlanEpoch::default(),
            in_advance: true,
            doors: Doors::default(),
            at: UnixSeconds::default(),
            pooling: Pooling::default(),
            spot_checks: SpotChecks::default(),
            on_demand: true,
            protect: false,
            deputy: DeputyChoice::Nobody,
            ownership: None,
        }
    }
}

/// Which answers are computed again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpotChecks {
    /// Of 1.
    pub share: f64,
    /// Decides which answers are checked, and by whom. Nobody else knows it.
    pub secret: u64,
}

impl Default for SpotChecks {
    /// Who is wrong in one of 20 answers is found within 5,000 of them.
    fn default() -> Self {
        Self { share: 0.02, secret: 0 }
    }
}

/// How this device's stages tell holders with slots what they will probably call. Changes no result.
#[derive(Clone, Debug, PartialEq)]
pub struct HintOptions {
    /// Who guesses: nobody, a shadow ([`Event::Foreseen`]), for measurements [`PredictorKind::Recorded`], or else
    /// [`PredictorKind::Frequent`], which also stands in where a shadow has said nothing.
    pub predictor: PredictorKind,
    /// This device has a shadow, believed or not: it is told when it is wanted ([`Action::Foresee`]).
    pub shadow: bool,
    /// What a recorded text is known with, as shares, by round.
    pub recalls: Vec<f64>,
    /// Hints go out whether they pay or not.
    pub always: bool,
    /// Blocks for which hints go out together, and at least so many blocks ahead: the groups of od-moe.txt 3.1.
    pub lead: u16,
}

impl HintOptions {
    /// The default group: the paper's four.
    pub const LEAD: u16 = 4;

    /// The same with a shadow on this device. It is believed, unless a text is recorded: then it is only judged.
    #[must_use]
    pub fn with_shadow(self) -> Self {
        let predictor = match self.predictor {
            PredictorKind::Recorded => PredictorKind::Recorded,
            _ => PredictorKind::Shadow,
        };
        Self { predictor, shadow: true, ..self }
    }
}

impl Default for HintOptions {
    fn default() -> Self {
        Self { predictor: PredictorKind::Frequent, shadow: false, recalls: Vec::new(), always: false, lead: Self::LEAD }
    }
}

/// Identity of this peer. Only the name may change while a node lives.
#[derive(Clone, Debug, PartialEq)]
pub struct Identity {
    /// Kept over reloads.
    pub peer: PeerId,
    /// Of this browser.
    pub device: DeviceId,
    /// Random at each start.
    pub start: potluck_protocol::StartId,
    /// Build of page and node.
    pub build: String,
    /// Peers of one kernel class compute bit-identical results.
    pub kernel_class: u32,
    /// What others see.
    pub name: String,
    /// Icon.
    pub kind: DeviceKind,
    /// What the GPU adapter reports.
    pub adapter: String,
}

/// What a peer has proved besides its identity when its session was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// It owns the room: the room's id is a hash of its key.
    Host,
    /// It knows the secret of the room's link with this number, the newest one or an earlier one.
    Link(u32),
    /// It has an invite that the room's owner signed.
    Invite(Invite),
    /// It knows the secret that the host gives those it let in.
    Group,
    /// Nothing else: it found the room in the public list, and the host is asked.
    Visitor,
}

/// Output of the state machine, to be performed by the driver.
pub enum Action {
    /// Send a frame over the session at this address.
    Send {
        /// Where to.
        to: RelayRoute,
        /// What.
        frame: Frame,
    },
    /// Read a model's header; answered by [`Event::ModelOpened`] or [`Event::ModelFailed`].
    OpenModel(ModelSource),
    /// Load weight units onto the GPU and reserve KV cache; answered by [`Event::Loaded`] or [`Event::LoadFailed`]. A
    /// newer load replaces one that is still in progress.
    Load(LoadRequest),
    /// Time two ranges of a model's blocks on this device; answered by [`Event::Calibrated`].
    Calibrate {
        /// The model.
        model: ModelCard,
        /// Limit on bytes to use.
        budget: Bytes,
    },
    /// Free everything on the GPU.
    Unload,
    /// Work is about to come: the driver may keep the GPU from lowering its clock. Nothing depends on it.
    Expect,
    /// Submit to the engine, in order; answered by [`Event::Computed`].
    Compute(Work),
    /// Nobody waits for the result of this work any more: drop it if it has not begun. Whether it is answered nevertheless
    /// does not matter.
    Cancel(Ticket),
    /// Load experts into slots before they are called, the first one first, while there is no work. What was named before and
    /// is not there yet is not wanted any more.
    LoadAhead(Vec<(BlockIndex, ExpertId)>),
    /// From the next token on a shadow's words are wanted ([`Event::Foreseen`]), or not.
    Foresee(bool),
    /// Send [`Event::Wake`] at this time of the clock that [`crate::Peer::on`] is given, as exactly as possible. Each one
    /// counts; an earlier one does not replace a later one.
    WakeAt(Millis),
    /// Free the KV cache of a conversation of the engine's work.
    Forget(ConversationId),
    /// Part of an answer for this tab's page.
    Answer(RequestId, AnswerPart),
    /// One sentence for this tab's page.
    Notice {
        /// How bad.
        severity: Severity,
        /// What happened and what to do.
        sentence: String,
        /// The condition that it reports, if that can end.
        condition: Option<Condition>,
    },
    /// [`crate::Peer::view`] changed.
    ViewChanged,
    /// The host let this peer in, to chat or as a member: the driver tells the relay, where it may still count as a visitor. Once
    /// for each of the peer's sessions, before [`Action::Admitted`].
    LetIn(PeerId),
    /// The host turned away the peer at this address: the driver asks the relay to evict it, after delivering what was sent to it.
    PutOut(RelayRoute),
    /// The host let this peer in as a member: the driver gives it the group's secret, with which it meets the other members. Repeated
    /// at each of the peer's sessions.
    Admitted(PeerId),
    /// The host put a device out for good: from now on [`Action::Admitted`] gives the group's secret of this generation.
    Regroup(u32),
    /// The host renewed the room's keys, and they are kept: from now on the room's link is the one with this number.
    /// [`Action::Admitted`] gives the group's secret of this generation, and the link to whoever came by an earlier one.
    Renewed {
        /// Number of the link.
        link: u32,
        /// Generation of the group secret.
        generation: u32,
    },
    /// The driver gives a member that stays the renewed keys. Its sessions with others go on.
    GiveRenewed(PeerId),
    /// Who may come in has changed: the driver keeps it as long as the room, and answers by [`Event::DoorsKept`] or
    /// [`Event::DoorsLost`]. Doors with the next number of the link hold renewed keys, which count from that answer on.
    DoorsChanged(Box<Doors>),
    /// This deputy hosts the room from now on: the driver opens it with these keys in the next term, and answers by [`Event::Host`].
    TakeOver(Box<Succession>),
    /// Another device hosts the room: the driver enters it again as somebody with its link.
    StepDown,
    /// This peer is out of the room: refused, or it left. The driver closes the connection.
    Close {
        /// One sentence, unless this tab asked for it.
        reason: Option<String>,
    },
    /// Read bytes of the host's file for another peer.
    ReadPiece {
        /// Who asked.
        peer: PeerId,
        /// Which bytes.
        request: PieceRequest,
    },
    /// Bytes for the driver's loader, or why there are none.
    DeliverPiece {
        /// Of the request.
        id: u64,
        /// The bytes.
        bytes: Result<Vec<u8>, PieceFault>,
    },
}

/// Weight units and KV cache to have on the GPU.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadRequest {
    /// Names the load.
    pub epoch: PlanEpoch,
    /// The model.
    pub model: ModelCard,
    /// Units to hold when done, in the order in which a token needs them. All others are freed.
    pub units: Vec<WeightUnit>,
    /// Blocks whose experts come on demand, and the slots for them.
    pub pool: PooledExperts,
    /// Experts that share these slots.
    pub pool_experts: u32,
    /// A stage here has all blocks and calls experts that lie in the slots of others: a shadow could say which.
    pub hints: bool,
    /// Positions of KV cache to reserve for every block whose token mixer is held.
    pub context: u32,
    /// KV cache type.
    pub kv_cache: KvCacheType,
    /// How products are computed.
    pub arithmetic: Arithmetic,
    /// Limit on bytes to use in total.
    pub budget: Bytes,
}

/// How bad a notice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Good to know.
    Info,
    /// Something works less well than it could.
    Warning,
    /// Something does not work.
    Error,
}
