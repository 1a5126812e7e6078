//! What texts grammars take, token by token.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use super::*;
use crate::{Rules, Vocabulary};

/// Every byte is a token; then one that ends an answer, and a marker.
const END: u32 = 256;

/// The grammar takes the whole text, and it may end there.
fn takes(grammar: &str, text: &str) -> bool {
    let bytes: Vec<[u8; 1]> = (0..=255).map(|byte| [byte]).collect();
    let tokens = bytes.iter().map(|byte| Some(&byte[..])).chain([None, None]);
    let lark = lark_of_gbnf(grammar).unwrap();
    let mut matcher = Vocabulary::new(tokens, &[END])
        .unwrap()
        .matcher(&Rules::Lark(lark.clone()))
        .unwrap_or_else(|error| panic!("{error}\n{lark}"));
    for byte in text.bytes() {
        if matcher.is_complete() || !matcher.allowed().unwrap().contains(byte.into()) {
            return false;
        }
        matcher.push(byte.into()).unwrap();
    }
    matcher.is_complete() || matcher.allowed().unwrap().contains(END)
}

#[track_caller]
fn judge(grammar: &str, good: &[&str], bad: &[&str]) {
    for text in good {
        assert!(takes(grammar, text), "{text:?} is not taken:\n{grammar}\n{}", lark_of_gbnf(grammar).unwrap());
    }
    for text in bad {
        assert!(!takes(grammar, text), "{text:?} is taken:\n{grammar}\n{}", lark_of_gbnf(grammar).unwrap());
    }
}

const JSON: &str = r#"
# As llama.cpp's users have it.
root   ::= object
value  ::= object | array | string | ("true" | "false" | "null") ws

object ::=
  "{" ws (
            string ":" ws value
    ("," ws string ":" ws value)*
  )? "}" ws
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws # escapes
ws ::= | " " | "\n" [ \t]{0,20}
"#;

#[test]
fn rules_that_name_each_other_stay_rules() {
    let good = [
        "{}",
        "{ }",
        r#"{"a": [true, {"b": null}], "ü": "\u00e4\n"}"#,
        "{\"a\": [\n  \"x\",\n  \"y\"]}",
        r#"{"a":[]}"#,
    ];
    judge(JSON, &good, &["", "[]", r#"{"a"}"#, r#"{"a": "b}"#, r#"{"a": [true,]}"#, r#"{"a": "\q"}"#]);
    let sums = "root ::= sum \"\\n\"\nsum ::= term ([-+] term)*\nterm ::= [0-9]+ | \"(\" sum \")\"";
    judge(sums, &["1\n", "(1+(22-3))+4\n"], &["1", "(1\n", "1+\n", "1++2\n"]);
}

#[test]
fn what_is_regular_does_not_end_too_early() {
    judge("root ::= word \"ing\"\nword ::= [a-z]+", &["sing", "inging"], &["ing", "sings"]);
    judge("root ::= [a-z]* \"b\" tail\ntail ::= (\"-\" tail)?", &["b", "abbb", "ab-", "b--"], &["", "a", "-a"]);
    let types =
        "root ::= (type name \";\" root)?\ntype ::= \"int\" ws | \"float\" ws\nname ::= [a-z_]+\nws ::= [ \\t\\n]+";
    judge(types, &["", "int integer;", "float x;int  y;"], &["int;", "intx;", "int x"]);
}

#[test]
fn signs_repetitions_and_tokens_are_read() {
    judge(
        "root ::= [ぁ-ゟ]{2,3} [\\]\\-^.x-] \"\\u00e4\\\"/\"",
        &["ああ]ä\"/", "あああ-ä\"/", "ああ^ä\"/"],
        &["あ]ä\"/", "ああyä\"/"],
    );
    judge("root ::= .{2} [^ab]? \"c\"{,2}", &["\nx", "abzcc", "abc"], &["a", "abaa", "abccccc"]);
    judge("root ::= a-b | A_1\na-b ::= \"x\"{2,}\r\nA_1 ::= \"y\"{3}", &["xx", "xxxx", "yyy"], &["x", "yy", "yyyy"]);
    judge("root ::= (\"a\"\n  | \"b\" # either\n  )\n  \n", &["a", "b"], &["ab"]);
    assert_eq!(
        lark_of_gbnf("root ::= \"a\" <[257]> !<[7]>*").unwrap(),
        "start: rule_0\nrule_0: /a/ <[257]> (<[^7]>)*\n"
    );
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    for (grammar, says) in [
        ("", "no rule root"),
        ("value ::= \"a\"", "no rule root"),
        ("root ::= other", "names other"),
        ("root ::= \"a\"\nroot ::= \"b\"", "line 2 of the grammar: the rule root is defined twice"),
        ("root ::= \"a", "line 1 of the grammar: it ends too early"),
        ("root ::= \"a\"\n\n  ::= \"b\"", "line 3 of the grammar: expected the name"),
        ("root ::= (\"a\"", "it ends too early"),
        ("root ::= \"a\")", "')' is not expected"),
        ("root := \"a\"", "expected ':', not '='"),
        ("root ::= [z-a]", "goes backwards"),
        ("root ::= []", "at least one sign"),
        ("root ::= \"a\"{3,2}", "repetitions"),
        ("root ::= \"a\"{1,99999}", "repetitions"),
        ("root ::= \"\\q\"", "\\q is not known"),
        ("root ::= \"\\xg0\"", "hexadecimal"),
        ("root ::= \"\\ud800\"", "no sign"),
        ("root ::= <think>", "by their numbers"),
        (&format!("root ::= {}", "(".repeat(1_000)), "too many parentheses"),
    ] {
        let error = lark_of_gbnf(grammar).unwrap_err().to_string();
        assert!(error.contains(says), "{grammar:?}: {error}");
    }
}

#[test]
fn large_grammars_stay_small_or_are_refused() {
    let doubled: String = (0..40).map(|number| format!("r{number} ::= r{0} r{0}\n", number + 1)).collect();
    let lark = lark_of_gbnf(&format!("root ::= r0\n{doubled}r40 ::= \"a\"\n")).unwrap();
    assert!(lark.len() < 100_000, "{} bytes", lark.len());
    assert!(is_gbnf(" root ::= \"a\"") && !is_gbnf("start: \"::=\"") && !is_gbnf("start: \"a\""));
}
