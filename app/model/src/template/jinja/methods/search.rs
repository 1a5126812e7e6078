//! What a text contains, begins with and ends with.

use super::bounds;
use crate::template::jinja::arguments::{Values, required, str};
use crate::template::jinja::value::Value;
use crate::template::jinja::{Result, fault};

pub(super) fn affix(text: &str, name: &'static str, arguments: Values) -> Result<Value> {
    let [affix, start, stop] = arguments.bind(name, ["", "", ""])?;
    let affix = required(affix, name)?;
    let part = part(text, start, stop)?.map(|(_, part)| part);
    let has = |affix: &Value| -> Result<bool> {
        let Value::Str(affix) = affix else {
            return fault(format!("{name} first arg must be str or a tuple of str, not {}", affix.type_name()));
        };
        Ok(part.is_some_and(
            |part| if name == "startswith" { part.starts_with(&**affix) } else { part.ends_with(&**affix) },
        ))
    };
    if let Value::Tuple(items, _) = &affix {
        for item in &items.items {
            if has(item)? {
                return Ok(true.into());
            }
        }
        return Ok(false.into());
    }
    has(&affix).map(Value::Bool)
}

pub(super) fn search(text: &str, name: &'static str, arguments: Values) -> Result<Value> {
    let [wanted, start, stop] = arguments.bind(name, ["", "", ""])?;
    let wanted = required(wanted, name)?;
    let wanted = str(&wanted)?;
    let part = part(text, start, stop)?;
    if name == "count" {
        return Ok(part.map_or(0, |(_, part)| part.matches(wanted).count()).into());
    }
    let found = part.and_then(|(from, part)| {
        let at = if name.starts_with('r') { part.rfind(wanted) } else { part.find(wanted) }?;
        Some(text[..from + at].chars().count())
    });
    match found {
        Some(at) => Ok(at.into()),
        None if name.ends_with("find") => Ok(Value::Int(-1)),
        None => fault("substring not found"),
    }
}

/// The part of a text between two places of characters, and where it begins in bytes; `None` if it begins behind the end.
fn part(text: &str, start: Option<Value>, stop: Option<Value>) -> Result<Option<(usize, &str)>> {
    if start.is_none() && stop.is_none() {
        return Ok(Some((0, text)));
    }
    let length = text.chars().count();
    let (from, to) = bounds(length, start, stop)?;
    if from > to {
        return Ok(None);
    }
    let byte = |at: usize| text.char_indices().nth(at).map_or(text.len(), |(byte, _)| byte);
    Ok(Some((byte(from), &text[byte(from)..byte(to)])))
}
