//! Binary values inside JSON: base64url without padding.

use std::fmt;

use data_encoding::BASE64URL_NOPAD;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A value of exactly `N` bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Binary<const N: usize>(pub [u8; N]);

/// What the relay makes up for each connection, so that a proof of another connection is worthless.
pub type Nonce = Binary<32>;
/// An Ed25519 public key: a room's owner key or its join key.
pub type PublicKey = Binary<32>;
/// An Ed25519 signature.
pub type Signature = Binary<64>;

impl<const N: usize> Binary<N> {
    /// As it appears in JSON.
    pub fn encode(&self) -> String {
        BASE64URL_NOPAD.encode(&self.0)
    }

    /// Reads what [`Binary::encode`] wrote; `None` if it is malformed or of another length.
    pub fn decode(text: &str) -> Option<Self> {
        BASE64URL_NOPAD.decode(text.as_bytes()).ok()?.try_into().ok().map(Self)
    }
}

impl<const N: usize> fmt::Debug for Binary<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.encode())
    }
}

impl<const N: usize> Serialize for Binary<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.encode())
    }
}

impl<'de, const N: usize> Deserialize<'de> for Binary<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::decode(&text).ok_or_else(|| D::Error::custom(format_args!("not {N} bytes in base64url")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_unpadded_and_safe_in_an_address() {
        let value = Binary([0xfb, 0xff, 0xfe, 1]);
        assert_eq!(value.encode(), "-__-AQ");
        assert_eq!(Binary::decode("-__-AQ"), Some(value));
        for bad in ["-__-AQ==", "+//+AQ", "-__-A", "-__-AQAA", "-__-AR", ""] {
            assert_eq!(Binary::<4>::decode(bad), None, "{bad:?}");
        }
    }
}
