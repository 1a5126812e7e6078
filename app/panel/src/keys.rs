//! Secret keys on their way between the page, which keeps them, and the node, which uses them.

use std::fmt;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// 32 secret bytes; hexadecimal in JSON, hidden in debug output.
#[derive(Clone, PartialEq, Eq)]
pub struct KeySeed(pub [u8; 32]);

/// The keys of a hosted room. Who has them can open the room again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoomKeys {
    /// The owner key, whose public half names the room.
    pub owner: KeySeed,
    /// The secret of the room's first link, as it stands there. Renewed ones follow from the owner key and the number in
    /// [`Doors`](crate::Doors).
    pub secret: String,
}

impl fmt::Debug for KeySeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeySeed(…)")
    }
}

impl Serialize for KeySeed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
        serializer.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for KeySeed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::from_hex(&text).ok_or_else(|| D::Error::custom("a key is 64 hexadecimal digits"))
    }
}

impl KeySeed {
    fn from_hex(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        let mut seed = [0; 32];
        if digits.len() != 64 || !digits.is_ascii() {
            return None;
        }
        for (byte, pair) in seed.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |digit: u8| char::from(digit).to_digit(16);
            *byte = (digit(pair[0])? * 16 + digit(pair[1])?) as u8;
        }
        Some(Self(seed))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn a_key_reads_back_and_is_not_printed() {
        let keys = RoomKeys { owner: KeySeed([0xa5; 32]), secret: "link".into() };
        let json = serde_json::to_string(&keys).unwrap();
        assert_eq!(json, format!(r#"{{"owner":"{}","secret":"link"}}"#, "a5".repeat(32)));
        assert_eq!(serde_json::from_str::<RoomKeys>(&json).unwrap(), keys);
        assert!(!format!("{keys:?}").contains("a5"));
        for bad in ["", "a5", &"g".repeat(64), &"é".repeat(32)] {
            assert!(serde_json::from_value::<KeySeed>(bad.into()).is_err(), "{bad}");
        }
    }
}
