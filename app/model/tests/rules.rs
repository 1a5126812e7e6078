//! Every rule for splitting text against llama.cpp's, on 10,000 lines of mixed text (`e2e/golden/vocabularies.py --golden`).
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "common/mixed.rs"]
mod mixed;

use std::fs;

use potluck_gguf::{Array, Metadata, Value};
use potluck_model::{SpecialText, Tokenizer};
use potluck_testkit::gunzip;
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    tokens: Vec<String>,
    merges: Vec<String>,
    groups: Vec<Group>,
}

/// Names for which llama.cpp gives the same ids, and a hash of the ids of every hundred lines.
#[derive(Deserialize)]
struct Group {
    names: Vec<String>,
    hashes: Vec<u32>,
}

impl Golden {
    fn tokenizer(&self, name: &str) -> Tokenizer {
        let mut metadata = Metadata::new();
        metadata.insert("tokenizer.ggml.model", "gpt2".into());
        metadata.insert("tokenizer.ggml.pre", name.into());
        metadata.insert("tokenizer.ggml.tokens", self.tokens.clone().into());
        metadata.insert("tokenizer.ggml.token_type", Value::Array(Array::I32(vec![1; self.tokens.len()])));
        metadata.insert("tokenizer.ggml.merges", self.merges.clone().into());
        Tokenizer::from_metadata(&metadata).unwrap()
    }
}

/// FNV-1a of 32 bits, over ids and line ends.
fn hash(tokenizer: &Tokenizer, lines: &[String]) -> u32 {
    let ids = lines.iter().flat_map(|line| tokenizer.encode(line, SpecialText::Literal).into_iter().chain([u32::MAX]));
    ids.fold(0x811c_9dc5, |hash, id| (hash ^ id).wrapping_mul(0x0100_0193))
}

/// The first lines that differ, if the maker's files are there.
fn differences(tokenizer: &Tokenizer, name: &str, lines: &[String]) -> String {
    let Ok(folder) = std::env::var("POTLUCK_VOCABULARIES") else { return String::new() };
    let Ok(expected) = fs::read_to_string(format!("{folder}/rules/{name}.ids")) else { return String::new() };
    let pieces = |ids: &[u32]| ids.iter().map(|&id| tokenizer.name(id)).collect::<Vec<String>>();
    let wrong = lines.iter().zip(expected.lines()).filter_map(|(line, ids)| {
        let ids: Vec<u32> = ids.split_whitespace().map(|id| id.parse().unwrap()).collect();
        let found = tokenizer.encode(line, SpecialText::Literal);
        (found != ids).then(|| format!("\n  {line:?}\n    {:?}\n    {:?}", pieces(&found), pieces(&ids)))
    });
    let wrong: Vec<String> = wrong.collect();
    format!("{} lines{}", wrong.len(), wrong[..wrong.len().min(3)].concat())
}

#[test]
fn every_rule_gives_the_ids_of_llama_cpp() {
    let golden: Golden = serde_json::from_str(&gunzip(include_bytes!("golden/rules.json.gz"))).unwrap();
    let lines = mixed::lines(mixed::LINES);
    let mut wrong = Vec::new();
    for Group { names, hashes } in &golden.groups {
        let tokenizer = golden.tokenizer(&names[0]);
        let found: Vec<u32> = lines.chunks(100).map(|lines| hash(&tokenizer, lines)).collect();
        let same = found.iter().zip(hashes).filter(|(found, expected)| found == expected).count();
        if same < hashes.len() {
            wrong.push(format!(
                "{names:?}: {same} of {}; {}",
                hashes.len(),
                differences(&tokenizer, &names[0], &lines)
            ));
        }
        for name in &names[1..] {
            assert_eq!(hash(&golden.tokenizer(name), &lines[..300]), hash(&tokenizer, &lines[..300]), "{name}");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
