//! Filters that write values for the web: `urlencode` and `xmlattr`.

use crate::template::jinja::arguments::str;
use crate::template::jinja::interpreter::Interpreter;
use crate::template::jinja::strings;
use crate::template::jinja::value::Value;
use crate::template::jinja::{Result, fault};

pub(super) fn urlencode(run: &mut Interpreter, value: &Value) -> Result<Value> {
    let pairs = match value {
        Value::Str(text) => {
            // A byte becomes three at most.
            run.charge(text.len().saturating_mul(3))?;
            return Ok(strings::percent_encode(text, false).into());
        }
        Value::Dict(dict) => {
            dict.pairs().iter().map(|(name, value)| vec![name.clone(), value.clone()]).collect::<Vec<_>>()
        }
        other if run.is_iterable(other) => {
            let mut pairs = Vec::new();
            for pair in run.items(other)? {
                pairs.push(run.items(&pair)?);
            }
            pairs
        }
        other => {
            let text = other.text(run)?;
            return run.made(strings::percent_encode(&text, false));
        }
    };
    let mut encoded = Vec::new();
    for pair in pairs {
        let [name, value] = &pair[..] else { return fault("not enough values to unpack (expected 2)") };
        let [name, value] = [name.text(run)?, value.text(run)?].map(|part| strings::percent_encode(&part, true));
        run.charge(name.len() + value.len())?;
        encoded.push(format!("{name}={value}"));
    }
    run.made(encoded.join("&"))
}

pub(super) fn xml_attributes(run: &mut Interpreter, value: &Value, space: bool) -> Result<Value> {
    let Value::Dict(dict) = value else { return fault("xmlattr needs a mapping") };
    let mut items = Vec::new();
    for (name, value) in dict.pairs() {
        if matches!(value, Value::None | Value::Undefined(_)) {
            continue;
        }
        let name = str(name)?;
        if name.contains(|c: char| c.is_ascii_whitespace() || c == '\x0b' || matches!(c, '/' | '>' | '=')) {
            return fault(format!("Invalid character in attribute name: '{name}'"));
        }
        let (name, value) = (strings::escape_html(name), strings::escape_html(&value.text(run)?));
        run.charge(name.len() + value.len())?;
        items.push(format!("{name}=\"{value}\""));
    }
    let joined = items.join(" ");
    run.made(if space && !joined.is_empty() { format!(" {joined}") } else { joined })
}
