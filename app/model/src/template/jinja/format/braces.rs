//! `text.format(…)`: the fields in braces.

use super::spec::format_value;
use super::{Cursor, ascii};
use crate::template::jinja::arguments::Values;
use crate::template::jinja::interpreter::Interpreter;
use crate::template::jinja::value::Value;
use crate::template::jinja::{Result, attributes, fault};

/// `text.format(…)`.
pub(in crate::template::jinja) fn str_format(run: &mut Interpreter, text: &str, values: &Values) -> Result<String> {
    let mut counter = Counter::Unused;
    fields(run, text, values, &mut counter, 2)
}

/// Fields are numbered by hand or by their places.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counter {
    Unused,
    Manual,
    Automatic(usize),
}

fn fields(run: &mut Interpreter, text: &str, values: &Values, counter: &mut Counter, depth: u8) -> Result<String> {
    if depth == 0 {
        return fault("Max string recursion exceeded");
    }
    let mut written = String::with_capacity(text.len());
    let mut cursor = Cursor { rest: text };
    while let Some(c) = cursor.next() {
        match c {
            '{' if cursor.skip('{') => written.push('{'),
            '}' if cursor.skip('}') => written.push('}'),
            '}' => return fault("Single '}' encountered in format string"),
            '{' => {
                let Some(field) = cursor.until('{', '}') else {
                    let message = if cursor.rest.is_empty() {
                        "Single '{' encountered"
                    } else {
                        "expected '}' before end of string"
                    };
                    return fault(message);
                };
                let text = one_field(run, field, values, counter, depth)?;
                run.charge(text.len())?;
                written.push_str(&text);
            }
            _ => written.push(c),
        }
    }
    Ok(written)
}

fn one_field(run: &mut Interpreter, field: &str, values: &Values, counter: &mut Counter, depth: u8) -> Result<String> {
    // A bracket in the name may hold what ends a name.
    let mut in_brackets = false;
    let end = field.find(|c| {
        match c {
            '[' => in_brackets = true,
            ']' => in_brackets = false,
            _ => {}
        }
        !in_brackets && matches!(c, '!' | ':')
    });
    let (name, rest) = field.split_at(end.unwrap_or(field.len()));
    let (conversion, spec) = match rest.strip_prefix('!') {
        Some(rest) => {
            let mut chars = rest.chars();
            let conversion = chars.next();
            match chars.as_str() {
                "" => (conversion, ""),
                after => match after.strip_prefix(':') {
                    Some(spec) => (conversion, spec),
                    None => return fault("expected ':' after conversion specifier"),
                },
            }
        }
        None => (None, rest.strip_prefix(':').unwrap_or("")),
    };
    let value = field_value(run, name, values, counter)?;
    let value = match conversion {
        None => value,
        Some('s') => Value::Str(value.text(run)?),
        Some('r') => value.repr(run)?.into(),
        Some('a') => ascii(&value.repr(run)?).into(),
        Some(other) => return fault(format!("Unknown conversion specifier {other}")),
    };
    let spec = fields(run, spec, values, counter, depth - 1)
        .or_else(|fault| if spec.is_empty() { Ok(String::new()) } else { Err(fault) })?;
    format_value(run, &value, &spec)
}

fn field_value(run: &mut Interpreter, name: &str, values: &Values, counter: &mut Counter) -> Result<Value> {
    let end = name.find(['.', '[']).unwrap_or(name.len());
    let (first, mut path) = name.split_at(end);
    let index = if first.is_empty() {
        let at = match *counter {
            Counter::Unused => 0,
            Counter::Automatic(at) => at,
            Counter::Manual => {
                return fault("cannot switch from manual field specification to automatic field numbering");
            }
        };
        *counter = Counter::Automatic(at + 1);
        Some(at)
    } else if first.bytes().all(|byte| byte.is_ascii_digit()) {
        if matches!(counter, Counter::Automatic(_)) {
            return fault("cannot switch from manual field specification to automatic field numbering");
        }
        *counter = Counter::Manual;
        first.parse().ok()
    } else {
        None
    };
    let found = match index {
        Some(index) => values.positional.get(index),
        None => values.named.iter().find(|(name, _)| &**name == first).map(|(_, value)| value),
    };
    let Some(mut value) = found.cloned() else {
        return fault("Replacement index or name is not among the arguments");
    };
    while !path.is_empty() {
        if let Some(rest) = path.strip_prefix('.') {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            value = attributes::attribute(run, &value, &rest[..end])?;
            path = &rest[end..];
        } else if let Some(rest) = path.strip_prefix('[') {
            let Some(end) = rest.find(']') else { return fault("Missing ']' in format string") };
            let key = &rest[..end];
            let key = key.parse::<i128>().map_or_else(|_| key.into(), Value::Int);
            value = attributes::item(run, &value, &key)?;
            path = &rest[end + 1..];
        } else {
            return fault("Only '.' or '[' may follow ']' in format field specifier");
        }
    }
    Ok(value)
}
