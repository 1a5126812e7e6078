//! Joins reads that are to come into few requests. Reads come in the order of weight units, whose tensors lie in several places of
//! the file: the matrices of an expert in three. Each place becomes a *lane*, reads that follow one another in the file; a request
//! gets a *part* of a lane, and reads take their bytes from it as they come.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use potluck_model::FileRange;

/// Bytes between two reads that are fetched and thrown away, so that one request does for both.
const MAX_GAP: u64 = 64 << 10;
/// Bytes of other reads after which a lane ends: its server would not wait so long for the next read.
const MAX_APART: u64 = 32 << 20;

/// Reads that follow one another in a file.
#[derive(Debug, Default, PartialEq, Eq)]
struct Lane {
    reads: Vec<FileRange>,
    /// The first read that belongs to no part yet.
    next: usize,
}

/// The reads that are to come.
#[derive(Default)]
pub(super) struct Lanes {
    lanes: Vec<Lane>,
    /// The lane of a read, and its place there.
    places: HashMap<FileRange, (usize, usize)>,
}

/// A read, as part of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InLane {
    pub lane: usize,
    pub index: usize,
}

impl Lanes {
    /// Reads in the order in which they will come.
    pub fn new(reads: &[FileRange]) -> Self {
        let mut all = Self::default();
        // By the end of its last read: a lane, and how many bytes had been read of all by then.
        let mut ends: BTreeMap<(u16, u64), (usize, u64)> = BTreeMap::new();
        let begins: BTreeSet<(u16, u64)> = reads.iter().map(|read| (read.file, read.offset)).collect();
        let mut total = 0;
        for &read in reads.iter().filter(|read| read.len > 0) {
            if all.places.contains_key(&read) {
                continue;
            }
            let near = (read.file, read.offset.saturating_sub(MAX_GAP))..=(read.file, read.offset);
            let follows = |end: &(u16, u64)| begins.range(*end..(read.file, read.offset)).next().is_none();
            let before = ends.range(near).next_back().map(|(end, at)| (*end, *at)).filter(|(end, _)| follows(end));
            let lane = match before {
                Some((end, (lane, then))) => {
                    ends.remove(&end);
                    if total - then <= MAX_APART { lane } else { all.begin() }
                }
                None => all.begin(),
            };
            let reads = &mut all.lanes[lane].reads;
            all.places.insert(read, (lane, reads.len()));
            reads.push(read);
            total += read.len;
            ends.insert((read.file, read.offset + read.len), (lane, total));
        }
        all
    }

    fn begin(&mut self) -> usize {
        self.lanes.push(Lane::default());
        self.lanes.len() - 1
    }

    /// Where a read belongs, if it was expected.
    pub fn place(&self, read: FileRange) -> Option<InLane> {
        self.places.get(&read).map(|&(lane, index)| InLane { lane, index })
    }

