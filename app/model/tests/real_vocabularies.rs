//! Published vocabularies with the texts and ids that Hugging Face's tokenizers gave for them: the files
//! `ggml-vocab-*.gguf` with their `.inp` and `.out` in llama.cpp's source distribution, too large to keep here.
//!
//!     POTLUCK_VOCABULARIES=DIR cargo test -p potluck-model --test real_vocabularies -- --ignored
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::PathBuf;

use potluck_model::{SpecialText, Tokenizer, TokenizerWarning};

const NAMES: [&str; 8] = ["llama-bpe", "qwen2", "gpt-2", "starcoder", "refact", "command-r", "mpt", "llama-spm"];

#[test]
#[ignore = "needs the vocabularies of llama.cpp in $POTLUCK_VOCABULARIES"]
fn published_vocabularies_give_the_ids_of_their_makers() {
    let folder = PathBuf::from(std::env::var("POTLUCK_VOCABULARIES").expect("POTLUCK_VOCABULARIES names a folder"));
    let mut wrong = Vec::new();
    for name in NAMES {
        let read = |ending: &str| fs::read(folder.join(format!("ggml-vocab-{name}.gguf{ending}"))).unwrap();
        let tokenizer = Tokenizer::from_metadata(&potluck_gguf::parse(&read("")).unwrap().metadata).unwrap();
        let guessed = tokenizer.warnings().iter().find(|warning| !matches!(warning, TokenizerWarning::MissingBytes(_)));
        assert_eq!(guessed, None, "{name}");
        let texts = String::from_utf8(read(".inp")).unwrap();
        let ids = String::from_utf8(read(".out")).unwrap();
        for (text, ids) in texts.split("\n__ggml_vocab_test__\n").zip(ids.lines()) {
            let expected: Vec<u32> = ids.split_whitespace().map(|id| id.parse().unwrap()).collect();
            let found = tokenizer.encode(text, SpecialText::Literal);
            if found != expected {
                wrong.push(format!("{name}: {text:?}\n  found    {found:?}\n  expected {expected:?}"));
            }
            assert_eq!(tokenizer.decode(&found), text, "{name}");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
