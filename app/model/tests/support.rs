//! `docs/tokenizers.md` says what the code does and how it was judged. Write it anew with
//!
//!     POTLUCK_WRITE_DOCS=1 cargo test -p potluck-model --test support
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use potluck_model::Tokenizer;
use potluck_testkit::gunzip;
use serde_json::Value;

const DOCUMENT: &str = "../../docs/tokenizers.md";

const HEAD: &str = "\
# Tokenizers and chat templates

<!-- Written by app/model/tests/support.rs; change the code instead, then run that test with POTLUCK_WRITE_DOCS=1. -->

What a file needs is read from its header (`tokenizer.*`). What is not in these tables is refused in one sentence that names it.

## Families

| `tokenizer.ggml.model` | What it is | Judged with the vocabularies of |
| --- | --- | --- |
| `gpt2` | byte-level BPE, with a rule for splitting text | Aquila, Command R, DeepSeek Coder and LLM, Falcon, GPT-2, GPT-NeoX, Llama 3, MPT, Qwen2, Qwen3.5, Refact, StarCoder |
| `gemma4` | BPE of lines of raw text, `▁` for spaces, bytes as `<0x00>` | Gemma 4 |
| `llama` | SentencePiece BPE by scores, with byte tokens | Baichuan, Llama 2, Phi-3 |
| `t5` | SentencePiece unigram, with text normalization | Nomic Embed v2 |

Each encodes 10,000 lines of mixed text exactly as llama.cpp does, with control tokens parsed and not
(`python3 e2e/golden/vocabularies.py`). Two differences are intended: `</s>` ends an answer only where a file calls it special, and
DeepSeek LLM's punctuation includes U+3000, as its pattern says.

Control, user-defined, unknown, unused and byte tokens are what the file says they are, but a token that begins a text or a turn, or ends
an answer, is always a control token. A beginning-of-sequence token is put in front if `tokenizer.ggml.add_bos_token` says so, or else by the
rule; always for Gemma 4. No end-of-sequence token is added, because the model is to go on. Phi-3's special tokens take the white
space behind them.

An answer ends at the tokens of the keys `eos`, `eot`, `eom`, `fim_pad`, `fim_rep` and `fim_sep`, and at tokens with well-known names
(`app/model/src/stop.rs`).

## Rules for splitting text

By `tokenizer.ggml.pre`. \"Whole words\": a word that is a token skips the merges. \"Begins\": a beginning-of-sequence token is the
default. \"Judge\": what gives the same ids for 10,000 lines in a vocabulary whose merges cross every boundary; llama.cpp
approximates some rules, and those are judged by Hugging Face's tokenizers with the model's own patterns.
Files without the key use `default`.

| Names | Whole words | Begins | Judge |
| --- | --- | --- | --- |
";

const TEMPLATES: &str = "
The names `gemma4` and `sarvam-moe` stand for the family `gemma4`; `sarvam-moe` is read by construction only.

## Reasoning, answer, tool calls

An answer is split into these channels by the model's markers, which are not shown ([decision 0050](decisions/0050-channels-in-the-node.md)).
`app/model/src/channels/table.rs` lists those that are known:

- formats with named channels: harmony (gpt-oss), Gemma 4, Solar Open, Kimi K3, Muse Glimmer;
- sixteen pairs of tags around reasoning: `<think>` of DeepSeek, Qwen, GLM and many more, `[THINK]` of Magistral, `<seed:think>`,
  `<|START_THINKING|>` of Command, `<|inner_prefix|>` of Apertus, the sentences of Granite 3.2 and Apriel, and others;
- sixteen markers of tool calls.

If a template writes reasoning between other tags, rendering it reveals them. You can choose how much a model reasons if its template
reads `enable_thinking`, `thinking`, `reasoning`, `thinking_mode`, `thinking_budget` (off only), `reasoning_effort` or
`thinking_effort`; the last two get the nearest value that the template accepts.

## Chat templates

