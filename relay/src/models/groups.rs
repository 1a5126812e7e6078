//! Group hashes: they let any piece of a file be checked against its BLAKE3 hash.
//!
//! BLAKE3 is a tree. Cut the file into groups of [`GROUP_BYTES`]: each full group is one subtree, and its chaining value is
//! the group's hash. `GET /models/NAME.b3` sends the list of all of them, 32 bytes per group, 0.05% of the file. Merging
//! the list gives the file's hash, so the list proves itself ([`verify_list`]); after that, each group can be checked on
//! its own ([`verify_group`]).
//!
//! A file of a single group has no subtree: its list holds the file's hash itself.

use blake3::Hash;
use blake3::hazmat::{HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};
pub use potluck_relay_api::http::GROUP_BYTES;

/// A group's hash.
pub type GroupHash = [u8; 32];

/// The hash of group `index` in a file of `count` groups. `bytes` is at most one group and, unless the file is empty, not
/// empty; BLAKE3 panics otherwise.
pub fn group_hash(bytes: &[u8], index: u64, count: u64) -> GroupHash {
    if count <= 1 {
        return *blake3::hash(bytes).as_bytes();
    }
    blake3::Hasher::new().set_input_offset(index * GROUP_BYTES).update(bytes).finalize_non_root()
}

/// The number of groups in a file of `bytes` bytes. An empty file has one empty group.
pub fn group_count(bytes: u64) -> u64 {
    bytes.div_ceil(GROUP_BYTES).max(1)
}

/// The file's BLAKE3 hash from its group hashes; `None` for an empty list.
pub fn merge(list: &[GroupHash]) -> Option<Hash> {
    match list {
        [] => None,
        [only] => Some(Hash::from_bytes(*only)),
        _ => {
            let (left, right) = list.split_at(left_groups(list.len()));
            Some(merge_subtrees_root(&subtree(left), &subtree(right), Mode::Hash))
        }
    }
}

fn subtree(list: &[GroupHash]) -> GroupHash {
    match list {
        [only] => *only,
        _ => {
            let (left, right) = list.split_at(left_groups(list.len()));
            merge_subtrees_non_root(&subtree(left), &subtree(right), Mode::Hash)
        }
    }
}

/// How many of `count` groups are in the left subtree: the largest power of two below `count`, which is at least two.
fn left_groups(count: usize) -> usize {
    count.next_power_of_two() / 2
}

/// Whether a list belongs to the file of `bytes` bytes with the BLAKE3 hash `root`.
pub fn verify_list(list: &[GroupHash], bytes: u64, root: &Hash) -> bool {
    list.len() as u64 == group_count(bytes) && merge(list).as_ref() == Some(root)
}

/// Whether these are the bytes of group `index`, by a list that [`verify_list`] accepted.
pub fn verify_group(list: &[GroupHash], index: u64, bytes: &[u8]) -> bool {
    let expected = usize::try_from(index).ok().and_then(|index| list.get(index));
    // A subtree is never empty and never longer than a group; only a file without bytes has an empty group.
    let fits = bytes.len() as u64 <= GROUP_BYTES && (list.len() == 1 || !bytes.is_empty());
    fits && expected.is_some_and(|expected| group_hash(bytes, index, list.len() as u64) == *expected)
}

/// The root of a model: of a single file its root, of several files the hash of their concatenated roots.
pub fn model_root(roots: &[Hash]) -> Option<Hash> {
    match roots {
        [] => None,
        [only] => Some(*only),
        _ => {
            let mut hasher = blake3::Hasher::new();
            for root in roots {
                hasher.update(root.as_bytes());
            }
            Some(hasher.finalize())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(bytes: usize) -> Vec<u8> {
        (0..bytes).map(|i| (i.wrapping_mul(2_654_435_761) >> 11) as u8).collect()
    }

    fn list(bytes: &[u8]) -> Vec<GroupHash> {
        let count = group_count(bytes.len() as u64);
        let pieces = (0..count).map(|i| {
            let start = (i * GROUP_BYTES) as usize;
            &bytes[start..bytes.len().min(start + GROUP_BYTES as usize)]
        });
        pieces.enumerate().map(|(i, piece)| group_hash(piece, i as u64, count)).collect()
    }

    #[test]
    fn merged_groups_are_the_plain_hash_of_the_file() {
        let group = GROUP_BYTES as usize;
        for bytes in [0, 1, group - 1, group, group + 1, 2 * group, 3 * group + 7, 5 * group, 8 * group, 13 * group + 1]
        {
            let file = file(bytes);
            assert_eq!(merge(&list(&file)), Some(blake3::hash(&file)), "{bytes} bytes");
        }
    }

    #[test]
    fn each_group_is_checked_alone_and_a_flipped_bit_is_found() {
        let file = file(3 * GROUP_BYTES as usize + 100);
        let list = list(&file);
        assert!(verify_list(&list, file.len() as u64, &blake3::hash(&file)));
        for (i, group) in file.chunks(GROUP_BYTES as usize).enumerate() {
            assert!(verify_group(&list, i as u64, group));
            let mut wrong = group.to_vec();
            wrong[group.len() / 2] ^= 1;
            assert!(!verify_group(&list, i as u64, &wrong));
            assert!(!verify_group(&list, i as u64 + 1, group));
        }
        let too_long = vec![0; GROUP_BYTES as usize + 1];
        assert!(!verify_group(&list, 0, &too_long));
        assert!(!verify_group(&list, 0, &[]));
    }

    #[test]
    fn a_list_that_is_short_or_altered_is_refused() {
        let file = file(4 * GROUP_BYTES as usize);
        let mut list = list(&file);
        let root = blake3::hash(&file);
        assert!(!verify_list(&list[..3], file.len() as u64, &root));
        assert!(!verify_list(&[], 0, &root));
        list[2][0] ^= 1;
        assert!(!verify_list(&list, file.len() as u64, &root));
    }
}
