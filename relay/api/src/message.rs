//! The JSON text messages of a connection to a room.

use serde::{Deserialize, Serialize};

use crate::{BadFrame, Departure, EntryProof, Eviction, Nonce, PublicKey, Refusal, Route};

/// Version of these messages, sent in [`Control::Challenge`] and [`Control::Welcome`].
pub const VERSION: u32 = 5;

/// Most invites that an owner may call revoked: as many as a host remembers.
pub const MAX_REVOKED: usize = 64;

/// Most earlier links of a room that a relay knows.
pub const MAX_EARLIER_LINKS: usize = 16;

/// A text message from the relay to a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Control {
    /// The first message: prove that you may enter, with [`Request::Enter`].
    Challenge {
        /// [`VERSION`].
        version: u32,
        /// What your signature has to cover.
        nonce: Nonce,
    },
    /// You are in the room.
    Welcome {
        /// [`VERSION`].
        version: u32,
        /// The room's id.
        room: String,
        /// Your own route.
        route: Route,
        /// The owner's route while the owner is in the room; your own if you are the owner.
        owner: Option<Route>,
        /// The other members, oldest first.
        members: Vec<Route>,
        /// What the relay carries for a member.
        limits: MemberLimits,
    },
    /// A member joined.
    Join {
        /// Its route.
        route: Route,
        /// Whether it owns the room.
        owner: bool,
    },
    /// A member left.
    Leave {
        /// Its route.
        route: Route,
        /// Why.
        reason: Departure,
    },
    /// A receiver took some of your bytes: that much more may be on the way to it ([`MemberLimits::window_bytes`]).
    Taken {
        /// The receiver.
        route: Route,
        /// Bytes of your binary messages to it, routes included, since the last report.
        bytes: u64,
    },
    /// Your binary message named your own route, or one that is not in the room. It was dropped.
    Undeliverable {
        /// The route it named.
        route: Route,
    },
    /// Your message was malformed and was dropped. The connection stays open.
    BadFrame {
        /// What was wrong.
        reason: BadFrame,
        /// The same as a sentence.
        message: String,
    },
    /// You send faster than the limits allow: the relay stops reading from you for a while. Nothing is lost.
    Limited {
        /// Milliseconds until it reads on.
        wait_ms: u64,
    },
    /// The answer to [`Request::Ping`].
    Pong {
        /// The nonce of the ping.
        nonce: u64,
    },
    /// You cannot join; the relay closes the connection.
    Refused {
        /// Why.
        reason: Refusal,
        /// The same as a sentence.
        message: String,
    },
    /// You were in the room and have been removed; the relay closes the connection.
    Evicted {
        /// Why.
        reason: Eviction,
        /// The same as a sentence.
        message: String,
    },
    /// The relay stops. Reconnect; the owner creates the room again.
    Shutdown {
        /// The same as a sentence.
        message: String,
    },
    /// A type that only a newer relay sends: ignore it.
    #[serde(other, skip_serializing)]
    Unknown,
}

/// A text message from a member to the relay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Request {
    /// The first message, and only the first: the answer to [`Control::Challenge`].
    Enter {
        /// Why you may enter.
        proof: EntryProof,
    },
    /// Asks for a [`Control::Pong`]. A page cannot send WebSocket pings, so this is how it measures the round trip.
    Ping {
        /// Comes back in the answer.
        nonce: u64,
    },
    /// Changes how the room is listed. Only from the owner.
    Listing {
        /// The room's name in the list.
        title: String,
        /// Whether `GET /rooms` lists it.
        visible: bool,
    },
    /// Exactly these invites are revoked, by their numbers; at most [`MAX_REVOKED`]. A member that entered by one and was not let in
    /// is evicted. Only from the owner, who sends the list again after each entry.
    Revoked {
        /// All of them.
        invites: Vec<u32>,
    },
    /// Exactly these invites let nobody new in, but devices that the host let in by them may come back: at most [`MAX_REVOKED`].
    /// Whoever enters by one is a visitor until the host lets it in, even if the room is not listed; so is a member that entered by one
    /// before and was not let in. Only from the owner, who sends the list again after each entry.
    TakenBack {
        /// All of them.
        invites: Vec<u32>,
    },
    /// The room's link was renewed. From now on it has this join key, and exactly these keys are of its earlier links: at most
    /// [`MAX_EARLIER_LINKS`] in all. Whoever entered by an earlier link and was not let in becomes a visitor or is evicted, as somebody
    /// who enters by it now. Only from the owner, who sends it again after each entry.
    Links {
        /// Who signs with this key has the link.
        join_key: PublicKey,
        /// By these links only devices come back that the host let in before: whoever signs with one is a visitor until the host
        /// lets it in, even if the room is not listed.
        for_returning: Vec<PublicKey>,
        /// Nobody may come back by these.
        for_nobody: Vec<PublicKey>,
    },
    /// The host let a member in: if it came as a visitor, it no longer is one. Only from the owner.
    LetIn {
        /// Its route.
        route: Route,
    },
    /// The host evicts a member. It gets the messages that wait for it, and then its connection ends. Only from the owner.
    PutOut {
        /// Its route.
        route: Route,
    },
    /// The member mutes a route, as long as both are in the room. Messages from it are then undeliverable. The owner cannot be muted:
    /// whoever wants nothing from it leaves.
    Mute {
        /// The muted route.
        route: Route,
    },
}

