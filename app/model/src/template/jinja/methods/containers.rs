//! Methods of lists, tuples, ranges and dicts.

use std::rc::Rc;

use super::bounds;
use crate::template::jinja::arguments::{Values, required};
use crate::template::jinja::interpreter::Interpreter;
use crate::template::jinja::sequences::equal;
use crate::template::jinja::value::{Dict, Value, View};
use crate::template::jinja::{Result, fault};

pub(super) fn call_list(run: &mut Interpreter, value: &Value, name: &'static str, arguments: Values) -> Result<Value> {
    let items = run.items(value)?;
    match name {
        "copy" => {
            let [] = arguments.bind(name, [])?;
            Ok(value.clone())
        }
        "count" => {
            let [wanted] = arguments.bind(name, [""])?;
            let wanted = required(wanted, name)?;
            let mut count = 0_usize;
            for item in &items {
                count += usize::from(equal(run, item, &wanted)?);
            }
            Ok(count.into())
        }
        _ => {
            let [wanted, start, stop] = arguments.bind(name, ["", "", ""])?;
            let wanted = required(wanted, name)?;
            let (from, to) = bounds(items.len(), start, stop)?;
            let part = items.get(from..to).unwrap_or_default();
            for (at, item) in part.iter().enumerate() {
                if equal(run, item, &wanted)? {
                    return Ok((from + at).into());
                }
            }
            fault(format!("{} is not in list", wanted.repr(run)?))
        }
    }
}

pub(super) fn call_dict(
    run: &mut Interpreter,
    dict: &Rc<Dict>,
    name: &'static str,
    arguments: Values,
) -> Result<Value> {
    match name {
        "get" => {
            let [key, default] = arguments.bind(name, ["", ""])?;
            let found = dict.get(&required(key, name)?)?.cloned();
            Ok(found.or(default).unwrap_or(Value::None))
        }
        "fromkeys" => from_keys(run, arguments),
        _ => {
            let [] = arguments.bind(name, [])?;
            Ok(match name {
                "keys" => Value::View(View::Keys, dict.clone()),
                "values" => Value::View(View::Values, dict.clone()),
                "items" => Value::View(View::Items, dict.clone()),
                _ => Value::Dict(dict.clone()),
            })
        }
    }
}

pub(super) fn from_keys(run: &mut Interpreter, arguments: Values) -> Result<Value> {
    let [keys, value] = arguments.bind("fromkeys", ["", ""])?;
    let mut dict = Dict::default();
    let value = value.unwrap_or(Value::None);
    for key in run.items(&required(keys, "fromkeys")?)? {
        run.charge(size_of::<Value>() * 3)?;
        dict.insert(key, value.clone())?;
    }
    Ok(Value::Dict(Rc::new(dict)))
}
