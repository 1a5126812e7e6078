//! Rules as a grammar of llguidance.

use std::fmt::Write;

use llguidance::JsonCompileOptions;
use llguidance::api::TopLevelGrammar;
use serde_json::Value;

use potluck_forms::{
    Begun, CallRules, GrammarError, MAX_RULES, MAX_VALUES, MAX_VALUES_IN_ALL, Part, Rules, Strictness,
};

/// White space between the parts of JSON: a space, or a line break with some indentation. More would let small models write nothing else.
const WHITE_SPACE: &str = r" |\n[ \t]{0,24}";
/// How the parts of calls are divided, as templates write them: in one line.
const IN_CALLS: [&str; 2] = [", ?", ": ?"];

/// Calls behind the first one, at most.
const MORE_CALLS: usize = 15;

/// Rules as llguidance reads them.
pub(crate) fn grammar_of(rules: &Rules) -> Result<TopLevelGrammar, GrammarError> {
    let bytes = rules.bytes();
    if bytes > MAX_RULES {
        return Err(GrammarError::TooLong(bytes));
    }
    let mut left = MAX_VALUES_IN_ALL;
    Ok(match rules {
        Rules::Schema(text) => {
            TopLevelGrammar::from_json_schema(schema(text, Strictness::Strict, Place::Answer, &mut left)?)
        }
        Rules::Regex(text) => TopLevelGrammar::from_regex(text),
        Rules::Lark(text) => TopLevelGrammar::from_lark(text.clone()),
        Rules::Calls(calls) => {
            TopLevelGrammar::from_lark(lark_of_calls(calls, "start: first\n".to_owned(), &mut left)?)
        }
        Rules::SchemaOrCalls(text, calls) => {
            let schema = schema(text, Strictness::Strict, Place::Answer, &mut left)?;
            let start = format!("start: answer | first\nanswer: %json {schema}\n");
            TopLevelGrammar::from_lark(lark_of_calls(calls, start, &mut left)?)
        }
    })
}

/// With the rule `first`, for the first call and those behind it.
fn lark_of_calls(calls: &CallRules, mut rules: String, left: &mut usize) -> Result<String, GrammarError> {
    let more = if calls.repeats { format!("more: (\"\\n\"? call){{0,{MORE_CALLS}}}\n") } else { String::new() };
    let rest = |first: &str| format!("{first} {}{}", lark_of(&calls.closing), if calls.repeats { " more" } else { "" });
    let first = match &calls.begun {
        Begun::Nothing => rest(&format!("{} body", lark_of(&calls.opening))),
        Begun::Token => rest(&format!("{} body", lark_of(calls.opening.get(1..).unwrap_or_default()))),
        Begun::Opening => rest("body"),
        Begun::Name(written) => {
            let between = without(&calls.between, written)
                .ok_or_else(|| GrammarError::unusable("a call that was begun is of another form"))?;
            rest(&format!("{} arguments_0", lark_of(&between)))
        }
    };
    let bodies: Vec<String> = (0..calls.functions.len()).map(|index| format!("body_{index}")).collect();
    // Writing to a string does not fail.
    _ = write!(
        rules,
        "first: {first}\ncall: {} body {}\n{more}body: {}\n",
        lark_of(&calls.opening),
        lark_of(&calls.closing),
        bodies.join(" | ")
    );
    for (index, function) in calls.functions.iter().enumerate() {
        let name = Part::Text(function.name.clone());
        let schema = schema(&function.parameters, calls.strictness, Place::Call, left)?;
        let before = lark_of([&[name], &calls.between[..]].concat().as_slice());
        _ = write!(rules, "body_{index}: {before} arguments_{index}\narguments_{index}: %json {schema}\n");
    }
    Ok(rules)
}

/// Parts in a row, as Lark has them.
fn lark_of(parts: &[Part]) -> String {
    let part = |part: &Part| match part {
        Part::Text(text) => Value::from(text.as_str()).to_string(),
        Part::Token(id) => format!("<[{id}]>"),
    };
    let is_some = |part: &&Part| !matches!(part, Part::Text(text) if text.is_empty());
    parts.iter().filter(is_some).map(part).collect::<Vec<_>>().join(" ")
}

/// Parts without the text that they begin with.
fn without(parts: &[Part], text: &str) -> Option<Vec<Part>> {
    match parts {
        _ if text.is_empty() => Some(parts.to_vec()),
        [Part::Text(first), rest @ ..] => {
            let left = Part::Text(first.strip_prefix(text)?.to_owned());
            Some([&[left], rest].concat())
        }
        _ => None,
    }
}

/// Values of a JSON value, itself included.
fn values(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(values).sum::<usize>(),
        Value::Object(fields) => 1 + fields.values().map(values).sum::<usize>(),
        _ => 1,
    }
}

/// Where JSON is written.
#[derive(Clone, Copy)]
enum Place {
    Answer,
    Call,
}

/// A schema with how JSON of it is written. `left`: values that schemas may still have.
fn schema(text: &str, strictness: Strictness, place: Place, left: &mut usize) -> Result<Value, GrammarError> {
    let mut schema: Value = serde_json::from_str(text).map_err(|_| GrammarError::NoSchema)?;
    if !schema.is_object() {
        return Err(GrammarError::NoSchema);
    }
    let values = values(&schema);
    *left = left.checked_sub(values).filter(|_| values <= MAX_VALUES).ok_or(GrammarError::TooManyValues)?;
    let is_lenient = strictness == Strictness::Lenient;
    let usual = JsonCompileOptions { coerce_one_of: true, lenient: is_lenient, ..JsonCompileOptions::default() };
    let options = match place {
        Place::Answer => JsonCompileOptions { whitespace_pattern: Some(WHITE_SPACE.to_owned()), ..usual },
        Place::Call => {
            let [item_separator, key_separator] = IN_CALLS.map(str::to_owned);
            JsonCompileOptions { whitespace_flexible: false, item_separator, key_separator, ..usual }
        }
    };
    // Whatever the schema itself says of this.
    options.apply_to(&mut schema);
    Ok(schema)
}

#[cfg(test)]
mod tests;
