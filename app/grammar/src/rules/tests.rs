//! Answers drawn at random from what may come.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::time::Instant;

use serde_json::json;

use super::*;
use crate::{Function, Matcher, Vocabulary};

/// Every byte is a token; then some words, and at last the end of an answer, another token that ends one, and a marker.
const WORDS: [&str; 8] = ["\"name\"", "{\"", "\": ", "true", "false", "null", "12", "</call>"];
const NULL: u32 = 256 + 5;
const END: u32 = 256 + WORDS.len() as u32;
const MARKER: u32 = END + 2;

fn bytes_of(id: u32) -> Vec<u8> {
    match id {
        0..256 => vec![id as u8],
        _ => WORDS.get(id as usize - 256).map_or_else(Vec::new, |word| word.as_bytes().to_vec()),
    }
}

fn vocabulary() -> Vocabulary {
    let texts: Vec<Vec<u8>> = (0..END).map(bytes_of).collect();
    let tokens = texts.iter().map(|bytes| Some(bytes.as_slice())).chain([None, None, None]);
    Vocabulary::new(tokens, &[END, END + 1]).unwrap()
}

fn matcher(rules: &Rules) -> Matcher {
    vocabulary().matcher(rules).unwrap()
}

/// Draws an answer. What ends texts, lists and objects is preferred after a while; `None`: it did not end.
fn draw(rules: &Rules, seed: u64) -> Option<Vec<u32>> {
    let (mut matcher, mut answer, mut random) = (matcher(rules), Vec::new(), seed);
    for count in 0..400 {
        if matcher.is_complete() {
            return Some(answer);
        }
        let allowed = matcher.allowed().unwrap();
        let may_end = allowed.contains(END);
        assert_eq!(may_end, allowed.contains(END + 1), "all that ends an answer, or nothing of it");
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if may_end && (count > 40 || random >> 63 == 0) {
            return Some(answer);
        }
        let [quote, list, object, comma, open, colon, a] = [b'"', b']', b'}', b',', b'{', b':', b'a'].map(u32::from);
        let closers = [quote, NULL, list, object, comma, open, colon, a];
        let closer = closers.into_iter().find(|id| count > 30 && allowed.contains(*id));
        let all: Vec<u32> =
            (0..MARKER + 1).filter(|id| allowed.contains(*id) && !(END..END + 2).contains(id)).collect();
        let token = closer.unwrap_or_else(|| all[(random >> 33) as usize % all.len()]);
        matcher.push(token).unwrap();
        answer.push(token);
    }
    None
}

fn text(answer: &[u32]) -> String {
    String::from_utf8(answer.iter().flat_map(|id| bytes_of(*id)).collect()).unwrap()
}

/// The answers that ended, as text: most of them.
fn drawn(rules: &Rules) -> Vec<String> {
    let all: Vec<String> = (0..24).filter_map(|seed| draw(rules, seed)).map(|answer| text(&answer)).collect();
    assert!(all.len() > 12, "only {} of 24 ended", all.len());
    all
}

fn of_schema(schema: &Value) -> Vec<Value> {
    let all = drawn(&Rules::Schema(schema.to_string()));
    all.iter().map(|text| serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))).collect()
}

