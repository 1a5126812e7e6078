//! ChaCha20-Poly1305 (RFC 8439). Natively by `ring`, whose assembly is several times as fast; `ring` has none for WebAssembly.

/// Bytes of a tag.
const TAG: usize = crate::wire::TAG;

#[cfg(not(target_arch = "wasm32"))]
mod fastest {
    use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};

    pub struct Cipher(LessSafeKey);

    impl Cipher {
        pub fn new(key: &[u8; 32]) -> Self {
            let key = UnboundKey::new(&CHACHA20_POLY1305, key);
            Self(LessSafeKey::new(key.expect("the algorithm's keys have 32 bytes")))
        }

        pub fn seal(&self, nonce: [u8; 12], aad: &[u8], body: &mut [u8]) -> Option<[u8; super::TAG]> {
            let nonce = Nonce::assume_unique_for_key(nonce);
            let tag = self.0.seal_in_place_separate_tag(nonce, Aad::from(aad), body).ok()?;
            tag.as_ref().try_into().ok()
        }

        pub fn open(&self, nonce: [u8; 12], aad: &[u8], body: &mut [u8], tag: [u8; super::TAG]) -> bool {
            let nonce = Nonce::assume_unique_for_key(nonce);
            self.0.open_in_place_separate_tag(nonce, Aad::from(aad), tag.into(), body, 0..).is_ok()
        }
    }
}

#[cfg(any(test, target_arch = "wasm32"))]
mod portable {
    use chacha20poly1305::aead::AeadInPlace;
    use chacha20poly1305::{ChaCha20Poly1305, Key, KeyInit, Nonce, Tag};

    pub struct Cipher(ChaCha20Poly1305);

    impl Cipher {
        pub fn new(key: &[u8; 32]) -> Self {
            Self(ChaCha20Poly1305::new(Key::from_slice(key)))
        }

        pub fn seal(&self, nonce: [u8; 12], aad: &[u8], body: &mut [u8]) -> Option<[u8; super::TAG]> {
            self.0.encrypt_in_place_detached(&Nonce::from(nonce), aad, body).ok().map(Into::into)
        }

        pub fn open(&self, nonce: [u8; 12], aad: &[u8], body: &mut [u8], tag: [u8; super::TAG]) -> bool {
            self.0.decrypt_in_place_detached(&Nonce::from(nonce), aad, body, &Tag::from(tag)).is_ok()
        }
    }
}

#[cfg(not(target_arch = "wasm32"))]
pub(crate) use fastest::Cipher;
#[cfg(target_arch = "wasm32")]
pub(crate) use portable::Cipher;

#[cfg(test)]
mod tests {
    use super::{fastest, portable};

    /// A browser and a native peer seal for each other.
    #[test]
    fn both_ciphers_write_the_same_bytes_and_open_each_others() {
        let (key, nonce, aad) = ([7; 32], [9; 12], b"header");
        let (fast, slow) = (fastest::Cipher::new(&key), portable::Cipher::new(&key));
        for length in [0, 1, 63, 64, 65, 1_000, 8_192, 100_000] {
            let plain: Vec<u8> = (0..length).map(|byte| byte as u8).collect();
            let (mut one, mut two) = (plain.clone(), plain.clone());
            let tags = [fast.seal(nonce, aad, &mut one), slow.seal(nonce, aad, &mut two)];
            assert!(one == two && tags[0] == tags[1], "{length} bytes");
            let tag = tags[0].expect("short messages are sealed");
            assert!(slow.open(nonce, aad, &mut one, tag) && fast.open(nonce, aad, &mut two, tag), "{length} bytes");
            assert!(one == plain && two == plain, "{length} bytes");
            let mut wrong = tag;
            wrong[0] ^= 1;
            assert!(!fast.open(nonce, aad, &mut two, wrong) && !fast.open(nonce, b"", &mut one, tag), "{length} bytes");
        }
    }
}
