//! Values at a path, as the parameter `attribute` of filters names them.

use crate::template::jinja::interpreter::Interpreter;
use crate::template::jinja::value::Value;
use crate::template::jinja::{Result, attributes};

/// Looks up a path such as `a.b.0`.
pub(super) fn lookup(run: &mut Interpreter, value: &Value, path: &Value) -> Result<Value> {
    match path {
        Value::None => Ok(value.clone()),
        Value::Str(path) => {
            let mut value = value.clone();
            for part in path.split('.') {
                run.spend(1)?;
                let key = match part.parse::<i128>() {
                    Ok(index) if part.bytes().all(|byte| byte.is_ascii_digit()) => Value::Int(index),
                    _ => part.into(),
                };
                value = attributes::item(run, &value, &key)?;
            }
            Ok(value)
        }
        other => attributes::item(run, value, other),
    }
}

/// The same with another value for what is not there.
pub(super) fn lookup_or(run: &mut Interpreter, value: &Value, path: &Value, default: Option<&Value>) -> Result<Value> {
    let Value::Str(text) = path else {
        let found = lookup(run, value, path)?;
        return Ok(if matches!(found, Value::Undefined(_)) { default.cloned().unwrap_or(found) } else { found });
    };
    let mut value = value.clone();
    for part in text.split('.') {
        value = lookup(run, &value, &part.into())?;
        if let (Value::Undefined(_), Some(default)) = (&value, default) {
            value = default.clone();
        }
    }
    Ok(value)
}
