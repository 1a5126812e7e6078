//! Methods of Python's values. Here: which there are, which the sandbox forbids, and those of numbers, loops and cyclers.

mod containers;
mod search;
mod text;
mod translate;

use super::arguments::{Values, given, int, required};
use super::interpreter::Interpreter;
use super::value::{Function, Value};
use super::{Result, fault, number};
pub(super) use text::{replace, strip};

const TEXT: [&str; 46] = [
    "capitalize",
    "casefold",
    "center",
    "count",
    "endswith",
    "expandtabs",
    "find",
    "format",
    "format_map",
    "index",
    "isalnum",
    "isalpha",
    "isascii",
    "isdecimal",
    "isdigit",
    "isidentifier",
    "islower",
    "isnumeric",
    "isprintable",
    "isspace",
    "istitle",
    "isupper",
    "join",
    "ljust",
    "lower",
    "lstrip",
    "maketrans",
    "partition",
    "removeprefix",
    "removesuffix",
    "replace",
    "rfind",
    "rindex",
    "rjust",
    "rpartition",
    "rsplit",
    "rstrip",
    "split",
    "splitlines",
    "startswith",
    "strip",
    "swapcase",
    "title",
    "translate",
    "upper",
    "zfill",
];

const LIST: [&str; 3] = ["copy", "count", "index"];

const DICT: [&str; 6] = ["copy", "fromkeys", "get", "items", "keys", "values"];

/// The name of a method that this value has.
pub(super) fn known(value: &Value, name: &str) -> Option<&'static str> {
    let names: &[&'static str] = match value {
        Value::Str(_) => &TEXT,
        Value::List(_) => &LIST,
        Value::Tuple(..) | Value::Range(_) => &LIST[1..],
        Value::Dict(_) => &DICT,
        Value::Int(_) | Value::Bool(_) => &["bit_count", "bit_length", "conjugate", "is_integer"],
        Value::Float(_) => &["conjugate", "is_integer"],
        Value::Loop(_) => &["changed", "cycle"],
        Value::Cycler(_) => &["next", "reset"],
        Value::Function(Function::Dict) => &["fromkeys"],
        _ => &[],
    };
    names.iter().find(|known| **known == name).copied()
}

/// The sandbox forbids what changes a value.
pub(super) fn is_forbidden(value: &Value, name: &str) -> bool {
    let names: &[&str] = match value {
        Value::List(_) => &["append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"],
        Value::Dict(_) => &["clear", "pop", "popitem", "setdefault", "update"],
        _ => &[],
    };
    names.contains(&name)
}

/// Calls a method.
pub(super) fn call(run: &mut Interpreter, value: &Value, name: &'static str, arguments: Values) -> Result<Value> {
    // Searching, comparing and looking up take as long as what is looked for is.
    let named = arguments.named.iter().map(|(_, value)| value);
    arguments.positional.iter().chain(named).try_for_each(|argument| run.read(argument))?;
    match value {
        Value::Str(text) => text::call(run, text, name, arguments),
        Value::List(_) | Value::Tuple(..) | Value::Range(_) => containers::call_list(run, value, name, arguments),
        Value::Dict(dict) => containers::call_dict(run, dict, name, arguments),
        Value::Function(_) => containers::from_keys(run, arguments),
        Value::Loop(state) => state.clone().call(name, arguments),
        Value::Cycler(cycler) => {
            let [] = arguments.bind(name, [])?;
            let mut at = cycler.1.borrow_mut();
            if name == "reset" {
                *at = 0;
                return Ok(Value::None);
            }
            let current = cycler.0.items.get(*at).cloned();
            *at = (*at + 1) % cycler.0.items.len().max(1);
            required(current, name)
        }
        other => {
            let [] = arguments.bind(name, [])?;
            Ok(match (name, other) {
                ("is_integer", Value::Float(number)) => Value::Bool(number.is_finite() && number.fract() == 0.0),
                ("is_integer", _) => Value::Bool(true),
                ("bit_length", _) => {
                    Value::Int((128 - other.as_int().unwrap_or(0).unsigned_abs().leading_zeros()).into())
                }
                ("bit_count", _) => Value::Int(other.as_int().unwrap_or(0).unsigned_abs().count_ones().into()),
                ("conjugate", Value::Bool(value)) => Value::Int((*value).into()),
                _ => other.clone(),
            })
        }
    }
}

/// Start and stop as places between 0 and the length.
fn bounds(length: usize, start: Option<Value>, stop: Option<Value>) -> Result<(usize, usize)> {
    let place = |value: Option<Value>, default: usize| -> Result<usize> {
        let Some(value) = given(value) else { return Ok(default) };
        let at = int(&value)?;
        let at = if at < 0 { (at + length as i128).max(0) } else { at };
        Ok(usize::try_from(at).unwrap_or(usize::MAX))
    };
    Ok((place(start, 0)?, place(stop, length)?.min(length)))
}

/// `int(value)`; `None` where Python raises `TypeError` or `ValueError`.
pub(super) fn to_int(value: &Value, base: u32) -> Result<Option<i128>> {
    match value {
        Value::Undefined(message) => fault(&**message),
        Value::Str(text) => Ok(number::parse_int(text, base)),
        Value::Float(value) if !value.is_finite() => Ok(None),
        Value::Float(value) => Ok(number::whole(value.trunc())),
        other => Ok(other.as_int()),
    }
}
