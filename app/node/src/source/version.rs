//! Checks that all bytes of a file on a server are of one version. Two things show it: the headers by which a server names the version in
//! each reply, and a few samples of the file that are read again. The samples are needed because some servers send no such headers,
//! and browsers hide them.

use std::cell::{Cell, RefCell};
use std::ops::Range;

use futures::lock::Mutex;

use super::error::Change;
use crate::platform::Version;

/// Bytes of a sample.
const SAMPLE_BYTES: u64 = 4 << 10;
/// Samples of a model, over all its files.
const SAMPLES: u64 = 8;
/// Samples of each file of a split model at least.
const LEAST_SAMPLES: u64 = 2;

/// Samples that are read at a time.
pub const SAMPLES_AT_ONCE: usize = 6;
/// Most names of a version. If a server has still more for the same bytes, its names mean nothing and are ignored.
const MOST_NAMES: usize = 8;
/// Beginnings of replies that are kept until there are samples.
const BEGINNINGS: usize = 16;

/// The version of a file whose bytes are read.
#[derive(Default)]
pub struct KnownVersion {
    /// What replies called it: the first one, and others with the same bytes.
    names: RefCell<Vec<Version>>,
    /// Samples of it, as they were read first; before that, the beginnings of the last replies.
    samples: RefCell<Vec<Sample>>,
    is_sampled: Cell<bool>,
    /// How it is known that it was replaced: nothing that is read from now on belongs to what was read before.
    changed: Cell<Option<Change>>,
    /// Held while a name that is not known is compared with the samples.
    pub in_doubt: Mutex<()>,
}

/// A sample of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Where it lies.
    pub range: Range<u64>,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl KnownVersion {
    /// Whether a reply with this name may be of this version.
    pub fn knows(&self, said: &Version) -> bool {
        let names = self.names.borrow();
        names.len() >= MOST_NAMES || names.iter().any(|name| name.may_be(said))
    }

    /// The same; but the first reply always is, and what earlier replies left out of a name is learnt from later ones.
    pub fn accepts(&self, said: &Version) -> bool {
        let mut names = self.names.borrow_mut();
        if names.is_empty() {
            names.push(said.clone());
        }
        match names.iter_mut().find(|name| name.may_be(said)) {
            Some(name) => {
                name.learn(said);
                true
            }
            None => names.len() >= MOST_NAMES,
        }
    }

    /// Another name of this version.
    pub fn add_name(&self, said: Version) {
        self.names.borrow_mut().push(said);
    }

    /// The file was replaced.
    pub fn set_changed(&self, change: Change) {
        if self.changed.get() != Some(Change::Read) {
            self.changed.set(Some(change));
        }
    }

    /// How it is known that the file was replaced, if it was.
    pub fn changed(&self) -> Option<Change> {
        self.changed.get()
    }

    /// Keeps the beginning of a reply, until there are samples.
    pub fn note(&self, start: u64, bytes: &[u8]) {
        if self.is_sampled.get() || bytes.is_empty() {
            return;
        }
        let bytes = bytes[..bytes.len().min(SAMPLE_BYTES as usize)].to_vec();
        let mut samples = self.samples.borrow_mut();
        if samples.iter().any(|sample| sample.range.start == start) {
            return;
        }
        if samples.len() == BEGINNINGS {
            samples.remove(0);
        }
        samples.push(Sample { range: start..start + bytes.len() as u64, bytes });
    }

    /// Keeps samples to compare others with.
    pub fn keep(&self, samples: Vec<Sample>) {
        *self.samples.borrow_mut() = samples;
        self.is_sampled.set(true);
    }

    /// What there is to compare with.
    pub fn samples(&self) -> Vec<Sample> {
        self.samples.borrow().clone()
    }
}

/// Where the samples lie in a file of a model that has `files`: one at the beginning of the header, the others evenly from the
/// header's end to the end of the file.
pub fn sample_ranges(header: u64, bytes: u64, files: usize) -> Vec<Range<u64>> {
    let count = (SAMPLES / files.max(1) as u64).max(LEAST_SAMPLES);
    let weights = bytes.saturating_sub(header);
    let mut ranges = vec![Range { start: 0, end: SAMPLE_BYTES.min(header) }];
    if weights <= count * SAMPLE_BYTES {
        ranges.push(header..bytes.max(header));
    } else {
        let step = (weights - SAMPLE_BYTES) / (count - 1);
        let last = bytes - SAMPLE_BYTES;
        let starts = (0..count - 1).map(|index| header + index * step).chain([last]);
        ranges.extend(starts.map(|start| start..start + SAMPLE_BYTES));
    }
    ranges.retain(|range| !range.is_empty());
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    fn etag(etag: &str) -> Version {
        Version { etag: Some(etag.to_owned()), ..Version::default() }
    }

    #[test]
    fn the_first_reply_names_the_version_of_all_others() {
        let known = KnownVersion::default();
        assert!(known.accepts(&etag("\"a\"")) && known.accepts(&etag("\"a\"")));
        assert!(!known.accepts(&etag("\"b\"")));
        assert!(known.accepts(&Version::default()), "a reply that says nothing is not refused for that");
    }

    #[test]
    fn what_the_first_reply_did_not_say_is_learnt_from_later_ones() {
        let known = KnownVersion::default();
        assert!(known.accepts(&Version::default()) && known.accepts(&etag("\"a\"")));
        assert!(!known.accepts(&etag("\"b\"")));
    }

    #[test]
    fn a_server_with_ever_new_names_for_the_same_bytes_is_not_believed() {
        let known = KnownVersion::default();
        let name = |index| etag(&format!("\"{index}\""));
        assert!(known.accepts(&name(0)));
        for index in 1..MOST_NAMES {
            assert!(!known.accepts(&name(index)) && !known.knows(&name(index)));
            known.add_name(name(index));
            assert!(known.accepts(&name(index)) && known.accepts(&name(0)));
        }
        assert!(known.accepts(&name(MOST_NAMES)));
    }

    #[test]
    fn samples_are_spread_over_the_weights() {
        let ranges = sample_ranges(1_000, 1_000_000, 1);
        assert_eq!(ranges.len() as u64, 1 + SAMPLES);
        assert_eq!(ranges[0], Range { start: 0, end: 1_000 }, "the header");
        assert_eq!((ranges[1].start, ranges[8].end), (1_000, 1_000_000));
        assert!(ranges.windows(2).all(|pair| pair[0].end <= pair[1].start), "{ranges:?}");
        assert_eq!(sample_ranges(1_000, 1_000_000, 30).len() as u64, 1 + LEAST_SAMPLES);
        let small = [Range { start: 0, end: 100 }, Range { start: 100, end: 9_000 }];
        assert_eq!(sample_ranges(100, 9_000, 1), small, "a small file is read whole");
        assert_eq!(sample_ranges(100, 100, 1), [Range { start: 0, end: 100 }]);
        assert!(sample_ranges(0, 0, 1).is_empty());
    }

    #[test]
    fn the_beginnings_of_replies_serve_until_there_are_samples() {
        let known = KnownVersion::default();
        (0..20).for_each(|start| known.note(start * 10_000, &[1; 9_000]));
        let kept = known.samples();
        assert_eq!((kept.len(), kept[0].range.clone()), (BEGINNINGS, 40_000..44_096));
        let sample = Sample { range: 0..1, bytes: vec![0] };
        known.keep(vec![sample.clone()]);
        known.note(5, &[1]);
        assert_eq!(known.samples(), [sample]);
    }
}
