//! A room's link.

use std::fmt;
use std::str::FromStr;

use potluck_node::native::Fingerprint;
use thiserror::Error;

use crate::values::is_relay;

/// What precedes the fingerprint of the relay's certificate in the fragment of a room's link.
const FINGERPRINT: &str = "fp=";

/// A room's link: `https://host/r/ROOM#KEY`, or `https://host/folder/r/ROOM#KEY&fp=HEX`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomLink {
    /// The relay's address.
    pub relay: String,
    /// The room's id.
    pub room: String,
    /// What lets somebody in.
    pub key: Option<String>,
    /// The fingerprint of the relay's own certificate.
    pub fingerprint: Option<Fingerprint>,
}

/// A text is no room's link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BadLink {
    /// It has another form.
    #[error("expected a room's link, such as https://host/r/ROOM#KEY")]
    Form,
    /// What follows `fp=` is no fingerprint.
    #[error("the link's fingerprint is not valid: expected 64 hexadecimal digits after fp=")]
    Fingerprint,
}

impl FromStr for RoomLink {
    type Err = BadLink;

    fn from_str(link: &str) -> Result<Self, BadLink> {
        let (address, fragment) = link.split_once('#').unwrap_or((link, ""));
        let (relay, room) = address.rsplit_once("/r/").ok_or(BadLink::Form)?;
        let room = room.trim_end_matches('/');
        let is_plain = !room.is_empty() && room.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        if !is_plain || !is_relay(relay) {
            return Err(BadLink::Form);
        }
        let mut parts = fragment.split('&');
        let key = parts.next().filter(|key| !key.is_empty()).map(str::to_owned);
        let fingerprint = parts.find_map(|part| part.strip_prefix(FINGERPRINT)).map(str::parse).transpose();
        Ok(Self {
            relay: relay.to_owned(),
            room: room.to_owned(),
            key,
            fingerprint: fingerprint.map_err(|_| BadLink::Fingerprint)?,
        })
    }
}

impl fmt::Display for RoomLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/r/{}", self.relay, self.room)?;
        if self.key.is_some() || self.fingerprint.is_some() {
            write!(f, "#{}", self.key.as_deref().unwrap_or_default())?;
        }
        self.fingerprint.iter().try_for_each(|fingerprint| write!(f, "&{FINGERPRINT}{fingerprint}"))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    fn read(link: &str) -> RoomLink {
        link.parse().unwrap()
    }

    #[test]
    fn a_link_names_relay_room_and_key() {
        let link = read("https://192.168.1.5:8787/r/k3v9#00ff");
        assert_eq!((link.relay.as_str(), link.room.as_str()), ("https://192.168.1.5:8787", "k3v9"));
        assert_eq!((link.key.as_deref(), link.fingerprint), (Some("00ff"), None));
        assert_eq!(read("http://h/r/k3v9/").key, None);
        assert_eq!(read("https://h/r/a/r/k3v9#/r/x").relay, "https://h/r/a", "in a proxy's folder");
        for wrong in
            ["http://h/a?b/r/k3v9", "http://h/rooms/k3v9", "http://h/r/a b", "http://h/r/", "http:///r/k3v9", "k3v9"]
        {
            assert_eq!(wrong.parse::<RoomLink>(), Err(BadLink::Form), "{wrong}");
        }
    }

    #[test]
    fn a_link_may_carry_the_relays_fingerprint() {
        let fingerprint = Some(Fingerprint::of(b"a certificate"));
        let link = RoomLink { fingerprint, ..read("https://h/r/k3v9#00ff") };
        assert_eq!(link.to_string().parse(), Ok(link.clone()), "{link}");
        assert_eq!(read(&link.to_string()).key.as_deref(), Some("00ff"), "it is no part of the key");
        assert_eq!("https://h/r/k3v9#00ff&fp=00".parse::<RoomLink>(), Err(BadLink::Fingerprint));
    }

    #[test]
    fn a_link_is_written_as_it_is_read() {
        for link in ["https://h/r/k3v9#00ff", "http://localhost:8787/r/k3v9"] {
            assert_eq!(read(link).to_string(), link);
        }
    }
}
