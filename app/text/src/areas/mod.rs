//! The texts, one module for each part of what a person sees. Each text stands here once, in English, with its name, its arguments
//! and a comment for translators:
//!
//! ```text
//! table! {
//!     /// How an answer goes.
//!     AnswerTexts {
//!         /// Place in the queue.
//!         queued(place: Count) = "Others are asking too. You are number { $place }.";
//!         /// How many wait.
//!         waiting(askers: Count) = [one] "{ $askers } device asks." [other] "{ $askers } devices ask.";
//!     }
//! }
//! ```
//!
//! The texts are patterns of Project Fluent, and the first argument chooses the form. Each becomes a method of its table:
//! `texts().answer.queued(3)`. A kind of argument ([`crate::value`]) says how the value is written. A text that lacks an argument,
//! or has one more, does not compile. The argument of kind `Element` is no value but markup: the method returns what stands before
//! and behind it.

mod bench;
mod catalog;
mod chat;
mod decision;
mod deputy;
mod dialog;
mod door;
mod door_log;
mod entry;
mod host;
mod invite;
mod node;
mod own;
mod page;
mod phrases;
mod pooling;
mod room;
mod seats;
mod serve;
mod settings;
mod show;
mod stored;
mod template;
mod terminal;
mod verify;
mod weights;

pub use bench::BenchTexts;
pub use catalog::CatalogTexts;
pub use chat::{
    AnswerTexts, AttachTexts, ChatTexts, ComposerTexts, ConversationsTexts, KeysTexts, NotYetTexts, PeriodTexts,
    TransferTexts, TurnTexts, VersionsTexts,
};
pub use decision::{DeviceDecisionTexts, PlanDecisionTexts, RunningDecisionTexts, WhyTexts};
pub use deputy::DeputyTexts;
pub use dialog::{HostTexts, OptionsTexts, VerdictTexts};
pub use door::{DoorTexts, RelayTexts, RoomsTexts};
pub use door_log::DoorLogTexts;
pub use entry::{FailureTexts, LeaveTexts, RequestTexts};
pub use host::{ArithmeticTexts, GuesserTexts, KvCacheTexts, SharingTexts};
pub use invite::{InviteTexts, PrivacyTexts, ProgramsTexts, PutOutTexts, SealedTexts};
pub use node::NodeRelayTexts;
pub use own::OwnDeviceTexts;
pub use page::NoticeTexts;
pub use phrases::{ButtonTexts, KindTexts, ModelTexts, OnDemandTexts, PartTexts, ProgressTexts, TimelineTexts};
pub use pooling::PoolingTexts;
pub use room::{ConnectionTexts, MemberTexts, PhaseTexts, PlanTexts, RoleTexts, StepTexts};
pub use seats::{CreditTexts, ExpertsTexts, PathTexts, SeatTexts, TableTexts};
pub use serve::{ApiTexts, ServeTexts};
pub use settings::{
    AccessTexts, ConnectionsTexts, DeviceTexts, OwnAnswersTexts, SamplingTexts, SettingsTexts, StorageTexts,
};
pub use show::{DoctorTexts, ShowTexts};
pub use stored::StoredTexts;
pub use template::TemplateTexts;
pub use terminal::{ModelPathTexts, SecretFileTexts, TerminalTexts};
pub use verify::VerifyTexts;
pub use weights::WeightsTexts;

use crate::{Language, Message};

