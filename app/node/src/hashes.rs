//! Checking pieces of a file against its BLAKE3 root, with the list of group hashes of the relay or the host, and making that
//! list.
//!
//! A group is a subtree of BLAKE3's tree (64 KiB), the list holds the subtrees' chaining values; see
//! `relay/src/models/groups.rs`, which makes it.

use blake3::hazmat::{HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};
use potluck_plan::ModelId;

pub use potluck_relay_api::http::GROUP_BYTES;

/// The group hashes of a file, proven to belong to its root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupHashes {
    list: Vec<[u8; 32]>,
    bytes: u64,
}

impl GroupHashes {
    /// Checks a list as the relay sends it; `None` if it does not belong to the file of `bytes` bytes with this root.
    pub fn prove(list: &[u8], bytes: u64, root: &[u8; 32]) -> Option<Self> {
        let (list, rest) = list.as_chunks::<32>();
        let groups = Self { list: list.to_vec(), bytes };
        let complete = rest.is_empty() && list.len() as u64 == group_count(bytes);
        (complete && groups.root() == *root).then_some(groups)
    }

    /// The file's BLAKE3 root.
    pub fn root(&self) -> [u8; 32] {
        match &self.list[..] {
            [only] => *only,
            list => {
                let (left, right) = list.split_at(left_groups(list.len()));
                *merge_subtrees_root(&subtree(left), &subtree(right), Mode::Hash).as_bytes()
            }
        }
    }

    /// The list as it is sent.
    pub fn list(&self) -> Vec<u8> {
        self.list.concat()
    }

    /// The length of the list of a file of `bytes` bytes.
    pub fn list_bytes(bytes: u64) -> u64 {
        group_count(bytes) * 32
    }

    /// The smallest run of whole groups around some bytes of the file, as `start..end`.
    pub fn around(&self, offset: u64, len: u64) -> std::ops::Range<u64> {
        let end = (offset + len).next_multiple_of(GROUP_BYTES).min(self.bytes);
        (offset / GROUP_BYTES * GROUP_BYTES).min(end)..end
    }

    /// Checks whole groups that start at `offset` of the file, a multiple of [`GROUP_BYTES`].
    pub fn check(&self, offset: u64, bytes: &[u8]) -> bool {
        let aligned = offset.is_multiple_of(GROUP_BYTES);
        aligned
            && bytes.chunks(GROUP_BYTES as usize).zip(offset / GROUP_BYTES..).all(|(group, index)| {
                let start = index * GROUP_BYTES;
                let complete = group.len() as u64 == GROUP_BYTES.min(self.bytes.saturating_sub(start));
                let expected = usize::try_from(index).ok().and_then(|index| self.list.get(index));
                complete && expected == Some(&self.hash(index, group))
            })
    }

    fn hash(&self, index: u64, group: &[u8]) -> [u8; 32] {
        group_hash(index, group, self.list.len() as u64)
    }
}

/// Makes the list of a file's group hashes from its bytes, in order.
#[derive(Debug)]
pub struct GroupHasher {
    list: Vec<[u8; 32]>,
    bytes: u64,
}

impl GroupHasher {
    /// For a file of `bytes` bytes.
    pub fn new(bytes: u64) -> Self {
        Self { list: Vec::with_capacity(group_count(bytes) as usize), bytes }
    }

    /// The next bytes: whole groups, unless the file ends with them.
    pub fn push(&mut self, bytes: &[u8]) {
        for group in bytes.chunks(GROUP_BYTES as usize) {
            self.list.push(group_hash(self.list.len() as u64, group, group_count(self.bytes)));
        }
    }

    /// The hashes; `None` if the bytes were not those of the whole file.
    pub fn finish(mut self) -> Option<GroupHashes> {
        if self.bytes == 0 {
            self.list.push(group_hash(0, &[], 1));
        }
        let complete = self.list.len() as u64 == group_count(self.bytes);
        complete.then_some(GroupHashes { list: self.list, bytes: self.bytes })
    }
}

