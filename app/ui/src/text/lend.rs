//! Amounts of memory to lend.

/// Steps of the slider, in bytes.
#[must_use]
pub const fn lend_steps() -> &'static [u64] {
    const MB: u64 = 1_000_000;
    &[
        128 * MB,
        256 * MB,
        500 * MB,
        750 * MB,
        1_000 * MB,
        1_500 * MB,
        2_000 * MB,
        3_000 * MB,
        4_000 * MB,
        6_000 * MB,
        8_000 * MB,
        10_000 * MB,
        12_000 * MB,
        16_000 * MB,
        20_000 * MB,
        24_000 * MB,
        32_000 * MB,
        48_000 * MB,
        64_000 * MB,
        96_000 * MB,
        128_000 * MB,
    ]
}

/// The step nearest to an amount.
#[must_use]
pub fn lend_step(bytes: u64) -> usize {
    let nearest = lend_steps().iter().enumerate().min_by_key(|(_, step)| step.abs_diff(bytes));
    nearest.map_or(0, |(index, _)| index)
}

/// Parses "2 GB", "512mb", "1.5" (gigabytes). `None` for zero and for anything else.
#[must_use]
pub fn read_bytes(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase().replace(',', ".");
    let split = text.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(text.len());
    let number: f64 = text[..split].trim().parse().ok()?;
    let unit = match text[split..].trim() {
        "" | "g" | "gb" | "gib" => 1e9,
        "m" | "mb" | "mib" => 1e6,
        "k" | "kb" | "kib" => 1e3,
        "byte" | "bytes" | "b" => 1.0,
        _ => return None,
    };
    let bytes = number * unit;
    (bytes.is_finite() && (1.0..1e15).contains(&bytes)).then_some(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_read_as_people_write_them() {
        assert_eq!(read_bytes("2 GB"), Some(2_000_000_000));
        assert_eq!(read_bytes("512mb"), Some(512_000_000));
        assert_eq!(read_bytes("1,5"), Some(1_500_000_000));
        assert_eq!(read_bytes("40 MB"), Some(40_000_000));
        for nonsense in ["", "many", "-1 GB", "0", "2 parsecs"] {
            assert_eq!(read_bytes(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn steps_rise_and_the_nearest_is_found() {
        assert!(lend_steps().is_sorted());
        assert_eq!(lend_steps()[lend_step(2_100_000_000)], 2_000_000_000);
        assert_eq!(lend_step(1), 0);
    }
}
