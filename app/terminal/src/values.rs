//! Values on the command line.

use potluck_engine::Eviction;
use potluck_gguf::TensorType;
use potluck_node::compute::ShadowSource;
use potluck_panel::{DeputyChoice, InviteKind, KvCacheType, Sharing};
use potluck_plan::{Arithmetic, Hedging, WireType};
use potluck_predict::PredictorKind;

/// Parses a relay's address.
///
/// # Errors
/// The expected form.
pub fn parse_relay(text: &str) -> Result<String, String> {
    let address = text.trim_end_matches('/');
    if address.rsplit('/').nth(1) == Some("r") {
        return Err("expected the relay's address, which is a room's link without /r/ and all that follows".to_owned());
    }
    if is_relay(address) {
        return Ok(address.to_owned());
    }
    let with_scheme = format!("https://{address}");
    Err(match is_relay(&with_scheme) {
        true => format!("expected the relay's address with http:// or https://, such as {with_scheme}"),
        false => "expected the relay's address, such as https://relay.example:8787".to_owned(),
    })
}

/// A scheme, a name or address, perhaps a port, and perhaps the folder in which a proxy shows the relay.
pub fn is_relay(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://")) else { return false };
    let mut parts = rest.split('/');
    let in_folder = |letter: char| letter.is_ascii_alphanumeric() || ['-', '.', '_', '~', '%'].contains(&letter);
    let is_folder = |name: &str| !["", ".", ".."].contains(&name) && name.chars().all(in_folder);
    parts.next().is_some_and(is_authority) && parts.all(is_folder)
}

/// A name or address, and perhaps a port.
fn is_authority(host: &str) -> bool {
    let (name, port) = match host.strip_prefix('[').and_then(|host| host.split_once(']')) {
        Some((address, rest)) if address.parse::<std::net::Ipv6Addr>().is_ok() => (address, rest.strip_prefix(':')),
        Some(_) => return false,
        None => host.split_once(':').map_or((host, None), |(name, port)| (name, Some(port))),
    };
    let is_name = |letter: char| letter.is_alphanumeric() || ['-', '.', '_', ':'].contains(&letter);
    !name.is_empty()
        && name.chars().all(is_name)
        && port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0))
}

/// Parses a KV cache type.
///
/// # Errors
/// The expected form.
pub fn parse_cache_type(text: &str) -> Result<KvCacheType, String> {
    text.parse().map_err(|_| "expected f32, f16, q8_0 or q4_0".to_owned())
}

/// Parses the arithmetic of a device alone.
///
/// # Errors
/// The expected form.
pub fn parse_arithmetic(text: &str) -> Result<Arithmetic, String> {
    text.parse().map_err(|_| "expected exact, packed or matrix".to_owned())
}

/// Parses the arithmetic of a room.
///
/// # Errors
/// The expected form.
pub fn parse_rooms_arithmetic(text: &str) -> Result<Arithmetic, String> {
    match text.parse() {
        Ok(arithmetic @ (Arithmetic::Exact | Arithmetic::Packed)) => Ok(arithmetic),
        Ok(Arithmetic::Matrix) => {
            Err("matrix is for a device alone (\"run\"): not every device has matrix units".to_owned())
        }
        Err(_) => Err("expected exact or packed".to_owned()),
    }
}

/// Parses a temperature.
///
/// # Errors
/// The expected form.
pub fn parse_temperature(text: &str) -> Result<f32, String> {
    let temperature = text.parse().ok().filter(|temperature: &f32| temperature.is_finite() && *temperature >= 0.0);
    temperature.ok_or_else(|| "expected a number from 0, such as 0.7".to_owned())
}

/// Parses a budget: a number of bytes.
///
/// # Errors
/// The expected form.
pub fn parse_budget(text: &str) -> Result<u64, String> {
    parse_bytes(text).ok_or_else(|| "expected a number of bytes, such as 900M or 4G".to_owned())
}

/// Parses who hosts a room if its host is lost.
///
/// # Errors
/// The expected form.
pub fn parse_deputy(text: &str) -> Result<DeputyChoice, String> {
    match text {
        "nobody" => Ok(DeputyChoice::Nobody),
        "anyone" => Ok(DeputyChoice::Anyone),
        _ => Err("expected nobody or anyone".to_owned()),
    }
}

/// Parses what an invite allows.
///
/// # Errors
/// The expected form.
pub fn parse_invite(text: &str) -> Result<InviteKind, String> {
    match text {
        "chat" => Ok(InviteKind::Chat),
        "contribute" => Ok(InviteKind::Contribute),
        _ => Err("expected chat or contribute".to_owned()),
    }
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
    let expected = || format!("expected off, adaptive or a number of holders from 1 to {}", Hedging::MAX_COPIES);
    text.parse().map_err(|_| expected())
}