Templates render as Jinja2 renders them in Transformers: filters, tests, methods of Python's values, both kinds of formats, macros,
namespaces, loop controls, `generation` tags, `raise_exception` and `strftime_now` (the time at which the model was opened, in UTC).
[Decision 0049](decisions/0049-our-own-jinja.md) lists what differs. The judges are Jinja2's renderings of the templates below, of
llama.cpp's, and of templates that a grammar makes: 500 in the tests, 10,000 by

```sh
pip install transformers==5.23.0 jinja2
python app/model/tests/golden/make_generated.py 10000 FOLDER/generated.json
python app/model/tests/golden/make_templates.py FOLDER FOLDER/all.json   # llama.cpp's models/templates/*.jinja lie in FOLDER
POTLUCK_TEMPLATES=FOLDER cargo xtask check templates
```

When a model is opened, a test conversation is rendered. If the question is missing from the result, the template gets texts as lists of
parts. A template that still loses it, is empty, is broken or refuses everything is not used; of several named ones the first working one
is. Without one, prompts get the turns for which the vocabulary has control tokens (`<|im_start|>`, `<|start_header_id|>`,
`<start_of_turn>`, `[INST]`, `<|user|>`), or else \"User:\" and \"Assistant:\" in words, and an answer ends at the next \"User:\". The host is
told which and why. A system message that a template refuses or leaves out goes in front of the first question.

These are rendered with 11 conversations each; the columns say which of them the template writes into the prompt.

| Template | System | Tools | Results of tools | Reasoning before a call |
| --- | --- | --- | --- | --- |
";

fn yes(value: bool) -> &'static str {
    if value { "yes" } else { "–" }
}

fn rules() -> String {
    let golden: Value = serde_json::from_str(&gunzip(include_bytes!("golden/rules.json.gz"))).unwrap();
    let judges: BTreeMap<&str, &str> = golden["groups"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|group| {
            let names = group["names"].as_array().unwrap().iter().map(|name| name.as_str().unwrap());
            names.map(|name| (name, group["by"].as_str().unwrap()))
        })
        .collect();
    let mut table = String::new();
    for rule in Tokenizer::split_rules() {
        let names: Vec<String> = rule.names.iter().map(|name| format!("`{name}`")).collect();
        let judge = rule.names.iter().find_map(|name| judges.get(name)).expect("every rule has a judge");
        let (whole, begins) = (yes(rule.whole_words), yes(rule.add_bos));
        writeln!(table, "| {} | {whole} | {begins} | {judge} |", names.join(", ")).unwrap();
    }
    table
}

fn templates() -> String {
    let golden: Value = serde_json::from_str(&gunzip(include_bytes!("golden/templates.json.gz"))).unwrap();
    let mut texts: BTreeMap<&str, BTreeMap<&str, &str>> = BTreeMap::new();
    for result in golden["results"].as_array().unwrap() {
        let text = result["text"].as_str().unwrap_or_default();
        let template = texts.entry(result["template"].as_str().unwrap()).or_default();
        template.insert(result["title"].as_str().unwrap(), text);
    }
    let mut table = String::new();
    for (template, texts) in texts {
        let has = |title: &str, part: &str| texts.get(title).is_some_and(|text| text.contains(part));
        let result = has("a tool's answer", "rain\": true") || has("a tool's answer", "rain\\\": true");
        writeln!(
            table,
            "| {template} | {} | {} | {} | {} |",
            yes(has("with a system prompt", "Be brief.")),
            yes(has("tools", "weather")),
            yes(result),
            yes(has("a tool's answer", "I ask.")),
        )
        .unwrap();
    }
    table
}

#[test]
fn the_table_of_tokenizers_and_templates_is_up_to_date() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(DOCUMENT);
    let expected = [HEAD, &rules(), TEMPLATES, &templates()].concat();
    if std::env::var_os("POTLUCK_WRITE_DOCS").is_some() {
        std::fs::write(&file, &expected).unwrap();
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(found == expected, "docs/tokenizers.md is out of date: run this test with POTLUCK_WRITE_DOCS=1");
}
