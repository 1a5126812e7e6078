//! Hashes of rows: what a stage got and sent, page by page, so that its work can be compared later.

use potluck_protocol::{RowRange, RowsHash};

/// Hashes of the rows of a conversation, one for each position.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hashed(Vec<RowsHash>);

impl Hashed {
    /// Rows of `width` values from position `base` on. What was there before, and behind it, is gone. Rows that would leave a gap
    /// are not taken.
    pub fn put(&mut self, base: usize, rows: &[f32], width: usize) {
        if base <= self.0.len() && width > 0 {
            self.0.truncate(base);
            self.0.extend(rows.chunks(width).map(row_hash));
        }
    }

    /// The hash of each page of so many positions; none if there are fewer.
    pub fn pages(&self, positions: usize) -> Option<Vec<RowsHash>> {
        Some(self.0.get(..positions)?.chunks(RowRange::PAGE as usize).map(page_hash).collect())
    }
}

/// The hash of a page's rows.
pub(crate) fn hash_of(rows: &[f32], width: usize) -> RowsHash {
    let mut hashed = Hashed::default();
    hashed.put(0, rows, width);
    page_hash(&hashed.0)
}

fn row_hash(row: &[f32]) -> RowsHash {
    let mut bytes = Vec::with_capacity(size_of_val(row));
    row.iter().for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
    blake3::hash(&bytes).into()
}

fn page_hash(rows: &[RowsHash]) -> RowsHash {
    blake3::hash(rows.as_flattened()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_depend_on_every_bit_and_on_nothing_that_was_overwritten() {
        let rows: Vec<f32> = (0..140).map(|value| value as f32 / 3.0).collect();
        let mut once = Hashed::default();
        once.put(0, &rows, 2);
        let mut often = Hashed::default();
        often.put(0, &rows[..40], 2);
        often.put(20, &[9.0; 30], 2);
        often.put(20, &rows[40..], 2);
        assert_eq!(once.pages(70), often.pages(70), "a draft that was refused leaves nothing behind");
        assert_eq!(once.pages(70).map(|pages| pages.len()), Some(2));
        assert_eq!(once.pages(71), None, "there is no such position");
        let mut other = rows.clone();
        other[139] = f32::from_bits(other[139].to_bits() ^ 1);
        let pages = once.pages(70).unwrap_or_default();
        assert_eq!(hash_of(&rows[..128], 2), pages[0]);
        assert_ne!(hash_of(&other[128..], 2), pages[1], "one bit");
        once.put(80, &[1.0; 2], 2);
        assert_eq!(once.pages(71), None, "rows behind a gap are not taken");
    }
}