/// What the relay carries for one member; of a visitor, until the host lets it in. Fields that an older relay does not send are
/// zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemberLimits {
    /// Longest binary message, route included.
    pub frame_bytes: u64,
    /// Bytes of binary messages, routes included, that a sender may have on the way to one receiver: sent, and not yet
    /// reported by [`Control::Taken`]. While none is on the way, one longer message may go. A sender that sends more is
    /// evicted. What is on the way to a member is forgotten when it leaves.
    pub window_bytes: u64,
    /// Messages a member may send per second.
    pub frames_per_second: u32,
    /// Parts of messages a member may send per second ([`join_parts`](crate::join_parts)); zero if the relay takes none.
    pub parts_per_second: u32,
    /// Bytes a member may send per second.
    pub bytes_per_second: u64,
    /// Seconds between two pings from the relay.
    pub ping_seconds: u64,
    /// Seconds without a byte after which a member counts as gone.
    pub silence_seconds: u64,
    /// Most members in a room.
    pub members: u32,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[track_caller]
    fn assert_json(control: &Control, json: &str) {
        assert_eq!(serde_json::to_string(control).unwrap(), json);
        assert_eq!(&serde_json::from_str::<Control>(json).unwrap(), control);
    }

    #[test]
    fn control_messages_keep_their_json() {
        assert_json(
            &Control::Leave { route: Route(18), reason: Departure::Silent },
            r#"{"type":"leave","route":18,"reason":"silent"}"#,
        );
        assert_json(
            &Control::BadFrame { reason: BadFrame::TooShort, message: "x".into() },
            r#"{"type":"bad-frame","reason":"too-short","message":"x"}"#,
        );
        assert_json(
            &Control::Refused { reason: Refusal::NoSuchRoom, message: "x".into() },
            r#"{"type":"refused","reason":"no-such-room","message":"x"}"#,
        );
    }

    #[test]
    fn an_entry_keeps_its_json() {
        assert_json(
            &Control::Challenge { version: VERSION, nonce: crate::Binary([0; 32]) },
            &format!(r#"{{"type":"challenge","version":5,"nonce":"{}"}}"#, "A".repeat(43)),
        );
        let enter = Request::Enter { proof: EntryProof::Visitor };
        assert_eq!(serde_json::to_string(&enter).unwrap(), r#"{"type":"enter","proof":{"as":"visitor"}}"#);
        assert_json(&Control::Join { route: Route(5), owner: true }, r#"{"type":"join","route":5,"owner":true}"#);
        assert_json(&Control::Taken { route: Route(5), bytes: 9 }, r#"{"type":"taken","route":5,"bytes":9}"#);
    }

    #[test]
    fn a_welcome_keeps_its_json() {
        let limits = MemberLimits { frame_bytes: 1, members: 64, ..MemberLimits::default() };
        let members = vec![Route(15), Route(16)];
        let (room, route, owner) = ("k3v9".into(), Route(17), Some(Route(15)));
        let welcome = Control::Welcome { version: VERSION, room, route, owner, members, limits };
        assert_json(
            &welcome,
            concat!(
                r#"{"type":"welcome","version":5,"room":"k3v9","route":17,"owner":15,"members":[15,16],"limits":{"frame_bytes":1,"#,
                r#""window_bytes":0,"frames_per_second":0,"parts_per_second":0,"bytes_per_second":0,"ping_seconds":0,"silence_seconds":0,"#,
                r#""members":64}}"#
            ),
        );
    }

    #[test]
    fn types_and_reasons_of_a_newer_relay_are_understood_as_unknown() {
        let read = |json| serde_json::from_str::<Control>(json).unwrap();
        assert_eq!(read(r#"{"type":"weather","rain":5}"#), Control::Unknown);
        let refused = read(r#"{"type":"refused","reason":"moonlight","message":"x"}"#);
        assert_eq!(refused, Control::Refused { reason: Refusal::Unknown, message: "x".into() });
        assert!(serde_json::from_str::<Control>("not json").is_err());
    }

    #[test]
    fn only_requests_are_requests() {
        let ping: Request = serde_json::from_str(r#"{"type":"ping","nonce":5}"#).unwrap();
        assert_eq!(ping, Request::Ping { nonce: 5 });
        for (json, request) in [
            (r#"{"type":"revoked","invites":[7]}"#, Request::Revoked { invites: vec![7] }),
            (r#"{"type":"taken-back","invites":[7]}"#, Request::TakenBack { invites: vec![7] }),
            (r#"{"type":"let-in","route":5}"#, Request::LetIn { route: Route(5) }),
            (r#"{"type":"put-out","route":5}"#, Request::PutOut { route: Route(5) }),
            (r#"{"type":"mute","route":5}"#, Request::Mute { route: Route(5) }),
        ] {
            assert_eq!(serde_json::to_string(&request).unwrap(), json);
            assert_eq!(serde_json::from_str::<Request>(json).unwrap(), request);
        }
        assert!(serde_json::from_str::<Request>(r#"{"type":"welcome"}"#).is_err());
        assert!(serde_json::from_str::<Request>("hello").is_err());
    }
}
