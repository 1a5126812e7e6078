//! The functions that every template can call.

use std::cell::RefCell;
use std::rc::Rc;

use super::Interpreter;
use crate::template::jinja::arguments::{Values, int, required, str};
use crate::template::jinja::value::{Dict, Function, Namespace, Range, Value};
use crate::template::jinja::{Fault, Result, fault, sequences};

/// Most items of a `range`, as in Jinja2's sandbox.
const MAX_RANGE: usize = 100_000;

impl Interpreter {
    pub(super) fn call_function(&mut self, function: Function, values: Values) -> Result<Value> {
        match function {
            Function::Range => {
                let [first, second, step] = values.bind("range", ["", "", ""])?;
                let first = int(&required(first, "range")?)?;
                let (start, stop) = match second {
                    Some(second) => (first, int(&second)?),
                    None => (0, first),
                };
                let step = step.map_or(Ok(1), |step| int(&step))?;
                if step == 0 {
                    return fault("range() arg 3 must not be zero");
                }
                // Sums of these fit as well.
                let bound = |value: i128| i64::try_from(value).ok().filter(|value| value.unsigned_abs() < 1 << 44);
                let bounds = (bound(start), bound(stop), bound(step));
                let range = if let (Some(start), Some(stop), Some(step)) = bounds {
                    Some(Range { start, stop, step }).filter(|range| range.len() <= MAX_RANGE)
                } else {
                    None
                };
                let Some(range) = range else {
                    return fault(format!(
                        "Range too big. The sandbox blocks ranges larger than MAX_RANGE ({MAX_RANGE})."
                    ));
                };
                Ok(Value::Range(range))
            }
            Function::Dict => sequences::dict(self, values),
            Function::Namespace => {
                let Value::Dict(dict) = sequences::dict(self, values)? else { return fault("a namespace") };
                for (name, _) in dict.pairs() {
                    if let Value::Str(name) = name {
                        check_name(name)?;
                    }
                }
                Ok(Value::Namespace(Rc::new(Namespace { attributes: RefCell::new(Dict::clone(&dict)) })))
            }
            Function::Cycler => {
                if !values.named.is_empty() || values.positional.is_empty() {
                    return fault("at least one item has to be provided");
                }
                Value::cycler(values.positional)
            }
            Function::Joiner => {
                let [separator] = values.bind("joiner", ["sep"])?;
                let separator = separator.map_or_else(|| Ok(", ".into()), |separator| separator.text(self))?;
                Ok(Value::Joiner(Rc::new((separator, RefCell::new(false)))))
            }
            Function::RaiseException => {
                let [message] = values.bind("raise_exception", ["message"])?;
                Err(Fault::Raised(required(message, "raise_exception")?.text(self)?.to_string()))
            }
            Function::StrftimeNow => {
                let [format] = values.bind("strftime_now", ["format"])?;
                let format = required(format, "strftime_now")?;
                let text = str(&format)?;
                // A field is at most so wide.
                self.charge(text.matches('%').count().saturating_mul(1 << 10))?;
                self.made(self.now.map_or_else(String::new, |now| now.format(text)))
            }
        }
    }
}

/// Transformers keeps templates from Python's own names.
pub(super) fn check_name(name: &str) -> Result<()> {
    if name.starts_with('_') {
        return fault("Chat templates cannot store underscore-prefixed attributes on a namespace");
    }
    Ok(())
}
