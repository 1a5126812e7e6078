//! Reference results that are stored compressed.

use std::io::Read;
use std::path::Path;

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

/// The text of a file, which may be stored as `FILE.gz`.
///
/// # Panics
/// If there is neither, or it is not UTF-8 text.
pub fn read_golden(path: &Path) -> String {
    let mut packed = path.as_os_str().to_owned();
    packed.push(".gz");
    match std::fs::read(&packed) {
        Ok(bytes) => gunzip(&bytes),
        Err(_) => std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())),
    }
}

/// The bytes of a `.br` file.
///
/// # Panics
/// If it is not Brotli.
pub fn unbrotli(compressed: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let read = brotli::Decompressor::new(compressed, 4096).read_to_end(&mut bytes);
    read.unwrap_or_else(|error| panic!("a compressed file cannot be read: {error}"));
    bytes
}
