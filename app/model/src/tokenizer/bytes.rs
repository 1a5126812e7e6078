//! The alphabet of byte-level BPE, which writes every byte as one printable character.

/// The byte that a character of the alphabet represents.
///
/// Printable bytes represent themselves; the other 68 map to U+0100 and up, in order (GPT-2).
pub(super) fn byte_of(c: char) -> Option<u8> {
    match u32::from(c) {
        code @ (0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff) => u8::try_from(code).ok(),
        code @ 0x100..=0x120 => u8::try_from(code - 0x100).ok(),
        code @ 0x121..=0x142 => u8::try_from(code - 0x121 + 0x7f).ok(),
        0x143 => Some(0xad),
        _ => None,
    }
}

/// The bytes of a token in this alphabet, or `None` if a character is not part of it.
pub(super) fn bytes_of(token: &str) -> Option<Vec<u8>> {
    token.chars().map(byte_of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_alphabet_covers_every_byte_once() {
        let mut bytes: Vec<u8> = (0..0x200).filter_map(char::from_u32).filter_map(byte_of).collect();
        bytes.sort_unstable();
        assert_eq!(bytes, (0..=255).collect::<Vec<u8>>());
        assert_eq!(byte_of('Ġ'), Some(b' '));
        assert_eq!(byte_of('Ċ'), Some(b'\n'));
        assert_eq!(byte_of('\u{143}'), Some(0xad));
        assert_eq!(bytes_of("Ġthe"), Some(b" the".to_vec()));
        assert_eq!(bytes_of("a b"), None, "a space is not of the alphabet");
    }
}
