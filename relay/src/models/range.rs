//! The `Range` header (RFC 9110, section 14).

use std::ops::Range;

/// What a request wants of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// All of it: no `Range`, or one in another unit or form, which is to be ignored.
    Whole,
    /// These parts, in the order asked for; none empty, none outside.
    Parts(Vec<Range<u64>>),
    /// Ranges of which none lies inside the file, or too many.
    Nothing,
}

/// Reads a `Range` header for a file of `bytes` bytes. More than `most` ranges are refused: a reader of weights has a use
/// for a few hundred, and each costs a seek.
pub fn read(header: Option<&str>, bytes: u64, most: usize) -> Wanted {
    let Some(list) = header.and_then(|header| header.trim().strip_prefix("bytes=")) else { return Wanted::Whole };
    let mut parts = Vec::new();
    for spec in list.split(',').map(str::trim).filter(|spec| !spec.is_empty()) {
        match one(spec, bytes) {
            Spec::Malformed => return Wanted::Whole,
            Spec::Outside => {}
            Spec::Part(part) => parts.push(part),
        }
        if parts.len() > most {
            return Wanted::Nothing;
        }
    }
    if parts.is_empty() { Wanted::Nothing } else { Wanted::Parts(parts) }
}

enum Spec {
    Part(Range<u64>),
    Outside,
    Malformed,
}

fn one(spec: &str, bytes: u64) -> Spec {
    let Some((first, last)) = spec.split_once('-') else { return Spec::Malformed };
    let number = |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse::<u64>().ok()).flatten();
    match (first.is_empty(), last.is_empty()) {
        (true, true) => Spec::Malformed,
        (true, false) => match number(last) {
            None => Spec::Malformed,
            Some(suffix) if suffix == 0 || bytes == 0 => Spec::Outside,
            Some(suffix) => Spec::Part(bytes.saturating_sub(suffix)..bytes),
        },
        (false, open) => {
            let (Some(first), Some(last)) = (number(first), if open { Some(u64::MAX) } else { number(last) }) else {
                return Spec::Malformed;
            };
            if last < first {
                Spec::Malformed
            } else if first >= bytes {
                Spec::Outside
            } else {
                Spec::Part(first..last.saturating_add(1).min(bytes))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::single_range_in_vec_init)]
    use super::*;

    fn parts(header: &str, bytes: u64) -> Wanted {
        read(Some(header), bytes, 4)
    }

    #[test]
    fn the_three_forms() {
        assert_eq!(parts("bytes=0-4", 10), Wanted::Parts(vec![0..5]));
        assert_eq!(parts("bytes=3-", 10), Wanted::Parts(vec![3..10]));
        assert_eq!(parts("bytes=-3", 10), Wanted::Parts(vec![7..10]));
        assert_eq!(parts("bytes=0-0, 9-9 ,-20", 10), Wanted::Parts(vec![0..1, 9..10, 0..10]));
        assert_eq!(parts("bytes=5-99999999999999999999", 10), Wanted::Whole);
        assert_eq!(parts("bytes=5-18446744073709551615", 10), Wanted::Parts(vec![5..10]));
    }

    #[test]
    fn what_lies_outside_is_left_out_and_alone_refused() {
        assert_eq!(parts("bytes=10-12", 10), Wanted::Nothing);
        assert_eq!(parts("bytes=10-12,2-3", 10), Wanted::Parts(vec![2..4]));
        assert_eq!(parts("bytes=-0", 10), Wanted::Nothing);
        assert_eq!(parts("bytes=0-", 0), Wanted::Nothing);
        assert_eq!(parts("bytes=-5", 0), Wanted::Nothing);
        assert_eq!(parts("bytes=0-0,1-1,2-2,3-3,4-4", 10), Wanted::Nothing);
    }

    #[test]
    fn other_forms_are_ignored() {
        for header in ["items=0-4", "bytes=4-2", "bytes=a-b", "bytes=-", "bytes=1", "bytes=+1-2", "bytes=0x1-2"] {
            assert_eq!(parts(header, 10), Wanted::Whole, "{header}");
        }
        assert_eq!(read(None, 10, 4), Wanted::Whole);
    }
}
