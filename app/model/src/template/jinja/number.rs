//! Python's numbers as text, and texts as numbers.

use super::strings::is_space;

/// A float that is a whole number.
pub(super) fn whole(value: f64) -> Option<i128> {
    (value.fract() == 0.0 && value.abs() < 1e38).then_some(value as i128)
}

fn special(value: f64) -> Option<&'static str> {
    if value.is_nan() {
        Some("nan")
    } else if value.is_infinite() {
        Some(if value > 0.0 { "inf" } else { "-inf" })
    } else {
        None
    }
}

/// `repr(value)`: the shortest digits that give the same float, with an exponent outside of 1e-4 and 1e16.
pub(super) fn repr(value: f64) -> String {
    if let Some(name) = special(value) {
        return name.to_owned();
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = format!("{value}");
        if plain.contains('.') { plain } else { plain + ".0" }
    } else {
        format!("{digits}e{}", signed_exponent(exponent))
    }
}

fn signed_exponent(exponent: i32) -> String {
    format!("{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

/// The digits of `%f`, `%e` and `%g` for a number that is not negative; `alternate` keeps the point and zeros.
pub(super) fn formatted(value: f64, kind: char, precision: usize, alternate: bool) -> String {
    if let Some(name) = special(value) {
        return name.to_owned();
    }
    let scientific = |digits: usize| {
        let text = format!("{value:.digits$e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        (mantissa.to_owned(), exponent.parse::<i32>().unwrap_or(0))
    };
    match kind {
        'f' => {
            let text = format!("{value:.precision$}");
            if alternate && precision == 0 { text + "." } else { text }
        }
        'e' => {
            let (mantissa, exponent) = scientific(precision);
            let point = if alternate && precision == 0 { "." } else { "" };
            format!("{mantissa}{point}e{}", signed_exponent(exponent))
        }
        _ => {
            let precision = precision.max(1);
            let (mantissa, exponent) = scientific(precision - 1);
            let is_plain = exponent >= -4 && exponent < i32::try_from(precision).unwrap_or(i32::MAX);
            let digits = if is_plain {
                let places = usize::try_from(i32::try_from(precision).unwrap_or(i32::MAX) - 1 - exponent).unwrap_or(0);
                format!("{value:.places$}")
            } else {
                mantissa
            };
            let digits = if !alternate && digits.contains('.') {
                digits.trim_end_matches('0').trim_end_matches('.').to_owned()
            } else {
                digits
            };
            if is_plain { digits } else { format!("{digits}e{}", signed_exponent(exponent)) }
        }
    }
}

/// `round(value, digits)`: to even where two are equally near.
pub(super) fn round(value: f64, digits: i128) -> f64 {
    if !value.is_finite() {
        return value;
    }
    match usize::try_from(digits) {
        Ok(digits) if digits > 340 => value,
        Ok(digits) => format!("{value:.digits$}").parse().unwrap_or(value),
        Err(_) => {
            let scale = 10_f64.powi(digits.checked_neg().and_then(|digits| i32::try_from(digits).ok()).unwrap_or(400));
            if scale.is_finite() { (value / scale).round_ties_even() * scale } else { 0.0 }
        }
    }
}

/// `round(value, digits)` of a whole number; `None` if it is too large.
pub(super) fn round_int(value: i128, digits: i128) -> Option<i128> {
    if digits >= 0 {
        return Some(value);
    }
    let digits = digits.checked_neg().and_then(|digits| u32::try_from(digits).ok());
    let Some(scale) = digits.and_then(|digits| 10_i128.checked_pow(digits)) else { return Some(0) };
    let (quotient, rest) = (value.div_euclid(scale), value.rem_euclid(scale));
    // The other way is as far, or less; twice the rest may not fit.
    let up = rest > scale - rest || (rest == scale - rest && quotient % 2 != 0);
    (quotient + i128::from(up)).checked_mul(scale)
}

/// `int(text, base)`. Base 0 reads the base from the text.
pub(super) fn parse_int(text: &str, base: u32) -> Option<i128> {
    let text = text.trim_matches(is_space);
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = digits.to_ascii_lowercase();
    let prefixed = [("0x", 16), ("0o", 8), ("0b", 2)].into_iter().find_map(|(prefix, radix)| {
        lower.strip_prefix(prefix).filter(|_| base == radix || base == 0).map(|rest| (rest, radix))
    });
    let (digits, radix) = match prefixed {
        Some((rest, radix)) => (rest.strip_prefix('_').unwrap_or(rest), radix),
        None => (lower.as_str(), if base == 0 { 10 } else { base }),
    };
    let is_grouped = !digits.is_empty() && !digits.starts_with('_') && !digits.ends_with('_') && !digits.contains("__");
    if !is_grouped || digits.starts_with(['-', '+']) {
        return None;
    }
    let plain: String = digits.chars().filter(|c| *c != '_').map(ascii_digit).collect();
    let value = i128::from_str_radix(&plain, radix).ok()?;
    Some(if negative { -value } else { value })
}

/// A decimal digit of any script as one of ASCII.
fn ascii_digit(c: char) -> char {
    super::strings::decimal_digit(c).and_then(|digit| char::from_digit(digit, 10)).unwrap_or(c)
}

/// `float(text)`.
pub(super) fn parse_float(text: &str) -> Option<f64> {
    let text = text.trim_matches(is_space);
    let grouped = text.starts_with('_') || text.ends_with('_') || text.contains("__");
    let plain: String = text.chars().map(ascii_digit).collect();
    let between_digits = plain
        .as_bytes()
        .windows(3)
        .all(|three| three[1] != b'_' || (three[0].is_ascii_digit() && three[2].is_ascii_digit()));
    if grouped || !between_digits {
        return None;
    }
    let plain = plain.replace('_', "").to_ascii_lowercase();
    let unsigned = plain.trim_start_matches(['+', '-']);
    if unsigned.starts_with('i') && unsigned != "inf" && unsigned != "infinity" {
        return None;
    }
    plain.parse().ok()
}
