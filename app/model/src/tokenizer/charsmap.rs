//! SentencePiece's compiled text normalization (`precompiled_charsmap`): replaces the longest known beginning of a text.

/// Most bytes of a text that one replacement covers. Real ones cover at most a few dozen.
const MAX_MATCH_BYTES: usize = 64;

/// A double array of beginnings, and their replacements.
///
/// The array is XOR-compressed (Kanda, "Space- and Time-Efficient String Dictionaries", 2018). Each entry has its base in
/// bits 10 to 30 (shifted by 8 more if bit 9 is set), the byte that leads to it in bits 0 to 7, and in bit 8 whether a
/// beginning ends there; the entry at the base then holds, in bits 0 to 30, where its replacement starts.
#[derive(Clone, Debug, Default)]
pub(super) struct Charsmap {
    entries: Vec<u32>,
    /// Ending in zero bytes.
    replacements: Vec<u8>,
}

impl Charsmap {
    /// Reads the array's size in bytes, the array, and the replacements. What is malformed replaces nothing.
    pub(super) fn new(blob: &[u8]) -> Self {
        let Some((size, rest)) = blob.split_first_chunk::<4>() else { return Self::default() };
        let size = u32::from_le_bytes(*size) as usize;
        let Some((entries, replacements)) = rest.split_at_checked(size) else { return Self::default() };
        let (entries, _) = entries.as_chunks::<4>();
        Self {
            entries: entries.iter().map(|entry| u32::from_le_bytes(*entry)).collect(),
            replacements: replacements.to_vec(),
        }
    }

    /// The replacement of the longest known beginning of a text, and that beginning's length in bytes.
    pub(super) fn replace(&self, text: &str) -> Option<(&str, usize)> {
        let entry = |at: u32| self.entries.get(at as usize).copied();
        let base = |entry: u32| (entry >> 10) << ((entry & 1 << 9) >> 6);
        let mut node = base(entry(0)?);
        let mut longest = None;
        for (index, &byte) in text.as_bytes().iter().enumerate().take(MAX_MATCH_BYTES) {
            node ^= u32::from(byte);
            let Some(found) = entry(node).filter(|found| byte != 0 && found & (1 << 31 | 0xff) == u32::from(byte))
            else {
                break;
            };
            node ^= base(found);
            if found >> 8 & 1 == 1 {
                let start = entry(node).map_or(u32::MAX, |value| value & !(1 << 31));
                longest = self.replacement(start as usize).map(|text| (text, index + 1)).or(longest);
            }
        }
        longest.filter(|(_, len)| text.is_char_boundary(*len))
    }

    fn replacement(&self, start: usize) -> Option<&str> {
        let rest = self.replacements.get(start..)?;
        let end = rest.iter().position(|&byte| byte == 0)?;
        std::str::from_utf8(&rest[..end]).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_malformed_replaces_nothing() {
        assert_eq!(Charsmap::new(&[]).replace("a"), None);
        assert_eq!(Charsmap::new(&[255; 9]).replace("a"), None);
        let mut endless = 1024u32.to_le_bytes().to_vec();
        endless.resize(4 + 1024, 0xff);
        endless.extend_from_slice(b"no end");
        assert_eq!(Charsmap::new(&endless).replace("abc"), None);
    }

    #[test]
    fn the_longest_beginning_is_replaced() {
        // The root has base 0; "a" leads to entry 97, which ends there and whose base 256 holds its replacement.
        let mut entries = vec![0u32; 512];
        entries[97] = 256 << 10 | 1 << 8 | 97;
        entries[97 ^ 256] = 1 << 31 | 2;
        let mut blob = (entries.len() as u32 * 4).to_le_bytes().to_vec();
        blob.extend(entries.iter().flat_map(|entry| entry.to_le_bytes()));
        blob.extend_from_slice(b"x\0bc\0");
        let map = Charsmap::new(&blob);
        assert_eq!(map.replace("ab"), Some(("bc", 1)));
        assert_eq!(map.replace("ba"), None);
    }
}
