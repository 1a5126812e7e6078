//! The `Range` header (RFC 9110, section 14).

use std::ops::Range;

/// The part of a file that a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RangeRequest {
    /// All of it: there is no `Range`, or it is malformed or in another unit, and therefore ignored.
    Whole,
    /// These bytes: not empty, and inside the file.
    Part(Range<u64>),
    /// The range starts beyond the end of the file.
    Unsatisfiable,
    /// More than one range. Refused, because overlapping ranges would multiply the bytes of an answer.
    Several,
}

/// Reads a `Range` header for a file of `bytes` bytes.
pub fn parse(header: Option<&str>, bytes: u64) -> RangeRequest {
    let list = header.and_then(|header| header.trim().strip_prefix("bytes=")).unwrap_or_default();
    let mut specs = list.split(',').map(str::trim).filter(|spec| !spec.is_empty());
    match (specs.next().and_then(|spec| bounds(spec, bytes)), specs.next()) {
        (_, Some(_)) => RangeRequest::Several,
        (None, None) => RangeRequest::Whole,
        (Some(part), None) if part.is_empty() => RangeRequest::Unsatisfiable,
        (Some(part), None) => RangeRequest::Part(part),
    }
}

/// The bytes that a range names, cut at the end of the file; empty if it lies beyond it. `None` if it is malformed.
fn bounds(spec: &str, bytes: u64) -> Option<Range<u64>> {
    // `parse` alone would accept a sign.
    let number = |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse::<u64>().ok()).flatten();
    match spec.split_once('-')? {
        ("", length) => Some(bytes.saturating_sub(number(length)?)..bytes),
        (first, "") => Some(number(first)?..bytes),
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            (first <= last).then(|| first..last.saturating_add(1).min(bytes))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_cut_at_the_end_of_the_file() {
        for (header, part) in [
            ("bytes=0-4", 0..5),
            ("bytes=3-", 3..10),
            ("bytes=-3", 7..10),
            ("bytes=-20", 0..10),
            ("bytes= 9-20,", 9..10),
            ("bytes=5-18446744073709551615", 5..10),
        ] {
            assert_eq!(parse(Some(header), 10), RangeRequest::Part(part), "{header}");
        }
    }

    #[test]
    fn a_range_beyond_the_end_cannot_be_satisfied() {
        for (header, bytes) in
            [("bytes=10-12", 10), ("bytes=10-", 10), ("bytes=-0", 10), ("bytes=0-", 0), ("bytes=-5", 0)]
        {
            assert_eq!(parse(Some(header), bytes), RangeRequest::Unsatisfiable, "{header} of {bytes}");
        }
    }

    #[test]
    fn several_ranges_are_refused() {
        assert_eq!(parse(Some("bytes=0-0,1-1"), 10), RangeRequest::Several);
        let same = vec!["0-"; 512].join(",");
        assert_eq!(parse(Some(&format!("bytes={same}")), 10), RangeRequest::Several);
    }

    #[test]
    fn a_malformed_range_is_ignored() {
        for header in [
            "items=0-4",
            "bytes=4-2",
            "bytes=a-b",
            "bytes=-",
            "bytes=1",
            "bytes=+1-2",
            "bytes=0x1-2",
            "bytes=5-99999999999999999999",
        ] {
            assert_eq!(parse(Some(header), 10), RangeRequest::Whole, "{header}");
        }
        assert_eq!(parse(None, 10), RangeRequest::Whole);
    }
}
