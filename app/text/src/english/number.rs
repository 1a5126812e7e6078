//! Formats numbers with units. Units are decimal, as device makers count: 1 GB is 1,000,000,000 bytes.

/// "3.2 GB", "410 MB", "12 kB", "87 bytes".
pub fn bytes(value: u64) -> String {
    const UNITS: [(f64, &str); 4] = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    let number = value as f64;
    for (size, unit) in UNITS {
        // 999,950 bytes would read "1000 kB", so switch to the larger unit as soon as rounding reaches it.
        if number >= size * 0.9995 {
            return format!("{} {unit}", three_digits(number / size));
        }
    }
    format!("{value} bytes")
}

/// "12.4 MB/s".
pub fn rate(bytes_per_second: f64) -> String {
    if bytes_per_second.is_finite() && bytes_per_second >= 1.0 {
        format!("{}/s", bytes(bytes_per_second as u64))
    } else {
        "0 MB/s".into()
    }
}

/// "1,900".
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// "30.5 billion parameters" as "30.5 B", "12.3 M", "640 k".
pub fn parameters(value: u64) -> String {
    let number = value as f64;
    match value {
        0..1_000 => value.to_string(),
        1_000..1_000_000 => format!("{} k", three_digits(number / 1e3)),
        1_000_000..1_000_000_000 => format!("{} M", three_digits(number / 1e6)),
        _ => format!("{} B", three_digits(number / 1e9)),
    }
}

/// "6.1 tok/s".
pub fn tokens_per_second(value: f64) -> String {
    format!("{} tok/s", three_digits(value))
}

/// "420 ms", "1.3 s", "2 min 5 s".
pub fn duration_ms(milliseconds: f64) -> String {
    let milliseconds = milliseconds.max(0.0);
    if milliseconds < 10.0 {
        format!("{milliseconds:.1} ms")
    } else if milliseconds < 999.5 {
        format!("{milliseconds:.0} ms")
    } else if milliseconds < 59_950.0 {
        format!("{:.1} s", milliseconds / 1000.0)
    } else {
        let seconds = (milliseconds / 1000.0).round() as u64;
        format!("{} min {} s", seconds / 60, seconds % 60)
    }
}

/// At most three digits: "1.25" gives "1.3", "12.34" gives "12.3", "123.4" gives "123".
fn three_digits(value: f64) -> String {
    if value >= 99.95 {
        return format!("{value:.0}");
    }
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_take_the_unit_that_reads_best() {
        assert_eq!(bytes(87), "87 bytes");
        assert_eq!(bytes(12_000), "12 kB");
        assert_eq!(bytes(999_960), "1 MB");
        assert_eq!(bytes(410_400_000), "410 MB");
        assert_eq!(bytes(3_200_000_000), "3.2 GB");
        assert_eq!(bytes(2_000_000_000_000), "2 TB");
    }

    #[test]
    fn rates_are_never_nonsense() {
        assert_eq!(rate(f64::NAN), "0 MB/s");
        assert_eq!(rate(12_400_000.0), "12.4 MB/s");
    }

    #[test]
    fn counts_are_grouped() {
        assert_eq!(count(7), "7");
        assert_eq!(count(1_900), "1,900");
        assert_eq!(count(1_234_567), "1,234,567");
    }

    #[test]
    fn parameters_are_short() {
        assert_eq!(parameters(30_532_122_624), "30.5 B");
        assert_eq!(parameters(11_800_000), "11.8 M");
        assert_eq!(parameters(640_000), "640 k");
    }

    #[test]
    fn durations_change_units() {
        assert_eq!(duration_ms(4.26), "4.3 ms");
        assert_eq!(duration_ms(420.2), "420 ms");
        assert_eq!(duration_ms(1_300.0), "1.3 s");
        assert_eq!(duration_ms(125_000.0), "2 min 5 s");
    }
}
