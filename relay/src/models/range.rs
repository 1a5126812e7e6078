//! The `Range` header (RFC 9110, section 14).

use std::ops::Range;

/// Most parts of an answer. A request of a few kilobytes could name thousands.
const MAX_PARTS: usize = 64;

/// The part of a file that a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RangeRequest {
    /// All of it: there is no `Range`, or it is malformed, in another unit, or of too many parts, and therefore ignored.
    Whole,
    /// These bytes: not empty, and inside the file.
    Part(Range<u64>),
    /// Several such parts, in their order in the file; none of them touches another.
    Parts(Vec<Range<u64>>),
    /// All ranges start beyond the end of the file.
    Unsatisfiable,
}

/// Reads a `Range` header for a file of `bytes` bytes. Ranges that overlap or touch become one, so that an answer never has more bytes
/// of the file than the file itself.
pub fn parse(header: Option<&str>, bytes: u64) -> RangeRequest {
    let list = header.and_then(|header| header.trim().strip_prefix("bytes=")).unwrap_or_default();
    let mut parts = Vec::new();
    for spec in list.split(',').map(str::trim).filter(|spec| !spec.is_empty()) {
        match bounds(spec, bytes) {
            Some(part) if parts.len() < MAX_PARTS => parts.push(part),
            _ => return RangeRequest::Whole,
        }
    }
    if parts.is_empty() {
        return RangeRequest::Whole;
    }
    parts.retain(|part| !part.is_empty());
    parts.sort_by_key(|part| part.start);
    let mut joined: Vec<Range<u64>> = Vec::with_capacity(parts.len());
    for part in parts {
        match joined.last_mut() {
            Some(last) if part.start <= last.end => last.end = last.end.max(part.end),
            _ => joined.push(part),
        }
    }
    match &joined[..] {
        [] => RangeRequest::Unsatisfiable,
        [part] => RangeRequest::Part(part.clone()),
        _ => RangeRequest::Parts(joined),
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
        for (header, bytes) in [
            ("bytes=10-12", 10),
            ("bytes=10-", 10),
            ("bytes=-0", 10),
            ("bytes=0-", 0),
            ("bytes=-5", 0),
            ("bytes=10-12, 20-", 10),
        ] {
            assert_eq!(parse(Some(header), bytes), RangeRequest::Unsatisfiable, "{header} of {bytes}");
        }
    }

    #[test]
    fn several_ranges_are_sorted_and_those_beyond_the_end_left_out() {
        let parts = |header: &str| parse(Some(header), 100);
        assert_eq!(parts("bytes=0-0,5-9"), RangeRequest::Parts(vec![0..1, 5..10]));
        assert_eq!(parts("bytes=-5, 0-3 ,200-"), RangeRequest::Parts(vec![0..4, 95..100]));
        assert_eq!(parts("bytes=200-,3-4"), RangeRequest::Part(3..5));
    }

    /// They would multiply the bytes of an answer.
    #[test]
    fn ranges_that_overlap_or_touch_are_one() {
        let parts = |header: &str| parse(Some(header), 100);
        assert_eq!(parts("bytes=0-0,1-1"), RangeRequest::Part(0..2));
        assert_eq!(parts("bytes=10-50,0-99,20-30"), RangeRequest::Part(0..100));
        assert_eq!(parts(&format!("bytes={}", vec!["0-"; MAX_PARTS].join(","))), RangeRequest::Part(0..100));
        assert_eq!(parts(&format!("bytes={}", vec!["0-1"; MAX_PARTS + 1].join(","))), RangeRequest::Whole, "too many");
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
            "bytes=0-4,4-2",
            "bytes=",
            "bytes=,",
        ] {
            assert_eq!(parse(Some(header), 10), RangeRequest::Whole, "{header}");
        }
        assert_eq!(parse(None, 10), RangeRequest::Whole);
    }
}