#[test]
fn answers_fit_their_schema() {
    let person = json!({
        "type": "object", "additionalProperties": false, "required": ["name", "age"],
        "properties": { "name": { "type": "string", "maxLength": 8 }, "age": { "type": "integer", "minimum": 0, "maximum": 150 }, "tags": { "type": "array", "items": { "enum": ["a", "b"] }, "maxItems": 3 } },
    });
    for value in of_schema(&person) {
        let object = value.as_object().unwrap();
        assert!(
            object["name"].as_str().unwrap().chars().count() <= 8 && object["age"].as_u64().unwrap() <= 150,
            "{value}"
        );
        let tags = object.get("tags").map_or(&[][..], |tags| tags.as_array().unwrap());
        assert!(object.len() <= 3 && tags.len() <= 3 && tags.iter().all(|tag| tag == "a" || tag == "b"), "{value}");
    }
    for value in of_schema(&json!({ "anyOf": [{ "type": "boolean" }, { "const": { "x": 1 } }, { "type": "null" }] })) {
        assert!(value.is_boolean() || value.is_null() || value == json!({ "x": 1 }), "{value}");
    }
    // A tree.
    let tree = json!({
        "$ref": "#/$defs/node",
        "$defs": { "node": { "type": "object", "additionalProperties": false, "required": ["v", "next"], "properties": { "v": { "type": "integer" }, "next": { "anyOf": [{ "$ref": "#/$defs/node" }, { "type": "null" }] } } } },
    });
    for mut value in of_schema(&tree) {
        while !value.is_null() {
            assert!(value["v"].is_i64() || value["v"].is_u64() || value["v"].is_number(), "{value}");
            value = value["next"].take();
        }
    }
    assert!(of_schema(&json!({ "type": "object" })).iter().all(Value::is_object));
}

#[test]
fn expressions_and_grammars_hold_as_well() {
    for text in drawn(&Rules::Regex("(yes|no/[0-9]{2})".to_owned())) {
        assert!(text == "yes" || text.starts_with("no/") && text.len() == 5, "{text}");
    }
    for text in drawn(&Rules::Lark("start: \"<\" A \">\"\nA: /[ab]{1,3}/".to_owned())) {
        assert!(text.starts_with('<') && text.ends_with('>') && (3..=5).contains(&text.len()), "{text}");
    }
}

fn calls(begun: Begun, repeats: bool) -> CallRules {
    let function = |name: &str, schema: Value| Function { name: name.to_owned(), parameters: schema.to_string() };
    let bounded = |name: &str| json!({ "type": "object", "additionalProperties": false, "required": [name], "properties": { name: { "enum": [1, 2] } } });
    let text = |text: &str| Part::Text(text.to_owned());
    CallRules {
        opening: vec![Part::Token(MARKER), text("{\"name\": \"")],
        between: vec![text("\", \"arguments\": ")],
        closing: vec![text("}</call>")],
        functions: vec![function("get", bounded("x")), function("put", bounded("y"))],
        begun,
        repeats,
        strictness: Strictness::Strict,
    }
}

#[test]
fn calls_fit_their_functions() {
    let check = |call: &str| {
        let call: Value = serde_json::from_str(call.trim().strip_suffix("</call>").unwrap()).unwrap();
        let (name, key) = (call["name"].as_str().unwrap(), if call["name"] == "get" { "x" } else { "y" });
        assert!(["get", "put"].contains(&name) && [1, 2].map(Value::from).contains(&call["arguments"][key]), "{call}");
    };
    for begun in [Begun::Nothing, Begun::Token, Begun::Opening, Begun::Name("\"".to_owned())] {
        let written = match &begun {
            Begun::Nothing | Begun::Token => "",
            Begun::Opening => "{\"name\": \"",
            Begun::Name(_) => "{\"name\": \"get\"",
        };
        let mut counts = Vec::new();
        for answer in (0..24).filter_map(|seed| draw(&Rules::Calls(calls(begun.clone(), true)), seed)) {
            assert_eq!(answer.first() == Some(&MARKER), begun == Begun::Nothing);
            let all = answer.split(|id| *id == MARKER).filter(|call| !call.is_empty());
            let texts: Vec<String> = all.map(text).collect();
            check(&format!("{written}{}", texts[0]));
            texts[1..].iter().for_each(|call| check(call));
            counts.push(texts.len());
        }
        assert!(counts.contains(&1) && counts.iter().any(|count| *count > 1), "{begun:?}: {counts:?}");
    }
    let one = Rules::Calls(calls(Begun::Opening, false));
    assert!(drawn(&one).iter().all(|call| call.matches("</call>").count() == 1));
    let either = Rules::SchemaOrCalls(json!({ "type": "boolean" }).to_string(), calls(Begun::Nothing, false));
    let all: Vec<Vec<u32>> = (0..24).filter_map(|seed| draw(&either, seed)).collect();
    let is_call = |answer: &Vec<u32>| answer[0] == MARKER;
    assert!(all.iter().any(is_call) && all.iter().any(|answer| ["true", "false"].contains(&text(answer).as_str())));
}