    /// The next part of a read's lane, if no part has the read yet: from that read on, of about so many bytes. Its bytes, and how
    /// many reads it serves.
    pub fn cut(&mut self, at: InLane, bytes: u64) -> Option<(FileRange, usize)> {
        let lane = self.lanes.get_mut(at.lane)?;
        if at.index < lane.next {
            return None;
        }
        let first = *lane.reads.get(at.index)?;
        let len = |read: &FileRange| read.offset + read.len - first.offset;
        let more = lane.reads[at.index..].iter().skip(1).take_while(|read| len(read) <= bytes).count();
        let last = lane.reads[at.index + more];
        lane.next = at.index + more + 1;
        Some((FileRange { len: len(&last), ..first }, more + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn read(offset: u64, len: u64) -> FileRange {
        FileRange { file: 0, offset, len }
    }

    /// The parts of all reads, in the order in which reads ask for them.
    fn parts(reads: &[FileRange], bytes: u64) -> Vec<FileRange> {
        let mut lanes = Lanes::new(reads);
        let places: Vec<InLane> = reads.iter().filter_map(|read| lanes.place(*read)).collect();
        places.into_iter().filter_map(|place| Some(lanes.cut(place, bytes)?.0)).collect()
    }

    #[test]
    fn neighbours_share_a_request_up_to_its_size() {
        let reads: Vec<FileRange> = (0..10).map(|index| read(index * 4 * MIB, 4 * MIB)).collect();
        let found = parts(&reads, 16 * MIB);
        assert_eq!(found, [read(0, 16 * MIB), read(16 * MIB, 16 * MIB), read(32 * MIB, 8 * MIB)]);
    }

    #[test]
    fn padding_between_tensors_ends_no_request_and_a_tensor_that_is_not_wanted_does() {
        assert_eq!(parts(&[read(0, 100), read(128, 100)], MIB), [read(0, 228)]);
        assert_eq!(parts(&[read(0, 100), read(MIB, 100)], MIB).len(), 2);
        let other_file = FileRange { file: 1, ..read(100, 100) };
        assert_eq!(parts(&[read(0, 100), other_file], MIB), [read(0, 100), other_file]);
    }

    #[test]
    fn experts_whose_matrices_lie_in_three_places_need_three_lanes() {
        let matrix = MIB;
        let (experts, apart) = (128, 128 * matrix);
        let reads: Vec<FileRange> = (0..experts)
            .flat_map(|expert| (0..3).map(move |place| read(place * apart + expert * matrix, matrix)))
            .collect();
        let found = parts(&reads, 64 * MIB);
        assert_eq!(found.len(), 6, "not {} requests: {found:?}", reads.len());
        assert_eq!(found.iter().map(|part| part.len).sum::<u64>(), 3 * apart);
    }

    #[test]
    fn a_mixture_of_18_gb_takes_little_more_requests_than_parts() {
        // 48 blocks of 128 experts with three matrices, each place after the other.
        let (matrix, experts, blocks) = (MIB, 128, 48);
        let reads: Vec<FileRange> = (0..blocks)
            .flat_map(|block| (0..experts).map(move |expert| (block, expert)))
            .flat_map(|(block, expert)| {
                (0..3).map(move |place| read(((block * 3 + place) * experts + expert) * matrix, matrix))
            })
            .collect();
        assert_eq!(reads.len(), 18_432);
        let (small, large) = (parts(&reads, 16 * MIB).len(), parts(&reads, 64 * MIB).len());
        assert!(small <= 18_432 / 16 + 3 * 48, "{small} requests of 16 MiB");
        assert!(large <= 18_432 / 64 + 3 * 48, "{large} requests of 64 MiB");
    }

    #[test]
    fn two_units_of_a_block_that_enclose_each_other_need_two_lanes() {
        // Norm, feed-forward network, attention, as files have them; attention is read first.
        let reads = [read(0, 100), read(300, 100), read(100, 200), read(400, 100)];
        assert_eq!(parts(&reads, MIB), [read(0, 300), read(300, 200)]);
    }

    #[test]
    fn a_lane_ends_where_its_server_would_have_to_wait_for_long() {
        let far = 1 << 30;
        let reads = [read(0, 100), read(far, 2 * MAX_APART), read(100, 100)];
        assert_eq!(parts(&reads, 1 << 40).len(), 3);
    }

    #[test]
    fn a_read_that_comes_before_its_turn_begins_a_part_there() {
        let reads: Vec<FileRange> = (0..4).map(|index| read(index * 100, 100)).collect();
        let mut lanes = Lanes::new(&reads);
        let place = |lanes: &Lanes, index: usize| lanes.place(reads[index]).unwrap_or_else(|| panic!("{index}"));
        let at = place(&lanes, 2);
        assert_eq!(lanes.cut(at, 1_000), Some((read(200, 200), 2)));
        for index in [0, 1, 3] {
            let at = place(&lanes, index);
            assert_eq!(lanes.cut(at, 1_000), None, "read {index} is fetched alone, or has its part");
        }
        assert_eq!(lanes.place(read(0, 50)), None);
    }
}
