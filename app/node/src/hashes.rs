//! Verifies pieces of a file against its BLAKE3 root, with the relay's list of group hashes.
//!
//! A group is a 64 KiB subtree of BLAKE3's tree, and the list holds the chaining values of these subtrees. The relay creates it
//! in `relay/src/models/groups.rs`.

use blake3::Hash;
use blake3::hazmat::{HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};

/// Bytes in a group.
pub const GROUP_BYTES: u64 = 64 * 1024;

/// The group hashes of a file, verified against its root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupHashes {
    list: Vec<[u8; 32]>,
    bytes: u64,
}

impl GroupHashes {
    /// Verifies a list from the relay; `None` if it does not belong to the file of `bytes` bytes with this root.
    pub fn prove(list: &[u8], bytes: u64, root: &[u8; 32]) -> Option<Self> {
        let (list, rest) = list.as_chunks::<32>();
        let expected = bytes.div_ceil(GROUP_BYTES).max(1);
        if !rest.is_empty() || list.len() as u64 != expected {
            return None;
        }
        let merged = match list {
            [only] => Hash::from_bytes(*only),
            _ => {
                let (left, right) = list.split_at(left_groups(list.len()));
                merge_subtrees_root(&subtree(left), &subtree(right), Mode::Hash)
            }
        };
        (merged == Hash::from_bytes(*root)).then(|| Self { list: list.to_vec(), bytes })
    }

    /// The smallest range of whole groups around some bytes of the file, as `start..end`.
    pub fn around(&self, offset: u64, len: u64) -> std::ops::Range<u64> {
        let end = (offset + len).next_multiple_of(GROUP_BYTES).min(self.bytes);
        (offset / GROUP_BYTES * GROUP_BYTES).min(end)..end
    }

    /// Verifies whole groups that start at `offset` in the file, a multiple of [`GROUP_BYTES`].
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
        if self.list.len() <= 1 {
            return *blake3::hash(group).as_bytes();
        }
        blake3::Hasher::new().set_input_offset(index * GROUP_BYTES).update(group).finalize_non_root()
    }
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

/// Groups in the left subtree of `count` groups (at least two): the largest power of two below `count`.
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
        if file.len() as u64 <= GROUP_BYTES {
            return blake3::hash(file).as_bytes().to_vec();
        }
        let hash = |(index, group): (usize, &[u8])| {
            blake3::Hasher::new().set_input_offset(index as u64 * GROUP_BYTES).update(group).finalize_non_root()
        };
        file.chunks(GROUP_BYTES as usize).enumerate().flat_map(hash).collect()
    }

    #[test]
    fn a_list_proves_itself_and_then_each_group() {
        let group = GROUP_BYTES as usize;
        for bytes in [1, group, group + 1, 3 * group + 7, 8 * group, 13 * group + 1] {
            let file = file(bytes);
            let root = *blake3::hash(&file).as_bytes();
            let hashes = GroupHashes::prove(&list(&file), bytes as u64, &root).unwrap();
            assert!(hashes.check(0, &file), "{bytes} bytes");
            let range = hashes.around(bytes as u64 / 2, 1);
            let mut piece = file[range.start as usize..range.end as usize].to_vec();
            assert!(hashes.check(range.start, &piece));
            *piece.last_mut().unwrap() ^= 1;
            assert!(!hashes.check(range.start, &piece), "a flipped bit must be found");
        }
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
