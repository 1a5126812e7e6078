//! Vocabularies of byte-level BPE without merges: other text than the special tokens' is a token a byte.

use potluck_gguf::{Array, Metadata, Value};
use potluck_model::TokenKind;

/// The tokenizer's metadata: a token for each of the 256 bytes, then these.
pub fn metadata(special: &[(&str, TokenKind)]) -> Metadata {
    // The alphabet of byte-level BPE: printable bytes stand for themselves, the others for characters from U+0100 on.
    let mut others = '\u{100}'..;
    let alphabet = (0..=255u8).map(|byte| match byte {
        0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff => char::from(byte),
        _ => others.next().unwrap(),
    });
    let bytes = alphabet.map(|letter| (letter.to_string(), TokenKind::Normal));
    let special = special.iter().map(|(name, kind)| ((*name).to_owned(), *kind));
    let (tokens, kinds): (Vec<String>, Vec<i32>) =
        bytes.chain(special).map(|(token, kind)| (token, i32::from(kind as u8))).unzip();
    let mut metadata = Metadata::new();
    metadata.insert("tokenizer.ggml.model", "gpt2".into());
    metadata.insert("tokenizer.ggml.pre", "gpt-2".into());
    metadata.insert("tokenizer.ggml.tokens", tokens.into());
    metadata.insert("tokenizer.ggml.token_type", Value::Array(Array::I32(kinds)));
    metadata.insert("tokenizer.ggml.merges", Vec::<String>::new().into());
    metadata
}

/// These names, each as a control token.
pub fn control<'n>(names: &[&'n str]) -> Vec<(&'n str, TokenKind)> {
    names.iter().map(|name| (*name, TokenKind::Control)).collect()
}
