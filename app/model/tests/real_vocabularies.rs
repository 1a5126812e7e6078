//! Published vocabularies with the ids that others gave for texts: the files `ggml-vocab-*.gguf` with their `.inp` and
//! `.out` in llama.cpp's source distribution (too large to keep here), and 10,000 lines of mixed text as llama.cpp encodes
//! them. `e2e/golden/vocabularies.py` fetches and makes all of it and runs this test:
//!
//!     python3 e2e/golden/vocabularies.py
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::{Path, PathBuf};

use potluck_model::{SpecialText, StopTokens, Tokenizer};

fn folder() -> PathBuf {
    PathBuf::from(std::env::var("POTLUCK_VOCABULARIES").expect("POTLUCK_VOCABULARIES names a folder"))
}

/// The vocabularies of the folder that text models use, by name.
fn vocabularies(folder: &Path) -> Vec<(String, potluck_gguf::Metadata)> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let name = |file: String| Some(file.strip_prefix("ggml-vocab-")?.strip_suffix(".gguf")?.to_owned());
    // Of BERT, whose models write nothing.
    let mut names: Vec<String> = names.filter_map(name).filter(|name| name != "bert-bge").collect();
    names.sort();
    let read = |name: &String| {
        let file = fs::read(folder.join(format!("ggml-vocab-{name}.gguf"))).unwrap();
        (name.clone(), potluck_gguf::parse(&file).unwrap().metadata)
    };
    names.iter().map(read).collect()
}

fn ids(line: &str) -> Vec<u32> {
    line.split_whitespace().map(|id| id.parse().unwrap()).collect()
}

fn first_wrong<'a>(
    tokenizer: &Tokenizer,
    special: SpecialText,
    cases: impl Iterator<Item = (&'a str, Vec<u32>)>,
) -> Option<String> {
    let wrong: Vec<String> = cases
        .filter_map(|(text, expected)| {
            let found = tokenizer.encode(text, special);
            (found != expected).then(|| format!("{text:?}\n  found    {found:?}\n  expected {expected:?}"))
        })
        .collect();
    Some(format!("{} wrong, first {}", wrong.len(), wrong.first()?))
}

#[test]
#[ignore = "needs the vocabularies of llama.cpp in $POTLUCK_VOCABULARIES"]
fn published_vocabularies_give_the_ids_of_their_makers() {
    let folder = folder();
    let mut wrong = Vec::new();
    let mut count = 0;
    for (name, metadata) in vocabularies(&folder) {
        let tokenizer = Tokenizer::from_metadata(&metadata).unwrap();
        let read = |ending: &str| fs::read_to_string(folder.join(format!("ggml-vocab-{name}.gguf{ending}")));
        let (Ok(texts), Ok(expected)) = (read(".inp"), read(".out")) else { continue };
        count += 1;
        let cases = texts.split("\n__ggml_vocab_test__\n").zip(expected.lines().map(ids));
        wrong.extend(first_wrong(&tokenizer, SpecialText::Literal, cases).map(|wrong| format!("{name}: {wrong}")));
    }
    assert!(count >= 14, "only {count} vocabularies have vectors");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[ignore = "needs the vocabularies of llama.cpp in $POTLUCK_VOCABULARIES"]
fn ten_thousand_lines_have_the_ids_of_llama_cpp() {
    let folder = folder();
    let text = fs::read_to_string(folder.join("mixed.json")).unwrap();
    let lines: Vec<String> = serde_json::from_str(&text).unwrap();
    assert_eq!(lines.len(), 10_000);
    let mut wrong = Vec::new();
    for (name, metadata) in vocabularies(&folder) {
        let tokenizer = Tokenizer::from_metadata(&metadata).unwrap();
        for (ending, special) in [("literal", SpecialText::Literal), ("parse", SpecialText::Parse)] {
            let expected = fs::read_to_string(folder.join(format!("{name}.{ending}.ids"))).unwrap();
            let cases = lines.iter().map(String::as_str).zip(expected.lines().map(ids));
            // Where `</s>` is ordinary text, llama.cpp takes it for a control token all the same.
            let is_text = special == SpecialText::Parse && tokenizer.special_id("</s>").is_none();
            let cases = cases.filter(|(line, _)| !(is_text && line.contains("</s>")));
            // Its regex engine does not find this character in DeepSeek's list of punctuation.
            let cases = cases.filter(|(line, _)| !(name == "deepseek-llm" && line.contains('\u{3000}')));
            let found = first_wrong(&tokenizer, special, cases);
            wrong.extend(found.map(|wrong| format!("{name}, {ending}: {wrong}")));
        }
        let plain: Vec<String> = lines.iter().filter(|line| !line.contains(['▁', '<'])).take(1000).cloned().collect();
        let lost = plain.iter().find(|line| tokenizer.decode(&tokenizer.encode(line, SpecialText::Literal)) != **line);
        // Behind a user-defined token like `</s>`, SentencePiece's spaces are taken for text; a unigram vocabulary replaces what it does not know, and others lack bytes.
        let may_lose = !tokenizer.warnings().is_empty() || metadata.str("tokenizer.ggml.model") == Ok("t5");
        wrong.extend(lost.filter(|_| !may_lose).map(|line| format!("{name} loses a part of {line:?}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[ignore = "needs the vocabularies of llama.cpp in $POTLUCK_VOCABULARIES"]
fn answers_end_where_llama_cpp_ends_them() {
    let folder = folder();
    let mut wrong = Vec::new();
    for (name, metadata) in vocabularies(&folder) {
        let tokenizer = Tokenizer::from_metadata(&metadata).unwrap();
        let stops = StopTokens::from_metadata(&metadata, &tokenizer).unwrap();
        let mut expected = ids(&fs::read_to_string(folder.join(format!("{name}.ends"))).unwrap());
        // See above: an answer about HTML may contain it.
        expected.retain(|&id| tokenizer.special_id("</s>").is_some() || tokenizer.piece(id) != b"</s>");
        let names = |ids: &[u32]| ids.iter().map(|&id| tokenizer.name(id)).collect::<Vec<String>>();
        let found: Vec<u32> = stops.iter().collect();
        if found != expected {
            wrong.push(format!("{name}: {:?}, expected {:?}", names(&found), names(&expected)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
