//! Dates as programs write them.

use serde_json::Value;

/// Milliseconds since 1970 of a date: seconds or milliseconds since then, or a text as ISO 8601 has it.
pub(super) fn milliseconds(date: &Value) -> Option<f64> {
    // In seconds, this is the year 5138.
    let of_number = |number: f64| if number.abs() < 1e11 { number * 1_000.0 } else { number };
    match date {
        Value::String(text) => text.parse().map(of_number).ok().or_else(|| of_iso(text)),
        other => other.as_f64().map(of_number),
    }
}

/// `2024-03-13T14:48:37.115821+02:00`: without its parts of a second, and in universal time if it names no zone.
fn of_iso(text: &str) -> Option<f64> {
    let number = |from: usize| text.get(from..from + 2)?.parse::<i64>().ok();
    let (year, month, day) = (number(0)? * 100 + number(2)?, number(5)?, number(8)?);
    let seconds = number(11)? * 3_600 + number(14)? * 60 + number(17)?;
    // Howard Hinnant, "chrono-compatible low-level date algorithms", `days_from_civil`.
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = era * 146_097 + day_of_era - 719_468;
    let zone = text[19..].find(['+', '-']).map_or(0, |at| {
        let offset = number(20 + at).unwrap_or(0) * 3_600 + number(23 + at).unwrap_or(0) * 60;
        if text[19 + at..].starts_with('-') { -offset } else { offset }
    });
    // Exact: a year has four digits.
    Some((days * 86_400 + seconds - zone) as f64 * 1_000.0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_date_is_a_number_or_a_text() {
        let texts = ["1744577557", "2025-04-13T20:52:37.115821Z", "2025-04-13T22:52:37+02:00"];
        for same in texts.map(Value::from).into_iter().chain([json!(1_744_577_557), json!(1_744_577_557_000_u64)]) {
            assert_eq!(milliseconds(&same), Some(1_744_577_557_000.0), "{same}");
        }
        for none in ["soon", "2025-04-13", "2025-04-13T20:52:3ä"] {
            assert_eq!(milliseconds(&none.into()), None, "{none}");
        }
    }
}
