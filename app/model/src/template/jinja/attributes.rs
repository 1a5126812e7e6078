//! `value.name` and `value[key]`, as Jinja2's sandbox looks them up.

use std::rc::Rc;

use super::interpreter::Interpreter;
use super::methods;
use super::value::{TupleKind, Value};
use super::{Result, fault};

/// `value.name`: the attribute, or else the item.
pub(super) fn attribute(run: &mut Interpreter, value: &Value, name: &str) -> Result<Value> {
    if let Value::Undefined(message) = value {
        return fault(&**message);
    }
    if let Some(found) = own_attribute(run, value, name)? {
        return Ok(found);
    }
    if let Value::Dict(dict) = value
        && let Some(found) = dict.text(name)
    {
        return Ok(found.clone());
    }
    missing(run, value, &name.into())
}

/// `value[key]`: the item, or else the attribute.
pub(super) fn item(run: &mut Interpreter, value: &Value, key: &Value) -> Result<Value> {
    if let Value::Undefined(message) = value {
        return fault(&**message);
    }
    if let Some(found) = own_item(run, value, key)? {
        return Ok(found);
    }
    run.read(key)?;
    if let Value::Str(name) = key
        && let Some(found) = own_attribute(run, value, name)?
    {
        return Ok(found);
    }
    missing(run, value, key)
}

/// `value[key]` of Python: it must be there.
pub(super) fn subscript(run: &mut Interpreter, value: &Value, key: &Value) -> Result<Value> {
    match own_item(run, value, key)? {
        Some(found) => Ok(found),
        None => fault(format!("KeyError: {}", key.repr(run)?)),
    }
}

fn missing(run: &mut Interpreter, value: &Value, key: &Value) -> Result<Value> {
    Ok(Value::undefined(match key {
        Value::Str(name) => format!("'{} object' has no attribute '{name}'", value.type_name()),
        other => format!("{} object has no element {}", value.type_name(), other.repr(run)?),
    }))
}

fn own_item(run: &mut Interpreter, value: &Value, key: &Value) -> Result<Option<Value>> {
    let at = |length: usize| -> Option<usize> {
        let index = key.as_int()?;
        let index = if index < 0 { index + length as i128 } else { index };
        usize::try_from(index).ok().filter(|index| *index < length)
    };
    Ok(match value {
        Value::Dict(dict) => {
            run.read(key)?;
            // A key that cannot be one is not there.
            dict.get(key).ok().flatten().cloned()
        }
        Value::List(items) | Value::Tuple(items, _) => at(items.items.len()).map(|at| items.items[at].clone()),
        Value::Range(range) => at(range.len()).map(|at| range.get(at)),
        Value::Str(text) => {
            if key.as_int().is_none() {
                return Ok(None);
            }
            run.spend(text.len() as u64 / 64)?;
            if text.is_ascii() {
                at(text.len()).map(|at| Value::from(&text[at..=at]))
            } else {
                at(text.chars().count())
                    .and_then(|at| text.chars().nth(at))
                    .map(|c| Value::from(&*c.encode_utf8(&mut [0; 4])))
            }
        }
        _ => None,
    })
}