macro_rules! areas {
    ($( $(#[$doc:meta])* $area:ident: $table:ident, )+) => {
        /// Every text of one language.
        #[derive(Debug)]
        pub struct Texts {
            /// Its rules.
            pub language: &'static Language,
            $( $(#[$doc])* pub $area: $table, )+
        }

        impl Texts {
            pub(crate) const ENGLISH: Self = Self {
                language: &crate::english::LANGUAGE,
                $( $area: $table::ENGLISH, )+
            };

            /// Every text with its id, for tests and for translators.
            #[must_use]
            pub fn all(&self) -> Vec<Message> {
                let mut all = Vec::new();
                $( self.$area.add_all(stringify!($area), &mut all); )+
                all
            }

            /// Every form of every text.
            pub(crate) fn forms(&self) -> Vec<&'static str> {
                let mut forms = Vec::new();
                $( self.$area.add_forms(&mut forms); )+
                forms
            }
        }
    };
}

areas! {
    /// What a loading device does, as the start of a line.
    phase: PhaseTexts,
    /// The same as short steps of a list.
    step: StepTexts,
    /// How a member is.
    member: MemberTexts,
    /// What a member does in the room.
    role: RoleTexts,
    /// How far the room's plan is.
    plan: PlanTexts,
    /// Why a plan stays or goes.
    plan_decision: PlanDecisionTexts,
    /// What a device does, and what happens if it leaves.
    device_decision: DeviceDecisionTexts,
    /// What is chosen while tokens are written.
    running_decision: RunningDecisionTexts,
    /// What stands behind "Why this plan?".
    why: WhyTexts,
    /// How the connection to the room is.
    connection: ConnectionTexts,
    /// How the KV cache is stored.
    kv_cache: KvCacheTexts,
    /// How prompts are computed.
    arithmetic: ArithmeticTexts,
    /// How the room's work is shared.
    sharing: SharingTexts,
    /// The deputy.
    deputy: DeputyTexts,
    /// Who guesses experts.
    guesser: GuesserTexts,
    /// How experts are spread over devices.
    pooling: PoolingTexts,
    /// The bytes of a model.
    weights: WeightsTexts,
    /// How an answer of the chat goes.
    answer: AnswerTexts,
    /// Conversations as files.
    transfer: TransferTexts,
    /// When a conversation was last changed.
    period: PeriodTexts,
    /// What can be done with a question.
    turn: TurnTexts,
    /// Steps through versions of a question or an answer.
    versions: VersionsTexts,
    /// Text files that go along with a question.
    attach: AttachTexts,
    /// What is wrong with the message in the composer.
    composer: ComposerTexts,
    /// A device that asks to come in.
    request: RequestTexts,
    /// What becomes of a room when its host leaves it.
    leave: LeaveTexts,
    /// A room without a model.
    failure: FailureTexts,
    /// How the prompts of a model without a usable chat template are written.
    template: TemplateTexts,
    /// Why a question cannot be sent yet.
    not_yet: NotYetTexts,
    /// What this device does for the room.
    own: OwnDeviceTexts,
    /// What the page has to say about itself.
    notice: NoticeTexts,
    /// The catalogue of well-known models.
    catalog: CatalogTexts,
    /// The chat around its answers.
    chat: ChatTexts,
    /// The list of conversations.
    conversations: ConversationsTexts,
    /// What keys do.
    keys: KeysTexts,
    /// The dialog for hosting a model.
    host: HostTexts,
    /// Its options.
    options: OptionsTexts,
    /// Whether a model fits the memory lent.
    verdict: VerdictTexts,
    /// The settings.
    settings: SettingsTexts,
    /// Direct connections.
    connections: ConnectionsTexts,
    /// How answers are generated.
    sampling: SamplingTexts,
    /// How one conversation is answered, if not like all others.
    own_answers: OwnAnswersTexts,
    /// What this device can do.
    device: DeviceTexts,
    /// What the browser stores.
    storage: StorageTexts,
    /// Access tokens for files that a server gives only to those it knows.
    access: AccessTexts,
    /// The host's log of its doors.
    door_log: DoorLogTexts,
    /// Links and invites.
    invite: InviteTexts,
    /// How other programs use the room's model.
    programs: ProgramsTexts,
    /// A member that the host puts out.
    put_out: PutOutTexts,
    /// What is sealed between devices.
    sealed: SealedTexts,
    /// Who can see what.
    privacy: PrivacyTexts,
    /// The table.
    table: TableTexts,
    /// A device at the table.
    seat: SeatTexts,
    /// How long a token takes.
    path: PathTexts,
    /// What devices have computed.
    credit: CreditTexts,
    /// Experts that lie on several devices.
    experts: ExpertsTexts,
    /// The front page.
    door: DoorTexts,
    /// The list of rooms.
    rooms: RoomsTexts,
    /// A relay whose lists cannot be read.
    relay: RelayTexts,
    /// Buttons of all dialogs.
    button: ButtonTexts,
    /// How far something is.
    progress: ProgressTexts,
    /// A model.
    model: ModelTexts,
    /// What a device holds of a model.
    part: PartTexts,
    /// Kinds of devices.
    kind: KindTexts,
    /// Marks in the picture of a room over time.
    timeline: TimelineTexts,
    /// Experts that are loaded when a token needs them.
    on_demand: OnDemandTexts,
    /// The benchmark.
    bench: BenchTexts,
    /// The relay, as a node meets it.
    node_relay: NodeRelayTexts,
    /// The command line.
    terminal: TerminalTexts,
    /// What `potluck-node serve` says.
    serve: ServeTexts,
    /// The API of `potluck-node serve`.
    api: ApiTexts,
    /// What the terminal says about stored models.
    stored: StoredTexts,
    /// What `show` says of a model.
    show: ShowTexts,
    /// What `doctor` says of this device.
    doctor: DoctorTexts,
    /// What `potluck-node verify` says.
    verify: VerifyTexts,
    /// A model's file on the command line.
    model_path: ModelPathTexts,
    /// Files with keys on this device.
    secret_file: SecretFileTexts,
}
