//! Jinja2's tests.

use super::arguments::{Values, required};
use super::ast::Comparison;
use super::interpreter::Interpreter;
use super::value::Value;
use super::{Result, fault, filters, operators, strings};

/// The names of all tests.
pub(super) const NAMES: [&str; 39] = [
    "odd",
    "even",
    "divisibleby",
    "defined",
    "undefined",
    "filter",
    "test",
    "none",
    "boolean",
    "false",
    "true",
    "integer",
    "float",
    "lower",
    "upper",
    "string",
    "mapping",
    "number",
    "sequence",
    "iterable",
    "callable",
    "sameas",
    "escaped",
    "in",
    "==",
    "eq",
    "equalto",
    "!=",
    "ne",
    ">",
    "gt",
    "greaterthan",
    "ge",
    ">=",
    "<",
    "lt",
    "lessthan",
    "<=",
    "le",
];

/// `value is name(arguments)`.
pub(super) fn call(run: &mut Interpreter, name: &str, value: Value, arguments: Values) -> Result<bool> {
    let comparison = match name {
        "==" | "eq" | "equalto" => Some(Comparison::Eq),
        "!=" | "ne" => Some(Comparison::Ne),
        ">" | "gt" | "greaterthan" => Some(Comparison::Gt),
        ">=" | "ge" => Some(Comparison::Ge),
        "<" | "lt" | "lessthan" => Some(Comparison::Lt),
        "<=" | "le" => Some(Comparison::Le),
        "in" => Some(Comparison::In),
        _ => None,
    };
    if let Some(comparison) = comparison {
        let [other] = arguments.bind(name, [if name == "in" { "seq" } else { "" }])?;
        return operators::compare(run, comparison, &value, &required(other, name)?);
    }
    match name {
        // Two texts, or the letters of one.
        "sameas" | "lower" | "upper" => run.read(&value)?,
        _ => {}
    }
    match name {
        "divisibleby" => {
            let [by] = arguments.bind(name, ["num"])?;
            return is_rest(run, &value, &required(by, name)?, 0);
        }
        "sameas" => {
            let [other] = arguments.bind(name, ["other"])?;
            return Ok(is_same(&value, &required(other, name)?));
        }
        _ => {}
    }
    let [] = arguments.bind(name, [])?;
    Ok(match name {
        "odd" => return is_rest(run, &value, &Value::Int(2), 1),
        "even" => return is_rest(run, &value, &Value::Int(2), 0),
        "defined" => !matches!(value, Value::Undefined(_)),
        "undefined" => matches!(value, Value::Undefined(_)),
        "filter" | "test" if matches!(value, Value::List(_) | Value::Dict(_) | Value::View(..)) => {
            return fault(format!("unhashable type: '{}'", value.type_name()));
        }
        "filter" => value.as_str().is_some_and(|name| filters::NAMES.contains(&name)),
        "test" => value.as_str().is_some_and(|name| NAMES.contains(&name)),
        "none" => matches!(value, Value::None),
        "boolean" => matches!(value, Value::Bool(_)),
        "false" => matches!(value, Value::Bool(false)),
        "true" => matches!(value, Value::Bool(true)),
        "integer" => matches!(value, Value::Int(_)),
        "float" => matches!(value, Value::Float(_)),
        "lower" => strings::predicate("islower", &value.text(run)?).unwrap_or(false),
        "upper" => strings::predicate("isupper", &value.text(run)?).unwrap_or(false),
        "string" => matches!(value, Value::Str(_)),
        "mapping" => matches!(value, Value::Dict(_)),
        "number" => matches!(value, Value::Bool(_) | Value::Int(_) | Value::Float(_)),
        "sequence" => matches!(
            value,
            Value::Str(_) | Value::List(_) | Value::Tuple(..) | Value::Dict(_) | Value::Range(_) | Value::Undefined(_)
        ),
        "iterable" => run.is_iterable(&value),
        "callable" => matches!(
            value,
            Value::Undefined(_)
                | Value::Macro(_)
                | Value::Function(_)
                | Value::Method(_)
                | Value::Loop(_)
                | Value::Joiner(_)
        ),
        "escaped" => false,
        unknown => return fault(format!("No test named '{unknown}'.")),
    })
}

fn is_rest(run: &mut Interpreter, value: &Value, by: &Value, rest: i128) -> Result<bool> {
    let found = operators::binary(run, super::ast::Operator::Mod, value, by)?;
    Ok(found.equals(&Value::Int(rest)))
}

/// Python has small numbers once only, and equal texts of a template mostly.
fn is_same(value: &Value, other: &Value) -> bool {
    match (value, other) {
        (Value::None, Value::None) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a), Value::Int(b)) => a == b && (-5..=256).contains(a),
        (Value::Str(a), Value::Str(b)) => a == b,
        _ => {
            std::mem::discriminant(value) == std::mem::discriminant(other)
                && value.address() == other.address()
                && value.address() != 0
        }
    }
}
