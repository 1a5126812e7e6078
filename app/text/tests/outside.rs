//! Counts the sentences that do not stand in the table yet. The counts may only fall.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::{Path, PathBuf};

/// Sentences of the page that stand elsewhere.
const PAGE: usize = 0;
/// Those of the terminal, of the node's own notices and of the relay. They move to the table as they are touched.
const OTHERS: usize = 68;
/// Lower a count when it is off by more than this: changes that are made at the same time may both take sentences away.
const SLACK: usize = 12;

/// Folders that are not counted. What a host or a worker says to others (`swarm`, `planner`) travels as text in frames until those
/// carry reasons instead (decision 0048); the others speak to developers.
const LEFT_OUT: [&str; 8] =
    ["app/text", "app/testkit", "app/sim", "app/swarm", "app/planner", "app/engine", "app/gguf", "app/model"];

/// Macros whose texts only developers read.
const FOR_DEVELOPERS: [&str; 8] =
    ["expect(", "unreachable!(", "panic!(", "assert", "trace!(", "debug!(", "info!(", "reason ="];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The Rust files below a folder, without tests.
fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !["tests", "examples", "benches", "target", "lab"].contains(&name.as_str()) {
            sources(&path, into);
        } else if name.ends_with(".rs") && name != "tests.rs" {
            into.push(path);
        }
    }
}

/// The texts in quotation marks on a line.
fn quoted(line: &str) -> Vec<&str> {
    let (mut texts, mut open, mut escaped) = (Vec::new(), None, false);
    for (at, letter) in line.char_indices() {
        match (letter, open) {
            ('"', None) => open = Some(at + 1),
            ('"', Some(start)) if !escaped => {
                texts.push(&line[start..at]);
                open = None;
            }
            _ => {}
        }
        escaped = letter == '\\' && !escaped;
    }
    texts
}

/// A sentence begins like one, ends like one and has three words between blanks.
fn is_sentence(text: &str) -> bool {
    let begins = text.starts_with(|letter: char| letter.is_uppercase() || letter == '{' || letter == '“');
    let is_word =
        |word: &&str| word.trim_end_matches([',', '.', ':', ';', '?', '!', '…']).chars().all(char::is_alphabetic);
    begins && text.ends_with(['.', '?', '!', '…']) && text.split_whitespace().filter(is_word).count() >= 3
}

fn count(folder: &str) -> Vec<String> {
    let mut files = Vec::new();
    sources(&root().join(folder), &mut files);
    let mut found = Vec::new();
    for file in files {
        let source = fs::read_to_string(&file).unwrap();
        let product = source.split("#[cfg(test)]").next().unwrap_or_default();
        for (number, line) in product.lines().enumerate() {
            let line = line.trim();
            if line.starts_with("//") || line.starts_with("#[") || FOR_DEVELOPERS.iter().any(|word| line.contains(word))
            {
                continue;
            }
            let sentences = quoted(line).into_iter().filter(|text| is_sentence(text));
            found.extend(sentences.map(|text| format!("{}:{}: {text}", file.display(), number + 1)));
        }
    }
    found
}

fn check(found: &[String], most: usize) {
    let now = found.len();
    assert!(now <= most, "{now} sentences stand outside of the table, {most} are allowed:\n{}", found.join("\n"));
    assert!(
        now + SLACK >= most,
        "only {now} sentences stand outside of the table: allow no more than that from now on"
    );
}

#[test]
fn the_page_has_its_sentences_from_the_table() {
    check(&count("app/ui/src"), PAGE);
}

#[test]
fn sentences_of_other_crates_move_to_the_table() {
    let mut found = count("relay/src");
    for entry in fs::read_dir(root().join("app")).unwrap() {
        let folder = format!("app/{}", entry.unwrap().file_name().to_string_lossy());
        if folder != "app/ui" && !LEFT_OUT.contains(&folder.as_str()) {
            found.extend(count(&folder));
        }
    }
    check(&found, OTHERS);
}

/// Crates that speak on a page and in a terminal alike, and those of the texts that do.
const BOTH: [&str; 6] =
    ["app/engine/src", "app/gguf/src", "app/model/src", "app/node/src", "app/planner/src", "app/swarm/src"];
/// What there is only where a page is.
const OF_A_PAGE: [&str; 8] = ["page", "page's", "tab", "tabs", "browser", "browser's", "reload", "reloaded"];
/// Where a browser alone can fail so.
const IN_A_BROWSER: [&str; 3] = ["/web/", "There is no WebGPU here", "gave no access to a staging buffer"];

#[test]
fn who_speaks_on_a_page_and_in_a_terminal_names_neither() {
    let mut found: Vec<String> = BOTH.iter().flat_map(|folder| count(folder)).collect();
    let shared = count("app/text/src/areas").into_iter();
    found.extend(shared.filter(|line| line.contains("areas/node.rs") || line.contains("areas/terminal.rs")));
    let names_it = |line: &String| {
        let text = line.split_once(": ").map_or("", |(_, text)| text).to_lowercase();
        let mut words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '\'');
        words.any(|word| OF_A_PAGE.contains(&word)) && !IN_A_BROWSER.iter().any(|only| line.contains(only))
    };
    found.retain(names_it);
    assert!(found.is_empty(), "somebody in a terminal reads of a page:\n{}", found.join("\n"));
}

#[test]
fn sentences_are_told_from_other_strings() {
    assert!(is_sentence("Others are asking too. You are number {place}."));
    assert!(is_sentence("{who} does not answer any more."));
    assert!(!is_sentence("button button-main") && !is_sentence("Take back") && !is_sentence("not a sentence at all."));
    assert_eq!(quoted(r#"view("a \"b\" c", x, "d")"#), [r#"a \"b\" c"#, "d"]);
}