#[test]
fn drafts_are_read_as_far_as_they_may_come() {
    let mut matcher = matcher(&Rules::Regex("abc?".to_owned()));
    let mut drafts: Vec<u32> = b"abx".iter().map(|byte| u32::from(*byte)).collect();
    let all = matcher.allowed_with(&mut drafts).unwrap();
    assert_eq!((all.len(), drafts), (3, vec![97, 98]));
    assert!(all[0].contains(97) && all[1].contains(98) && all[2].contains(99) && all[2].contains(END));
    assert!(!all[1].contains(END) && !all[2].contains(98));
    // Nothing was read.
    assert_eq!(matcher.allowed().unwrap(), all[0]);
    let mut to_the_end: Vec<u32> = b"abcc".iter().map(|byte| u32::from(*byte)).collect();
    let all = matcher.allowed_with(&mut to_the_end).unwrap();
    assert_eq!((all.len(), to_the_end.len()), (4, 3));
    assert!(all[3].contains(END) && !all[3].contains(99), "behind the last letter only the end");
    for letter in b"abc" {
        assert!(!matcher.is_complete());
        matcher.push(u32::from(*letter)).unwrap();
    }
    assert!(matcher.is_complete());
    let mut other = super::tests::matcher(&Rules::Regex("abc".to_owned()));
    assert!(matches!(other.push(120), Err(GrammarError::Stuck(_))));
}

#[test]
fn what_cannot_be_held_to_is_refused_with_a_reason() {
    let refused = |rules: &Rules| match vocabulary().matcher(rules) {
        Ok(_) => panic!("{rules:?} is taken"),
        Err(error) => error.to_string(),
    };
    let schema = |schema: Value| Rules::Schema(schema.to_string());
    for (rules, part) in [
        (Rules::Schema("{".to_owned()), "must be a JSON object"),
        (Rules::Schema("[1]".to_owned()), "must be a JSON object"),
        (schema(json!({ "type": "object", "not": {} })), "not"),
        (schema(json!({ "type": "array", "uniqueItems": true })), "uniqueItems"),
        (schema(json!({ "$ref": "https://example.com/schema" })), "https://example.com/schema"),
        (schema(json!({ "enum": [] })), "held to this form"),
        (schema(json!({ "type": "nothing" })), "nothing"),
        (schema(json!({ "type": "string", "x": "y".repeat(MAX_RULES) })), "too long"),
        (Rules::Regex("(".to_owned()), "held to this form"),
        (Rules::Lark("begin: \"a\"".to_owned()), "start"),
        (Rules::Lark("start: <nothing>".to_owned()), "nothing"),
    ] {
        let sentence = refused(&rules);
        assert!(sentence.contains(part), "{rules:?}: {sentence}");
    }
    let mut lenient = calls(Begun::Opening, false);
    lenient.functions[0].parameters = json!({ "type": "object", "not": {} }).to_string();
    assert!(refused(&Rules::Calls(lenient.clone())).contains("not"));
    lenient.strictness = Strictness::Lenient;
    assert!(vocabulary().matcher(&Rules::Calls(lenient)).is_ok(), "what is unknown does not count");
    let unknown = Vocabulary::new([Some(&b"a"[..])], &[]);
    assert!(unknown.is_err(), "an answer could not end");
}

/// A schema's own words on how JSON is written do not count.
#[test]
fn a_schema_does_not_change_how_it_is_read() {
    let schema = json!({ "type": "array", "items": { "const": 1 }, "minItems": 2, "maxItems": 2, "x-guidance": { "item_separator": "x", "lenient": true }, });
    assert!(
        drawn(&Rules::Schema(schema.to_string())).iter().all(|text| text.replace([' ', '\n', '\t'], "") == "[1,1]")
    );
}

