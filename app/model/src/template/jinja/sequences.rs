//! Filters over many values, and `dict(…)`.

mod order;
mod parts;
mod paths;

use std::rc::Rc;

use super::arguments::{Values, given, required, str};
use super::ast::Operator;
use super::interpreter::Interpreter;
use super::value::{Dict, Value, View};
use super::{Fault, Result, fault, filters, operators, tests};
pub(super) use order::{compare, dictsort, equal, extreme, groupby, sort, sort_by, unique};
pub(super) use parts::{batch, slices};
use paths::{lookup, lookup_or};

/// `map`.
pub(super) fn map(run: &mut Interpreter, value: &Value, mut arguments: Values) -> Result<Value> {
    if !value.is_true() {
        return Value::iterator(Vec::new());
    }
    let by_attribute =
        arguments.positional.is_empty() && arguments.named.iter().any(|(name, _)| &**name == "attribute");
    let mut mapped = Vec::new();
    if by_attribute {
        let [attribute, default] = arguments.bind("map", ["attribute", "default"])?;
        let (path, default) = (required(attribute, "map")?, given(default));
        for item in run.items(value)? {
            mapped.push(lookup_or(run, &item, &path, default.as_ref())?);
        }
    } else {
        if arguments.positional.is_empty() {
            return fault("map requires a filter argument");
        }
        let name = arguments.positional.remove(0);
        let name = str(&name)?;
        for item in run.items(value)? {
            let arguments = arguments.clone();
            mapped.push(run.deeper(|run| filters::call(run, name, item, arguments))?);
        }
    }
    run.charge(mapped.len() * size_of::<Value>())?;
    Value::iterator(mapped)
}

/// `select`, `reject` and the same by an attribute.
pub(super) fn select(
    run: &mut Interpreter,
    value: &Value,
    mut arguments: Values,
    keep: bool,
    by_attribute: bool,
) -> Result<Value> {
    if !value.is_true() {
        return Value::iterator(Vec::new());
    }
    let path = if by_attribute {
        if arguments.positional.is_empty() {
            return fault("Missing parameter for attribute name");
        }
        arguments.positional.remove(0)
    } else {
        Value::None
    };
    let test = if arguments.positional.is_empty() { None } else { Some(arguments.positional.remove(0)) };
    let mut chosen = Vec::new();
    for item in run.items(value)? {
        let subject = lookup(run, &item, &path)?;
        let is = match &test {
            Some(name) => tests::call(run, str(name)?, subject, arguments.clone())?,
            None => subject.is_true(),
        };
        if is == keep {
            chosen.push(item);
        }
    }
    run.charge(chosen.len() * size_of::<Value>())?;
    Value::iterator(chosen)
}

/// `sum`.
pub(super) fn sum(run: &mut Interpreter, value: &Value, arguments: Values) -> Result<Value> {
    let [attribute, start] = arguments.bind("sum", ["attribute", "start"])?;
    let path = attribute.unwrap_or(Value::None);
    let mut sum = start.unwrap_or(Value::Int(0));
    if matches!(sum, Value::Str(_)) {
        return fault("sum() can't sum strings [use ''.join(seq) instead]");
    }
    for item in run.items(value)? {
        let item = lookup(run, &item, &path)?;
        sum = operators::binary(run, Operator::Add, &sum, &item)?;
    }
    Ok(sum)
}

/// `join`.
pub(super) fn join(run: &mut Interpreter, value: &Value, arguments: Values) -> Result<Value> {
    let [between, attribute] = arguments.bind("join", ["d", "attribute"])?;
    let between = between.map_or_else(|| Ok("".into()), |between| between.text(run))?;
    let path = attribute.unwrap_or(Value::None);
    let mut joined = String::new();
    for (at, item) in run.items(value)?.iter().enumerate() {
        let text = lookup(run, item, &path)?.text(run)?;
        run.charge(text.len() + between.len())?;
        joined.push_str(if at > 0 { &between } else { "" });
        joined.push_str(&text);
    }
    Ok(joined.into())
}

/// `items`.
pub(super) fn items(run: &mut Interpreter, value: &Value) -> Result<Value> {
    match value {
        Value::Undefined(_) => Value::iterator(Vec::new()),
        Value::Dict(dict) => Value::iterator(run.items(&Value::View(View::Items, dict.clone()))?),
        _ => fault("Can only get item pairs from a mapping."),
    }
}

/// `reverse`.
pub(super) fn reverse(run: &mut Interpreter, value: &Value) -> Result<Value> {
    if let Value::Str(text) = value {
        run.charge(text.len())?;
        return Ok(text.chars().rev().collect::<String>().into());
    }
    let mut items = match run.items(value) {
        Err(Fault::Error(_)) => return fault("argument must be iterable"),
        items => items?,
    };
    items.reverse();
    Value::iterator(items)
}

/// `dict(…)`.
pub(super) fn dict(run: &mut Interpreter, mut arguments: Values) -> Result<Value> {
    let mut dict = Dict::default();
    if arguments.positional.len() > 1 {
        return fault(format!("dict expected at most 1 argument, got {}", arguments.positional.len()));
    }
    match arguments.positional.pop() {
        None => {}
        Some(Value::Dict(other)) => dict = Dict::clone(&other),
        Some(pairs) => {
            for pair in run.items(&pairs)? {
                let pair = run.items(&pair)?;
                let [name, value] = &pair[..] else {
                    return fault("dictionary update sequence element has a wrong length; 2 is required");
                };
                dict.insert(name.clone(), value.clone())?;
            }
        }
    }
    for (name, value) in arguments.named {
        dict.insert(Value::Str(name), value)?;
    }
    run.charge(dict.len() * size_of::<Value>() * 3)?;
    Ok(Value::Dict(Rc::new(dict)))
}