/// What Python's objects have besides items; what the sandbox forbids is undefined.
fn own_attribute(run: &mut Interpreter, value: &Value, name: &str) -> Result<Option<Value>> {
    let unsafe_one =
        || Some(Value::undefined(format!("access to attribute '{name}' of '{}' object is unsafe.", value.type_name())));
    if let Some(method) = methods::known(value, name) {
        return Ok(Some(Value::Method(Rc::new((value.clone(), method)))));
    }
    if methods::is_forbidden(value, name) || (name.starts_with("__") && name.ends_with("__") && name.len() > 4) {
        return Ok(unsafe_one());
    }
    let found = match (value, name) {
        (Value::Namespace(namespace), _) => namespace.attributes.borrow().text(name).cloned(),
        (Value::Loop(state), _) => return state.clone().attribute(run, name),
        (Value::Tuple(pair, TupleKind::Group), "grouper") => pair.items.first().cloned(),
        (Value::Tuple(pair, TupleKind::Group), "list") => pair.items.get(1).cloned(),
        (Value::Macro(closure), _) => closure.attribute(name)?,
        (Value::Range(range), "start") => Some(Value::Int(range.start.into())),
        (Value::Range(range), "stop") => Some(Value::Int(range.stop.into())),
        (Value::Range(range), "step") => Some(Value::Int(range.step.into())),
        (Value::Cycler(cycler), "current") => cycler.0.items.get(*cycler.1.borrow()).cloned(),
        (Value::Cycler(cycler), "pos") => Some(Value::from(*cycler.1.borrow())),
        (Value::Cycler(cycler), "items") => Some(Value::tuple(cycler.0.items.clone())?),
        (Value::Joiner(joiner), "sep") => Some(Value::Str(joiner.0.clone())),
        (Value::Joiner(joiner), "used") => Some(Value::Bool(*joiner.1.borrow())),
        (Value::Int(_) | Value::Bool(_), "real" | "numerator") => value.as_int().map(Value::Int),
        (Value::Int(_) | Value::Bool(_), "imag") => Some(Value::Int(0)),
        (Value::Int(_) | Value::Bool(_), "denominator") => Some(Value::Int(1)),
        (Value::Float(number), "real") => Some(Value::Float(*number)),
        (Value::Float(_), "imag") => Some(Value::Float(0.0)),
        _ => None,
    };
    Ok(found)
}

/// `value[start:stop:step]`.
pub(super) fn slice(run: &mut Interpreter, value: &Value, parts: [Option<Value>; 3]) -> Result<Value> {
    let mut numbers = [None; 3];
    for (number, part) in numbers.iter_mut().zip(&parts) {
        *number = match part {
            None | Some(Value::None) => None,
            Some(part) => match part.as_int() {
                Some(part) => Some(part),
                None => return fault("slice indices must be integers or None or have an __index__ method"),
            },
        };
    }
    let [start, stop, step] = numbers;
    let step = step.unwrap_or(1);
    if step == 0 {
        return fault("slice step cannot be zero");
    }
    let indices = |length: usize| {
        let length = length as i128;
        // A wider step reaches no more.
        let step = step.clamp(-length - 1, length + 1);
        let (low, high) = if step > 0 { (0, length) } else { (-1, length - 1) };
        let clamp = |at: i128| (if at < 0 { at + length } else { at }).clamp(low, high);
        let first = start.map_or(if step > 0 { low } else { high }, clamp);
        let last = stop.map_or(if step > 0 { high } else { low }, clamp);
        let count = if step > 0 { (last - first + step - 1) / step } else { (first - last - step - 1) / -step };
        (0..count.max(0)).map(move |at| (first + at * step) as usize)
    };
    match value {
        Value::Undefined(message) => fault(&**message),
        Value::Str(text) => {
            run.charge(text.len())?;
            if text.is_ascii() {
                let bytes = text.as_bytes();
                return Ok(indices(bytes.len()).map(|at| char::from(bytes[at])).collect::<String>().into());
            }
            run.charge(text.len() * size_of::<char>())?;
            let chars: Vec<char> = text.chars().collect();
            Ok(indices(chars.len()).map(|at| chars[at]).collect::<String>().into())
        }
        Value::List(items) | Value::Tuple(items, _) => {
            let chosen: Vec<Value> = indices(items.items.len()).map(|at| items.items[at].clone()).collect();
            run.charge(chosen.len() * size_of::<Value>())?;
            if matches!(value, Value::List(_)) { Value::list(chosen) } else { Value::tuple(chosen) }
        }
        Value::Range(range) => {
            let length = range.len();
            run.spend(length as u64 / 8)?;
            let chosen: Vec<usize> = indices(length).collect();
            let first = chosen.first().map_or(0, |first| *first as i64);
            let part = || {
                let step = i64::try_from(step).ok()?.checked_mul(range.step)?;
                let start = first.checked_mul(range.step)?.checked_add(range.start)?;
                let stop = step.checked_mul(chosen.len() as i64)?.checked_add(start)?;
                Some(Value::Range(super::value::Range { start, stop, step }))
            };
            part().map_or_else(|| fault("a number is too large"), Ok)
        }
        other => fault(format!("'{}' object is not subscriptable", other.type_name())),
    }
}
