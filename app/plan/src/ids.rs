//! Newtypes for ids and units.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Index of a transformer block, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BlockIndex(pub u16);

/// Index of an expert inside its block, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ExpertId(pub u16);

/// Id of a stage inside one plan. Not the peer's id: a peer may hold two stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StageId(pub u16);

/// Which plan a frame belongs to. A later plan has a larger epoch; frames of older plans are dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PlanEpoch(pub u32);

/// A conversation in a room; owns its pages of the KV cache on every stage. A device's engine knows it by another id for each plan, so
/// that plans share no KV cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ConversationId(pub u32);

impl ConversationId {
    /// No conversation of a room: timed work on a device. Its pages are taken as soon as conversations need them.
    pub const TRIAL: Self = Self(u32::MAX);
}

/// Position of a token in its conversation, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Position(pub u32);

/// A count of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Bytes(pub u64);

/// Milliseconds on a peer's own monotonic clock, or a span of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
pub struct Millis(pub f64);

/// A peer's own 128-bit id, chosen at random when its tab first opens and kept across reloads.
/// Raw bytes in frames, lower-case hexadecimal in JSON.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub [u8; 16]);

/// A device's public Ed25519 key, the same in all tabs of a browser: what a ban or a standing follows.
/// Raw bytes in frames, lower-case hexadecimal in JSON.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId(pub [u8; 32]);

/// The BLAKE3 root of a model's file(s): the same id everywhere means the same bytes.
/// Raw bytes in frames, lower-case hexadecimal in JSON.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModelId(pub [u8; 32]);

/// Blocks `start..end`. May be empty: then a stage only embeds, or only computes the LM head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BlockRange {
    /// First block of the range.
    pub start: u16,
    /// One past the last block.
    pub end: u16,
}

impl BlockRange {
    /// Blocks `start..end`.
    pub fn new(start: u16, end: u16) -> Self {
        Self { start, end }
    }

    /// How many blocks the range holds.
    pub fn len(self) -> u16 {
        self.end.saturating_sub(self.start)
    }

    /// True if the range holds no block.
    pub fn is_empty(self) -> bool {
        self.end <= self.start
    }

    /// True if `block` is in the range.
    pub fn contains(self, block: BlockIndex) -> bool {
        (self.start..self.end).contains(&block.0)
    }

    /// The blocks in order.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = BlockIndex> {
        (self.start..self.end).map(BlockIndex)
    }
}

impl Bytes {
    /// Zero bytes.
    pub const ZERO: Bytes = Bytes(0);

    /// Sum that stops at the largest value instead of wrapping.
    pub fn saturating_add(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_add(other.0))
    }

    /// Difference that stops at zero.
    pub fn saturating_sub(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_sub(other.0))
    }
}

impl std::iter::Sum for Bytes {
    fn sum<I: Iterator<Item = Bytes>>(iter: I) -> Bytes {
        iter.fold(Bytes::ZERO, Bytes::saturating_add)
    }
}

impl fmt::Display for Bytes {
    /// Decimal units as disks and downloads are labelled: `22 MB`, `3.2 GB`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = self.0 as f64;
        match self.0 {
            0..1_000 => write!(f, "{} bytes", self.0),
            1_000..1_000_000 => write!(f, "{:.0} kB", n / 1e3),
            1_000_000..1_000_000_000 => write!(f, "{:.0} MB", n / 1e6),
            _ => write!(f, "{:.1} GB", n / 1e9),
        }
    }
}

fn write_hex(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

impl fmt::Display for PeerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

impl fmt::Debug for PeerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0[..4], f)
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

impl fmt::Debug for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0[..4], f)
    }
}

impl DeviceId {
    /// Tells devices apart in lists: "3fa9 12c4". Anybody can search for a key with the same tag, so it proves nothing.
    #[must_use]
    pub fn tag(&self) -> String {
        let [a, b, c, d, ..] = self.0;
        format!("{a:02x}{b:02x} {c:02x}{d:02x}")
    }
}

impl fmt::Display for ModelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

impl fmt::Debug for ModelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0[..4], f)
    }
}

fn bytes_from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(bytes)
}

impl PeerId {
    /// Reads 32 hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        bytes_from_hex(text).map(Self)
    }
}

impl ModelId {
    /// Reads 64 hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        bytes_from_hex(text).map(Self)
    }
}

/// Hexadecimal for people and tools, the array itself for frames.
fn serialize_id<const N: usize, S>(id: &impl fmt::Display, bytes: &[u8; N], serializer: S) -> Result<S::Ok, S::Error>
where
    S: Serializer,
    [u8; N]: Serialize,
{
    if serializer.is_human_readable() { serializer.collect_str(id) } else { bytes.serialize(serializer) }
}

fn deserialize_id<'de, const N: usize, D>(deserializer: D) -> Result<[u8; N], D::Error>
where
    D: Deserializer<'de>,
    [u8; N]: Deserialize<'de>,
{
    if !deserializer.is_human_readable() {
        return <[u8; N]>::deserialize(deserializer);
    }
    let text = String::deserialize(deserializer)?;
    bytes_from_hex(&text).ok_or_else(|| D::Error::custom(format_args!("{} hexadecimal digits expected", 2 * N)))
}

impl Serialize for PeerId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_id(self, &self.0, serializer)
    }
}

impl<'de> Deserialize<'de> for PeerId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_id(deserializer).map(Self)
    }
}

impl Serialize for DeviceId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_id(self, &self.0, serializer)
    }
}

impl<'de> Deserialize<'de> for DeviceId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_id(deserializer).map(Self)
    }
}

impl Serialize for ModelId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_id(self, &self.0, serializer)
    }
}

impl<'de> Deserialize<'de> for ModelId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_id(deserializer).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_survive_their_text_form() {
        let peer = PeerId([7; 16]);
        assert_eq!(PeerId::from_hex(&peer.to_string()), Some(peer));
        assert_eq!(PeerId::from_hex("07"), None, "too short must be refused");
        assert_eq!(ModelId::from_hex(&"zz".repeat(32)), None, "not hexadecimal must be refused");
    }

    #[test]
    fn bytes_read_like_a_download() {
        assert_eq!(Bytes(22_100_000).to_string(), "22 MB");
        assert_eq!(Bytes(3_200_000_000).to_string(), "3.2 GB");
    }
}