/// Whatever a guest sends, the host's thread is soon free again.
#[test]
fn hostile_forms_do_not_take_long() {
    let deep = (0..100).fold(json!({ "type": "string" }), |inner, _| json!({ "type": "array", "items": inner }));
    let wide = |count| {
        let properties: serde_json::Map<String, Value> =
            (0..count).map(|i| (format!("key{i}"), json!({ "type": "string" }))).collect();
        json!({ "type": "object", "properties": properties, "additionalProperties": false })
    };
    let many = (0..64).map(|i| {
        let parameters = wide(40).to_string();
        Function { name: format!("function_{i}"), parameters }
    });
    let many: Vec<Function> = many.collect();
    let all_of: Vec<Value> = (0..200)
        .map(
            |i| json!({ "properties": { format!("k{i}"): { "type": "string", "pattern": format!("^a{{0,{i}}}b*") } } }),
        )
        .collect();
    let one_of: Vec<Value> = (0..300)
        .map(|i| json!({ "type": "object", "required": ["t"], "properties": { "t": { "const": i } } }))
        .collect();
    let nested = (0..12).fold(
        json!({ "type": "integer" }),
        |inner, _| json!({ "anyOf": [inner.clone(), { "type": "array", "items": inner }] }),
    );
    let schema = |schema: Value| Rules::Schema(schema.to_string());
    let forms = [
        ("deep", schema(deep)),
        ("wide", schema(wide(3_000))),
        ("less wide", schema(wide(900))),
        ("a bit wide", schema(wide(400))),
        ("functions", Rules::Calls(CallRules { functions: many, ..calls(Begun::Opening, true) })),
        ("all of", schema(json!({ "allOf": all_of }))),
        ("one of", schema(json!({ "oneOf": one_of }))),
        ("nested", schema(nested)),
        ("long", schema(json!({ "type": "string", "minLength": 60_000, "maxLength": 100_000_000 }))),
        (
            "items",
            schema(json!({ "type": "array", "minItems": 100_000, "items": { "type": "string", "maxLength": 9_999 } })),
        ),
        ("pattern", schema(json!({ "type": "string", "pattern": "^(([a-z]{1,200}){1,200}){1,200}$" }))),
        ("expression", Rules::Regex("(a|b|ab){0,2000}(.*x.{500}|.*y.{501})".to_owned())),
        ("repeated", Rules::Regex("((((a{1,99}){1,99}){1,99}){1,99}){1,99}".to_owned())),
        ("ambiguous", Rules::Lark("start: s\ns: s s | \"a\" | ".to_owned())),
        ("rules", Rules::Lark(format!("start: a{{0,100000}}\na: {}\"x\"", "\"y\"? ".repeat(5_000)))),
    ];
    let vocabulary = vocabulary();
    for (name, rules) in forms {
        let begun = Instant::now();
        let mut slowest = 0.0f64;
        let result = vocabulary.matcher(&rules).and_then(|mut matcher| {
            let made = begun.elapsed();
            for _ in 0..50 {
                let before = Instant::now();
                let allowed = matcher.allowed()?;
                let Some(token) = (0..END).rev().find(|id| allowed.contains(*id)) else { break };
                matcher.push(token)?;
                slowest = slowest.max(before.elapsed().as_secs_f64() * 1e3);
            }
            Ok(made)
        });
        let millis = begun.elapsed().as_secs_f64() * 1e3;
        println!(
            "{name}: {millis:.1} ms, slowest token {slowest:.1} ms: {:?}",
            result.as_ref().map_err(ToString::to_string)
        );
        assert!(millis < 5_000.0 && slowest < 500.0, "{name} took {millis:.0} ms, a token {slowest:.0} ms");
    }
}
