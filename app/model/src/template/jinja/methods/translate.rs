//! `maketrans` and `translate`.

use std::rc::Rc;

use crate::template::jinja::arguments::{Values, int, required, str};
use crate::template::jinja::interpreter::Interpreter;
use crate::template::jinja::value::{Dict, Value};
use crate::template::jinja::{Result, fault};

pub(super) fn make_translation(arguments: Values) -> Result<Value> {
    let [from, to, delete] = arguments.bind("maketrans", ["", "", ""])?;
    let from = required(from, "maketrans")?;
    let mut table = Dict::default();
    let code = |c: char| Value::Int(u32::from(c).into());
    match (&from, to) {
        (Value::Dict(map), None) => {
            for (name, value) in map.pairs() {
                let name = match name {
                    Value::Str(text) => {
                        let mut chars = text.chars();
                        let (Some(c), None) = (chars.next(), chars.next()) else {
                            return fault("string keys in translate table must be of length 1");
                        };
                        code(c)
                    }
                    other => Value::Int(int(other)?),
                };
                table.insert(name, value.clone())?;
            }
        }
        (_, Some(to)) => {
            let (from, to): (Vec<char>, Vec<char>) = (str(&from)?.chars().collect(), str(&to)?.chars().collect());
            if from.len() != to.len() {
                return fault("the first two maketrans arguments must have equal length");
            }
            for (from, to) in from.into_iter().zip(to) {
                table.insert(code(from), code(to))?;
            }
            if let Some(delete) = delete {
                for c in str(&delete)?.chars() {
                    table.insert(code(c), Value::None)?;
                }
            }
        }
        _ => return fault("if you give only one argument to maketrans it must be a dict"),
    }
    Ok(Value::Dict(Rc::new(table)))
}

pub(super) fn translate(run: &mut Interpreter, text: &str, arguments: Values) -> Result<Value> {
    let [table] = arguments.bind("translate", [""])?;
    let Value::Dict(table) = required(table, "translate")? else { return fault("translate() needs a dict") };
    let mut translated = String::with_capacity(text.len());
    for c in text.chars() {
        match table.get(&Value::Int(u32::from(c).into()))? {
            None => translated.push(c),
            Some(Value::None) => {}
            Some(Value::Str(text)) => {
                run.charge(text.len())?;
                translated.push_str(text);
            }
            Some(code) => match u32::try_from(int(code)?).ok().and_then(char::from_u32) {
                Some(c) => translated.push(c),
                None => return fault("character mapping must be in range(0x110000)"),
            },
        }
    }
    Ok(translated.into())
}
