//! Values on the command line.

use potluck_engine::Tier;
use potluck_panel::{KvCacheType, Sharing};
use potluck_plan::{Arithmetic, WireType};
use potluck_protocol::Hedging;

use crate::native::{BadFingerprint, Fingerprint};

/// Parses a KV cache type.
///
/// # Errors
/// The expected form.
pub fn parse_cache_type(text: &str) -> Result<KvCacheType, String> {
    text.parse().map_err(|_| "expected f32, f16, q8_0 or q4_0".to_owned())
}

/// Parses an arithmetic.
///
/// # Errors
/// The expected form.
pub fn parse_arithmetic(text: &str) -> Result<Arithmetic, String> {
    text.parse().map_err(|_| "expected exact, packed or matrix".to_owned())
}

/// Parses a budget: a number of bytes.
///
/// # Errors
/// The expected form.
pub fn parse_budget(text: &str) -> Result<u64, String> {
    parse_bytes(text).ok_or_else(|| "expected a number of bytes, such as 900M or 4G".to_owned())
}

/// Parses how work is shared.
///
/// # Errors
/// The expected form.
pub fn parse_sharing(text: &str) -> Result<Sharing, String> {
    match text {
        "fastest" => Ok(Sharing::Fastest),
        "everyone" => Ok(Sharing::Everyone),
        "experts" => Ok(Sharing::Experts),
        _ => Err("expected fastest, everyone or experts".to_owned()),
    }
}

/// Parses how holders of experts are asked.
///
/// # Errors
/// The expected form.
pub fn parse_hedging(text: &str) -> Result<Hedging, String> {
    match (text, text.parse()) {
        ("off", _) => Ok(Hedging::Off),
        ("adaptive", _) => Ok(Hedging::Adaptive),
        (_, Ok(copies @ 1..)) => Ok(Hedging::Copies(copies)),
        _ => Err("expected off, adaptive or a number of holders".to_owned()),
    }
}

/// Parses a number format of vectors to and from holders of experts.
///
/// # Errors
/// The expected form.
pub fn parse_wire(text: &str) -> Result<WireType, String> {
    match text {
        "f32" => Ok(WireType::F32),
        "f16" => Ok(WireType::F16),
        "bf16" => Ok(WireType::Bf16),
        "int8" => Ok(WireType::Int8),
        _ => Err("expected f32, f16, bf16 or int8".to_owned()),
    }
}

/// Parses a device tier.
///
/// # Errors
/// The expected form.
pub fn parse_tier(text: &str) -> Result<Tier, String> {
    match text {
        "software" => Ok(Tier::Software),
        "full" => Ok(Tier::Full),
        _ => Err("expected software or full".to_owned()),
    }
}

/// Parses a number of bytes: `900M`, `4G`, `1.5g`, `123456`.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let unit = |letter: char| match letter.to_ascii_uppercase() {
        'K' => Some(1e3),
        'M' => Some(1e6),
        'G' => Some(1e9),
        _ => None,
    };
    let (number, factor) = match text.chars().last().and_then(unit) {
        Some(factor) => (&text[..text.len() - 1], factor),
        None => (text, 1.0),
    };
    let bytes = number.parse::<f64>().ok()? * factor;
    (bytes.is_finite() && (0.0..9e18).contains(&bytes)).then_some(bytes as u64)
}

/// Parses a room's link, `https://host/r/ROOM#KEY`, into origin, room and key.
pub fn parse_link(link: &str) -> Option<(String, String, Option<String>)> {
    let (scheme, rest) = link.split_once("://")?;
    let (host, path) = rest.split_once("/r/")?;
    let (room, key) = match path.split_once('#') {
        Some((room, fragment)) => {
            let key = fragment.split('&').next().unwrap_or_default();
            (room, Some(key.to_owned()).filter(|key| !key.is_empty()))
        }
        None => (path, None),
    };
    let room = room.trim_end_matches('/');
    let plain = !room.is_empty() && room.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    (plain && !host.is_empty()).then(|| (format!("{scheme}://{host}"), room.to_owned(), key))
}

/// What precedes the fingerprint of the relay's certificate in the fragment of a room's link.
const FINGERPRINT: &str = "&fp=";

/// The fingerprint of the relay's certificate in a room's link, `https://host/r/ROOM#KEY&fp=HEX`, if it has one.
///
/// # Errors
/// It is not a fingerprint.
pub fn link_fingerprint(link: &str) -> Result<Option<Fingerprint>, BadFingerprint> {
    let Some((_, rest)) = link.split_once(FINGERPRINT) else { return Ok(None) };
    rest.split('&').next().unwrap_or_default().parse().map(Some)
}

/// A room's link with the fingerprint of the relay's certificate.
pub fn with_fingerprint(link: String, fingerprint: Option<Fingerprint>) -> String {
    match fingerprint {
        Some(fingerprint) => format!("{link}{FINGERPRINT}{fingerprint}"),
        None => link,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn a_link_may_carry_the_relays_fingerprint() {
        let fingerprint = Fingerprint::of(b"a certificate");
        let link = with_fingerprint("https://h/r/k3v9#00ff".to_owned(), Some(fingerprint));
        assert_eq!(link_fingerprint(&link), Ok(Some(fingerprint)));
        assert_eq!(parse_link(&link).unwrap().2.as_deref(), Some("00ff"), "it is no part of the key");
        assert_eq!(link_fingerprint("https://h/r/k3v9#00ff"), Ok(None));
        assert_eq!(link_fingerprint("https://h/r/k3v9#00ff&fp=00"), Err(BadFingerprint));
    }

    #[test]
    fn links_and_sizes_are_parsed() {
        let link = parse_link("https://192.168.1.5:8787/r/k3v9#00ff").unwrap();
        assert_eq!(link, ("https://192.168.1.5:8787".into(), "k3v9".into(), Some("00ff".into())));
        assert_eq!(parse_link("http://h/r/k3v9").unwrap().2, None);
        assert_eq!(parse_link("http://h/rooms/k3v9"), None);
        assert_eq!(parse_link("http://h/r/a b"), None);
        assert_eq!(parse_bytes("900M"), Some(900_000_000));
        assert_eq!(parse_bytes("12"), Some(12));
        assert_eq!(parse_bytes("-1G"), None);
        assert_eq!(parse_bytes("G"), None);
    }
}
