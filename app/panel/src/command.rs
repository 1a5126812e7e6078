//! What the page asks of the node, and what the node tells the page.

use potluck_plan::{Arithmetic, DeviceId, Ends, KvCacheType, ModelId, PeerId, Pooling, Sharing};
use potluck_protocol::{
    AnswerPart, DeputyChoice, DeviceKind, Doors, InviteId, InviteKind, Leaving, ModelSource, PromptRequest, RequestId,
    Term,
};
use serde::{Deserialize, Serialize};

use crate::{AccessTokens, BenchChoice, BenchEvent, DirectConnections, KeySeed, Notice, RoomKeys, Status};

/// From the page to the node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ToNode {
    /// First message: who this tab is. The node answers [`ToPage::Ready`].
    Start {
        /// The page's build; compared with the node's own.
        build: String,
        /// Origin of the relay, `http://localhost:8080`.
        relay: String,
        /// The device's key, the same in every tab of the browser.
        device_key: KeySeed,
        /// The tab's key, kept in its session storage. It decides the peer's id.
        tab_key: KeySeed,
        /// What others see: "Kitchen laptop".
        name: String,
        /// Icon to show.
        kind: DeviceKind,
    },
    /// This device's access tokens, in place of the earlier ones. They stay on it.
    AccessTokens(AccessTokens),
    /// Whether this device connects to other devices past the relay, and in a room that it hosts: whether members do.
    DirectConnections(DirectConnections),
    /// Open a room (or re-open the one this tab hosted before a reload) with a model.
    Host(HostChoice),
    /// Enter a room.
    Join {
        /// The room's id.
        room: String,
        /// The secret of the room's link; without it the host is asked.
        key: Option<String>,
    },
    /// Lend this device to the room.
    Contribute(ContributeChoice),
    /// Stop lending, stay in the room.
    StopContributing,
    /// Leave the room; everyone is told at once. What becomes of a room that this tab hosts: it ends, or this browser may open
    /// it again. For a guest both mean the same.
    Leave(Leaving),
    /// Change the name others see.
    Rename(String),
    /// The host lets a waiting peer in, or not.
    Admit {
        /// Who waits.
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
    /// The host gives out an invite; its link comes with the next [`Status`].
    Invite(InviteChoice),
    /// The host takes an invite back.
    Revoke(InviteId),
    /// The host renews the room's link, the door keys of its invites and the group's secret. Those who stay get the new ones.
    RenewLink,
    /// Answer to [`ToPage::Doors`]: doors with this number of the link are kept.
    DoorsKept(u32),
    /// The other answer: doors with this number of the link cannot be kept. The room then goes on with the keys that it has.
    DoorsLost(u32),
    /// How the host wants the work shared from now on.
    SetSharing(Sharing),
    /// Choose who hosts the room if this device is lost.
    SetDeputy(DeputyChoice),
    /// Somebody writes a question: devices get ready for it. Said again while they write, about once a second.
    Writing,
    /// Ask the model.
    Prompt(PromptRequest),
    /// Stop an answer; what was written stays.
    Stop(RequestId),
    /// The tab was hidden or shown.
    Visibility {
        /// Hidden now.
        hidden: bool,
    },
    /// Run the self-test again.
    SelfTest,
    /// List what the browser's storage holds.
    ListStorage,
    /// Delete a model's pieces from the storage.
    DeleteStored {
        /// Which model.
        model: ModelId,
    },
    /// Send the recorded events and actions.
    Trace,
    /// Measure a model on this device alone. Its file travels beside the message as with [`ToNode::Host`].
    Bench(BenchChoice),
    /// Stop measuring.
    StopBench,
}

/// From the node to the page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ToPage {
    /// The node runs; its build.
    Ready {
        /// The node's build.
        build: String,
    },
    /// A room is opened with these keys. The page keeps them, to open it again after a reload.
    Hosting(RoomKeys),
    /// The node hosts the room from now on, because its host is lost.
    TookOver(Box<HostChoice>),
    /// Another device hosts the room of this node, which enters it again like this.
    SteppedDown {
        /// The room's id.
        room: String,
        /// The secret of its link.
        key: Option<String>,
    },
    /// Who may come into the hosted room has changed. The page keeps it as long as the room, and says so with
    /// [`ToNode::DoorsKept`], or [`ToNode::DoorsLost`] if it cannot: renewed keys count from the first answer on.
    Doors(Box<Doors>),
    /// How everything stands. Sent on change, at most a few times a second.
    Status(Box<Status>),
    /// Part of an answer to a [`ToNode::Prompt`] of this page.
    Answer {
        /// Which prompt.
        request: RequestId,
        /// What happened.
        event: AnswerPart,
    },
    /// Something a person should read.
    Notice(Notice),
    /// What the storage holds.
    Storage {
        /// Models, fully or partly here.
        models: Vec<StoredModel>,
        /// Bytes used by this site.
        used: u64,
        /// Bytes the browser allows.
        quota: u64,
        /// The browser promised not to evict them.
        persistent: bool,
    },
    /// The recorded events and actions, as JSON.
    Trace(String),
    /// A step of a benchmark.
    Bench(BenchEvent),
}

/// What the host chose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostChoice {
    /// Which model.
    pub model: ModelSource,
    /// Bytes the host's own device lends; zero to lend nothing.
    pub budget: u64,
    /// Positions of context, all conversations together.
    pub context: u32,
    /// How keys and values are stored; nothing for the largest type with which model and context fit.
    #[serde(default)]
    pub cache: Option<KvCacheType>,
    /// How products are computed; nothing for what suits the host's GPU ([`Arithmetic::automatic`]).
    #[serde(default)]
    pub arithmetic: Option<Arithmetic>,
    /// How work is shared out.
    pub sharing: Sharing,
    /// Whether the host keeps the ends of the model, and with them all token ids and logits.
    #[serde(default)]
    pub ends: Ends,
    /// Listed on the door of everyone on this relay.
    pub visible: bool,
    /// The keys of the room to open again; `None` for a new room.
    pub resume: Option<RoomKeys>,
    /// Who may come into it.
    #[serde(default)]
    pub doors: Doors,
    /// Of a file on this device: others get no bytes but the experts that they are to hold.
    #[serde(default)]
    pub protect: bool,
    /// Who guesses which experts come next, where they load on demand.
    #[serde(default)]
    pub guesser: ExpertGuesser,
    /// How experts are spread over devices, where they are.
    #[serde(default)]
    pub pooling: Pooling,
    /// Who hosts the room if this device is lost.
    #[serde(default)]
    pub deputy: DeputyChoice,
    /// The term in which this device hosts.
    #[serde(default)]
    pub term: Term,
}

/// Who guesses which experts come next, where they load on demand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpertGuesser {
    /// As the node is set up: in a page, nobody for its own experts, and what was seen before for those of others.
    #[default]
    Usual,
    /// A shadow, which this device makes from the model and runs in a part of the memory that it lends.
    SmallerCopy,
}

/// An invite that the host wants to give out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InviteChoice {
    /// What it allows.
    pub kind: InviteKind,
    /// The host is asked before a device comes in.
    pub ask: bool,
    /// How long new devices may use it.
    pub hours: u32,
    /// How many devices may use it.
    pub uses: u16,
}

/// What a contributor chose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ContributeChoice {
    /// Bytes of GPU memory to lend.
    pub budget: u64,
}

/// A model in the browser's storage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredModel {
    /// Which model.
    pub model: ModelId,
    /// Its name.
    pub name: String,
    /// Bytes that are here.
    pub bytes: u64,
    /// Bytes of the whole model.
    pub total: u64,
}
