//! The fingerprint by which a relay's own certificate is known.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// SHA-256 of a certificate in DER, as browsers and `openssl x509 -fingerprint -sha256` show it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint([u8; 32]);

/// A text is not a fingerprint.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("expected the certificate's SHA-256 fingerprint, 64 hexadecimal digits")]
pub struct BadFingerprint;

impl Fingerprint {
    /// The fingerprint of a certificate in DER.
    pub fn of(der: &[u8]) -> Self {
        let digest = ring::digest::digest(&ring::digest::SHA256, der);
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest.as_ref());
        Self(bytes)
    }
}

impl FromStr for Fingerprint {
    type Err = BadFingerprint;

    /// Digits of either case, with or without colons between the bytes.
    fn from_str(text: &str) -> Result<Self, BadFingerprint> {
        let digits: Vec<u32> = text.chars().filter(|c| *c != ':').map_while(|c| c.to_digit(16)).collect();
        let (pairs, rest) = digits.as_chunks::<2>();
        if !rest.is_empty() || text.chars().any(|c| c != ':' && !c.is_ascii_hexdigit()) {
            return Err(BadFingerprint);
        }
        let bytes: Vec<u8> = pairs.iter().map(|[high, low]| (high << 4 | low) as u8).collect();
        bytes.try_into().map(Self).map_err(|_| BadFingerprint)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn fingerprints_are_read_as_browsers_and_openssl_write_them() {
        // SHA-256 of "abc", from FIPS 180-2.
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Fingerprint::of(b"abc").to_string(), known);
        let pairs: Vec<&str> = (0..32).map(|at| &known[2 * at..2 * at + 2]).collect();
        for text in [known.to_owned(), known.to_uppercase(), pairs.join(":")] {
            assert_eq!(text.parse(), Ok(Fingerprint::of(b"abc")));
        }
        for wrong in
            ["", "ba78", &known[1..], &format!("{known}00"), &known.replace('b', "g"), &known.replace('b', "é")]
        {
            assert_eq!(wrong.parse::<Fingerprint>(), Err(BadFingerprint), "{wrong:?}");
        }
    }
}
