//! Reference results that are stored compressed.

use std::io::Read;

/// The text of a `.gz` file.
///
/// # Panics
/// If these bytes are not gzip of UTF-8 text.
pub fn gunzip(compressed: &[u8]) -> String {
    let mut text = String::new();
    let read = flate2::read::GzDecoder::new(compressed).read_to_string(&mut text);
    read.unwrap_or_else(|error| panic!("a compressed golden file cannot be read: {error}"));
    text
}
