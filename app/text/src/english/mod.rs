//! English: which form goes with a number, and how numbers are written. Its wording is in [`crate::areas`].

mod number;

use crate::{language::Language, pattern::Form, value::Value};

/// English.
pub static LANGUAGE: Language = Language { tag: "en", form, write };

const fn form(number: u64) -> Form {
    if number == 1 { Form::One } else { Form::Other }
}

fn write(value: &Value<'_>, out: &mut String) {
    let written = match *value {
        Value::Text(text) => return out.push_str(text),
        Value::Count(value) => number::count(value),
        Value::Number(value) => value.to_string(),
        Value::Rounded(value) => format!("{value:.0}"),
        Value::Tenths(value) => format!("{value:.1}"),
        Value::Bytes(value) => number::bytes(value),
        Value::Rate(value) => number::rate(value),
        Value::Millis(value) => number::duration_ms(value),
        Value::Pace(value) => number::tokens_per_second(value),
        Value::Parameters(value) => number::parameters(value),
    };
    out.push_str(&written);
}