/// Parses a number format of vectors to and from holders of experts.
///
/// # Errors
/// The expected form.
pub fn parse_wire(text: &str) -> Result<WireType, String> {
    text.parse().map_err(|_| "expected f32, f16, bf16 or int8".to_owned())
}

/// Parses who guesses experts, other than a shadow.
///
/// # Errors
/// The expected form.
pub fn parse_predictor(text: &str) -> Result<PredictorKind, String> {
    let known = [PredictorKind::None, PredictorKind::Frequent, PredictorKind::Router];
    known
        .into_iter()
        .find(|kind| kind.to_string() == text)
        .ok_or_else(|| "expected none, frequent or router".to_owned())
}

/// Parses which expert makes room.
///
/// # Errors
/// The expected form.
pub fn parse_eviction(text: &str) -> Result<Eviction, String> {
    match text {
        "lru" => Ok(Eviction::Lru),
        "lfu" => Ok(Eviction::Lfu),
        _ => Err("expected lru or lfu".to_owned()),
    }
}

/// Parses what a shadow is made from: a file, `own` or `own:q4_0`.
///
/// # Errors
/// The expected form.
pub fn parse_shadow(text: &str) -> Result<ShadowSource, String> {
    match text.split_once(':') {
        None if text == "own" => Ok(ShadowSource::Own(None)),
        Some(("own", kind)) => Ok(ShadowSource::Own(Some(parse_type(kind)?))),
        _ => Ok(ShadowSource::File(text.into())),
    }
}

/// Parses a type of weights by its name.
///
/// # Errors
/// The expected form.
pub fn parse_type(text: &str) -> Result<TensorType, String> {
    let known = TensorType::ALL.into_iter().find(|kind| kind.to_string().eq_ignore_ascii_case(text));
    known.ok_or_else(|| {
        format!("{text} is no type that a model can be written in: use F32, F16, Q8_0, Q6_K, Q4_K, Q4_0 or Q2_K.")
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_parsed() {
        assert_eq!(parse_bytes("900M"), Some(900_000_000));
        assert_eq!(parse_bytes("12"), Some(12));
        assert_eq!(parse_bytes("-1G"), None);
        assert_eq!(parse_bytes("G"), None);
    }

    #[test]
    fn a_relay_has_a_scheme_and_a_name() {
        for right in [
            "http://localhost:8787",
            "https://relay.example/",
            "http://[::1]:80",
            "https://1.2.3.4",
            "https://school.example/potluck/",
            "https://school.example:8443/a/b-1",
        ] {
            assert_eq!(parse_relay(right), Ok(right.trim_end_matches('/').to_owned()));
        }
        for wrong in [
            "ftp://host",
            "",
            "http://",
            "https://a//b",
            "https://a/../b",
            "https://a/b?c",
            "https://a/b#c",
            "https://a/b/r/k3v9abcd",
            "http://a:b",
            "http://a:99999",
            "http://a:0",
            "http://[x]:1",
            "http://a b",
        ] {
            assert!(parse_relay(wrong).is_err(), "{wrong}");
        }
        assert!(
            parse_relay("relay.example:8787").is_err_and(|sentence| sentence.ends_with("https://relay.example:8787"))
        );
    }

    #[test]
    fn at_most_as_many_holders_are_asked_as_rooms_ask() {
        assert_eq!(parse_hedging("4"), Ok(Hedging::Copies(4)));
        for wrong in ["0", "5", "200", "all"] {
            let sentence = parse_hedging(wrong).expect_err(wrong);
            assert!(sentence.ends_with("from 1 to 4"), "{sentence}");
        }
    }

    #[test]
    fn a_shadow_is_a_file_or_made_from_the_model() {
        assert_eq!(parse_shadow("own"), Ok(ShadowSource::Own(None)));
        assert_eq!(parse_shadow("own:q4_0"), Ok(ShadowSource::Own(Some(TensorType::Q4_0))));
        assert_eq!(parse_shadow("small.gguf"), Ok(ShadowSource::File("small.gguf".into())));
        assert!(parse_shadow("own:q9").is_err());
    }

    #[test]
    fn a_temperature_is_no_negative_number() {
        assert_eq!(parse_temperature("0.7"), Ok(0.7));
        assert!(["-1", "NaN", "inf", "warm"].iter().all(|wrong| parse_temperature(wrong).is_err()));
    }
}