/// The id of a model by the BLAKE3 roots of its files, as the relay makes it; `None` without files.
pub fn model_id(roots: &[[u8; 32]]) -> Option<ModelId> {
    match roots {
        [] => None,
        [only] => Some(ModelId(*only)),
        _ => Some(ModelId(*blake3::hash(&roots.concat()).as_bytes())),
    }
}

/// Groups of a file of `bytes` bytes; an empty file has an empty one.
fn group_count(bytes: u64) -> u64 {
    bytes.div_ceil(GROUP_BYTES).max(1)
}

/// The hash of group `index` of `count`. A file of a single group has no subtree: its list holds the root.
fn group_hash(index: u64, group: &[u8], count: u64) -> [u8; 32] {
    if count <= 1 {
        return *blake3::hash(group).as_bytes();
    }
    blake3::Hasher::new().set_input_offset(index * GROUP_BYTES).update(group).finalize_non_root()
}

fn subtree(list: &[[u8; 32]]) -> [u8; 32] {
    match list {
        [only] => *only,
        _ => {
            let (left, right) = list.split_at(left_groups(list.len()));
            merge_subtrees_non_root(&subtree(left), &subtree(right), Mode::Hash)
        }
    }
}

/// Groups in the left subtree of `count` of them (at least two): the largest power of two below.
fn left_groups(count: usize) -> usize {
    count.next_power_of_two() / 2
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    fn file(bytes: usize) -> Vec<u8> {
        (0..bytes).map(|i| (i.wrapping_mul(2_654_435_761) >> 11) as u8).collect()
    }

    fn list(file: &[u8]) -> Vec<u8> {
        let mut hasher = GroupHasher::new(file.len() as u64);
        file.chunks(2 * GROUP_BYTES as usize).for_each(|piece| hasher.push(piece));
        hasher.finish().unwrap().list()
    }

    #[test]
    fn a_list_proves_itself_and_then_each_group() {
        let group = GROUP_BYTES as usize;
        for bytes in [1, group, group + 1, 3 * group + 7, 8 * group, 13 * group + 1] {
            let file = file(bytes);
            let root = *blake3::hash(&file).as_bytes();
            let hashes = GroupHashes::prove(&list(&file), bytes as u64, &root).unwrap();
            assert_eq!(hashes.root(), root, "{bytes} bytes");
            assert_eq!(hashes.list().len() as u64, GroupHashes::list_bytes(bytes as u64));
            assert!(hashes.check(0, &file), "{bytes} bytes");
            let range = hashes.around(bytes as u64 / 2, 1);
            let mut piece = file[range.start as usize..range.end as usize].to_vec();
            assert!(hashes.check(range.start, &piece));
            *piece.last_mut().unwrap() ^= 1;
            assert!(!hashes.check(range.start, &piece), "a flipped bit must be found");
        }
    }

    #[test]
    fn a_file_that_ends_early_has_no_hashes_and_an_empty_one_has_its_root() {
        let mut hasher = GroupHasher::new(3 * GROUP_BYTES);
        hasher.push(&file(GROUP_BYTES as usize));
        assert!(hasher.finish().is_none());
        assert_eq!(GroupHasher::new(0).finish().unwrap().root(), *blake3::hash(&[]).as_bytes());
    }

    #[test]
    fn wrong_lists_and_pieces_are_refused() {
        let file = file(3 * GROUP_BYTES as usize);
        let root = *blake3::hash(&file).as_bytes();
        let good = list(&file);
        let hashes = GroupHashes::prove(&good, file.len() as u64, &root).unwrap();
        let mut bad = good.clone();
        bad[40] ^= 1;
        assert_eq!(GroupHashes::prove(&bad, file.len() as u64, &root), None);
        assert_eq!(GroupHashes::prove(&good[..64], file.len() as u64, &root), None);
        assert_eq!(GroupHashes::prove(&good[..95], file.len() as u64, &root), None);
        assert!(!hashes.check(1, &file[1..]), "not aligned");
        assert!(!hashes.check(0, &file[..100]), "an incomplete group");
        assert!(!hashes.check(4 * GROUP_BYTES, &file[..100]), "behind the end");
    }
}
