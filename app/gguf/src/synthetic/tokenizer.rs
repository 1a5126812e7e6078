//! A small byte-level BPE tokenizer for synthetic models: all bytes, merges for common words, three markers.

use std::collections::HashSet;

use crate::{Array, GgufError, Metadata, Value};

/// Minimum vocabulary: all bytes and the markers.
pub const MIN_VOCABULARY: u32 = 256 + 3;

const MARKERS: [&str; 3] = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"];

/// The prefixes of these words, with the leading space, become tokens.
const WORDS: &str = "the of and to in is that it was for on are as with his they at be this from have or by one had not but \
what all were when we there can an your which their said if do will each about how up out them then she many some so these \
would other into has more her two like him see time could no make than first been its who now people my made over did down \
only way find use may water long little very after words called just where most know table everyone brings dinner together";

/// ChatML, as Qwen's models use it.
const CHAT_TEMPLATE: &str = "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + \
message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

/// Sets the `tokenizer` keys for a vocabulary of this size.
pub(super) fn describe(metadata: &mut Metadata, vocabulary: u32, pre: &str) -> Result<(), GgufError> {
    if vocabulary < MIN_VOCABULARY {
        return Err(GgufError::TooLarge {
            what: "the number of bytes and markers in the vocabulary".to_string(),
            value: MIN_VOCABULARY.into(),
            limit: vocabulary.into(),
        });
    }
    let merged = vocabulary as usize - MIN_VOCABULARY as usize;
    let mut tokens: Vec<String> = (0..=255).map(|byte| byte_letter(byte).to_string()).collect();
    let merges = merges(&mut tokens, merged);
    let mut types = vec![1; tokens.len()];
    let first_marker = tokens.len() as u32;
    tokens.extend(MARKERS.map(str::to_string));
    // Type 1 is an ordinary token, 3 a control token.
    types.extend([3; MARKERS.len()]);
    metadata.insert("tokenizer.ggml.model", Value::from("gpt2"));
    metadata.insert("tokenizer.ggml.pre", Value::from(pre));
    metadata.insert("tokenizer.ggml.tokens", Value::from(tokens));
    metadata.insert("tokenizer.ggml.token_type", Value::Array(Array::I32(types)));
    metadata.insert("tokenizer.ggml.merges", Value::from(merges));
    metadata.insert("tokenizer.ggml.bos_token_id", Value::U32(first_marker));
    metadata.insert("tokenizer.ggml.padding_token_id", Value::U32(first_marker));
    metadata.insert("tokenizer.ggml.eos_token_id", Value::U32(first_marker + 2));
    metadata.insert("tokenizer.ggml.add_bos_token", Value::Bool(false));
    metadata.insert("tokenizer.chat_template", Value::from(CHAT_TEMPLATE));
    Ok(())
}

/// The character for a byte in byte-level vocabularies (GPT-2): the byte itself if printable, otherwise one from U+0100
/// up.
fn byte_letter(byte: u8) -> char {
    let prints = |byte: u8| matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    if prints(byte) {
        return char::from(byte);
    }
    let before = (0..byte).filter(|&other| !prints(other)).count() as u32;
    // Only 68 bytes are not printable, so the code point stays among assigned letters.
    char::from_u32(256 + before).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Adds `count` tokens, each merging two earlier ones; returns the merges in order.
fn merges(tokens: &mut Vec<String>, count: usize) -> Vec<String> {
    let mut known: HashSet<String> = tokens.iter().cloned().collect();
    let mut merges = Vec::with_capacity(count);
    let mut merge = |left: &str, right: &str| {
        let token = format!("{left}{right}");
        if merges.len() < count && known.insert(token.clone()) {
            merges.push(format!("{left} {right}"));
            tokens.push(token);
        }
        merges.len() == count
    };
    let space = byte_letter(b' ').to_string();
    'done: {
        for word in WORDS.split_whitespace() {
            let mut left = space.clone();
            for letter in word.chars() {
                if merge(&left, &letter.to_string()) {
                    break 'done;
                }
                left.push(letter);
            }
        }
        // Fills large vocabularies: all pairs of letters, then each pair extended by a third and a fourth letter.
        let letters: Vec<String> = ('a'..='z').chain('A'..='Z').map(String::from).collect();
        let pairs: Vec<String> = letters.iter().flat_map(|a| letters.iter().map(move |b| format!("{a}{b}"))).collect();
        for pair in &pairs {
            if merge(&pair[..1], &pair[1..]) {
                break 'done;
            }
        }
        for left in &pairs {
            for right in &pairs {
                if merge(left, right) {
                    break 'done;
                }
            }
        }
    }
    merges
}
