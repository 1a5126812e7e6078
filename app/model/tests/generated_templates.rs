//! Templates that a grammar makes, against Jinja2 as Transformers sets it up (`golden/make_generated.py`).
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "common/conversations.rs"]
mod conversations;

use std::collections::BTreeMap;
use std::path::PathBuf;

use conversations::conversation;
use potluck_model::ChatTemplate;
use potluck_testkit::gunzip;
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Golden {
    cases: BTreeMap<String, Value>,
    results: Vec<Generated>,
}

#[derive(Deserialize)]
struct Generated {
    seed: u64,
    source: String,
    title: String,
    text: Option<String>,
    error: Option<String>,
}

/// How many renderings there are, and those that differ.
fn judge(golden: &str) -> (usize, Vec<String>) {
    let golden: Golden = serde_json::from_str(golden).unwrap();
    let count = golden.results.len();
    let differs = |Generated { seed, source, title, text, error }: Generated| {
        let (messages, options) = conversation(&golden.cases[&title]);
        let rendered = ChatTemplate::new(&source, "<s>".into(), "</s>".into())
            .and_then(|template| template.render(&messages, &options));
        match (rendered, text) {
            (Ok(found), Some(expected)) if found == expected => None,
            (Err(_), None) => None,
            (found, expected) => {
                let expected = expected.or(error).unwrap_or_default();
                Some(format!("{seed}, {title}: {source:?}\n  {found:?}\n     {expected:?}"))
            }
        }
    };
    (count, golden.results.into_iter().filter_map(differs).collect())
}

#[test]
fn generated_templates_render_as_jinja2_renders_them() {
    let (count, wrong) = judge(&gunzip(include_bytes!("golden/generated.json.gz")));
    assert!(wrong.is_empty(), "{} of {count} are wrong\n{}", wrong.len(), wrong.join("\n"));
    assert!(count >= 500, "only {count} templates");
}

/// Ten thousand of them: `make_generated.py 10000 FOLDER/generated.json`, then `POTLUCK_TEMPLATES=FOLDER cargo test -- --ignored`.
#[test]
#[ignore = "needs generated.json in $POTLUCK_TEMPLATES"]
fn ten_thousand_generated_templates_render_as_jinja2_renders_them() {
    let folder = PathBuf::from(std::env::var("POTLUCK_TEMPLATES").expect("POTLUCK_TEMPLATES names a folder"));
    let (count, wrong) = judge(&std::fs::read_to_string(folder.join("generated.json")).unwrap());
    assert!(wrong.is_empty(), "{} of {count} are wrong\n{}", wrong.len(), wrong.join("\n"));
    assert!(count >= 10_000, "only {count} templates");
}
