//! Filters of texts that take arguments: those that cut, pad and indent.

use super::quoting::xml_attributes;
use super::wrap::wrapped;
use crate::template::jinja::arguments::{Values, flag, given, int, int_or, required, str};
use crate::template::jinja::interpreter::Interpreter;
use crate::template::jinja::strings::{self, Align};
use crate::template::jinja::value::Value;
use crate::template::jinja::{Result, fault, format, methods};

pub(super) fn call(run: &mut Interpreter, name: &str, value: &Value, arguments: Values) -> Result<Value> {
    let text = value.text(run)?;
    run.charge(text.len())?;
    let is_text = matches!(value, Value::Str(_));
    match name {
        "replace" => {
            let [old, new, count] = arguments.bind(name, ["old", "new", "count"])?;
            let (old, new) = (required(old, name)?.text(run)?, required(new, name)?.text(run)?);
            let count = given(count).map(|count| int(&count)).transpose()?.unwrap_or(-1);
            methods::replace(run, &text, &old, &new, usize::try_from(count).ok()).map(Value::from)
        }
        "center" => {
            let [width] = arguments.bind(name, ["width"])?;
            let width = int_or(width, 80)?.max(0) as usize;
            if width > format::MAX_WIDTH {
                return fault("a field is too wide");
            }
            run.made(strings::pad(&text, width, ' ', Align::Center))
        }
        "trim" => {
            let [chars] = arguments.bind(name, ["chars"])?;
            methods::strip(&text, name, given(chars).as_ref()).map(Value::from)
        }
        "xmlattr" => {
            let [space] = arguments.bind(name, ["autospace"])?;
            xml_attributes(run, value, space.is_none_or(|space| space.is_true()))
        }
        // What is short enough stays what it is.
        "truncate" if !is_text => {
            let [length, _, _, leeway] = arguments.bind(name, ["length", "killwords", "end", "leeway"])?;
            let most = int_or(length, 255)?.saturating_add(int_or(given(leeway), 5)?);
            if run.length(value)? as i128 <= most { Ok(value.clone()) } else { fault("can only concatenate str") }
        }
        _ if !is_text => match value {
            Value::Undefined(message) => fault(&**message),
            other => fault(format!("'{}' object is no text", other.type_name())),
        },
        "indent" => {
            let [width, first, blank] = arguments.bind(name, ["width", "first", "blank"])?;
            let indent = match width {
                Some(Value::Str(indent)) => indent.to_string(),
                width => match int_or(width, 4)? {
                    width if width > format::MAX_WIDTH as i128 => return fault("a field is too wide"),
                    width => " ".repeat(width.max(0) as usize),
                },
            };
            indented(run, &text, &indent, flag(first), flag(blank)).map(Value::from)
        }
        "wordwrap" => {
            let names = ["width", "break_long_words", "wrapstring", "break_on_hyphens"];
            let [width, long, wrap, hyphens] = arguments.bind(name, names)?;
            let width = usize::try_from(int_or(width, 79)?).unwrap_or(0);
            if width == 0 {
                return fault("invalid width 0 (must be > 0)");
            }
            let wrap = given(wrap).unwrap_or_else(|| "\n".into());
            let or_true = |value: Option<Value>| value.is_none_or(|value| value.is_true());
            let (long, hyphens) = (or_true(long), or_true(hyphens));
            let wrap = str(&wrap)?;
            // A word is in pieces of its own, each a list of characters; a long one is copied for each line of it.
            run.charge(text.len().saturating_mul(32))?;
            let longest = text.split(strings::is_space).map(str::len).max().unwrap_or(0);
            run.spend((longest / width).saturating_mul(longest / 16) as u64)?;
            let mut written = String::new();
            for (at, line) in strings::lines(&text, false).into_iter().enumerate() {
                let parts = wrapped(line, width, long, hyphens);
                run.charge((parts.len() + 1).saturating_mul(wrap.len()))?;
                written.push_str(if at > 0 { wrap } else { "" });
                written.push_str(&parts.join(wrap));
            }
            run.made(written)
        }
        _ => {
            let [length, kill, end, leeway] = arguments.bind(name, ["length", "killwords", "end", "leeway"])?;
            let end = end.map_or_else(|| Ok("...".into()), |end| end.text(run))?;
            let (length, leeway) = (int_or(length, 255)?, int_or(given(leeway), 5)?);
            let (chars, end_chars) = (text.chars().count() as i128, end.chars().count() as i128);
            if length < end_chars || leeway < 0 {
                return fault(format!("expected length >= {end_chars}, got {length}"));
            }
            if chars <= length.saturating_add(leeway) {
                return Ok(Value::Str(text));
            }
            let cut: String = text.chars().take((length - end_chars) as usize).collect();
            let cut = if flag(kill) { &*cut } else { cut.rsplit_once(' ').map_or(&*cut, |(before, _)| before) };
            run.made(format!("{cut}{end}"))
        }
    }
}

fn indented(run: &mut Interpreter, text: &str, indent: &str, first: bool, blank: bool) -> Result<String> {
    let text = format!("{text}\n");
    let lines = strings::lines(&text, false);
    run.charge(text.len().saturating_add(lines.len().saturating_mul(indent.len() + 1)))?;
    let mut indented = String::new();
    for (at, line) in lines.iter().enumerate() {
        indented.push_str(if at > 0 { "\n" } else { "" });
        let wanted = if at == 0 { first } else { blank || !line.is_empty() };
        indented.push_str(if wanted { indent } else { "" });
        indented.push_str(line);
    }
    Ok(indented)
}
