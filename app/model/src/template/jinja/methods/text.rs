//! Methods of texts.

use std::collections::HashSet;

use super::search::{affix, search};
use super::translate::{make_translation, translate};
use crate::template::jinja::arguments::{Values, flag, given, int, int_or, required, str};
use crate::template::jinja::interpreter::Interpreter;
use crate::template::jinja::strings::{self, Align};
use crate::template::jinja::value::Value;
use crate::template::jinja::{Result, fault, format};

pub(super) fn call(run: &mut Interpreter, text: &str, name: &'static str, arguments: Values) -> Result<Value> {
    run.charge(text.len())?;
    if let Some(is) = strings::predicate(name, text) {
        let [] = arguments.bind(name, [])?;
        return Ok(is.into());
    }
    let changed = match name {
        "upper" => Some(text.to_uppercase()),
        "lower" => Some(text.to_lowercase()),
        "title" => Some(strings::title(text)),
        "capitalize" => Some(strings::capitalize(text)),
        "swapcase" => Some(strings::swapcase(text)),
        "casefold" => Some(strings::casefold(text)),
        _ => None,
    };
    if let Some(changed) = changed {
        let [] = arguments.bind(name, [])?;
        return run.made(changed);
    }
    match name {
        "strip" | "lstrip" | "rstrip" => {
            let [chars] = arguments.bind(name, [""])?;
            strip(text, name, given(chars).as_ref()).map(Value::from)
        }
        "split" | "rsplit" => {
            let [separator, max] = arguments.bind(name, ["sep", "maxsplit"])?;
            let max = limit(max)?;
            let separator = given(separator);
            let most = match separator.as_ref().and_then(Value::as_str) {
                Some(separator) => text.matches(separator).count(),
                None => text.chars().filter(|c| strings::is_space(*c)).count(),
            };
            run.charge(most.min(max.unwrap_or(most)).saturating_mul(size_of::<&str>()))?;
            let parts = split(text, name == "rsplit", separator.as_ref(), max)?;
            Value::list(texts(run, parts)?)
        }
        "splitlines" => {
            let [keep] = arguments.bind(name, ["keepends"])?;
            let most = text.chars().filter(|c| strings::is_break(*c)).count();
            run.charge(most.saturating_mul(size_of::<&str>()))?;
            Value::list(texts(run, strings::lines(text, flag(keep)))?)
        }
        "partition" | "rpartition" => {
            let [separator] = arguments.bind(name, [""])?;
            let separator = required(separator, name)?;
            let separator = str(&separator)?;
            if separator.is_empty() {
                return fault("empty separator");
            }
            let parts = if name == "partition" {
                text.split_once(separator).map_or([text, "", ""], |(before, after)| [before, separator, after])
            } else {
                text.rsplit_once(separator).map_or(["", "", text], |(before, after)| [before, separator, after])
            };
            Value::tuple(texts(run, parts)?)
        }
        "replace" => {
            let [old, new, count] = arguments.bind(name, ["", "", "count"])?;
            let (old, new) = (required(old, name)?, required(new, name)?);
            replace(run, text, str(&old)?, str(&new)?, limit(count)?).map(Value::from)
        }
        "removeprefix" | "removesuffix" => {
            let [affix] = arguments.bind(name, [""])?;
            let affix = required(affix, name)?;
            let affix = str(&affix)?;
            let rest = if name == "removeprefix" { text.strip_prefix(affix) } else { text.strip_suffix(affix) };
            Ok(rest.unwrap_or(text).into())
        }
        "startswith" | "endswith" => affix(text, name, arguments),
        "find" | "rfind" | "index" | "rindex" | "count" => search(text, name, arguments),
        "join" => {
            let [items] = arguments.bind(name, [""])?;
            let items = run.items(&required(items, name)?)?;
            let mut joined = String::new();
            for (at, item) in items.iter().enumerate() {
                let Value::Str(item) = item else {
                    return fault(format!("sequence item {at}: expected str instance, {} found", item.type_name()));
                };
                run.charge(item.len() + text.len())?;
                joined.push_str(if at > 0 { text } else { "" });
                joined.push_str(item);
            }
            Ok(joined.into())
        }
        "center" | "ljust" | "rjust" => {
            let [size, fill] = arguments.bind(name, ["", ""])?;
            let fill = fill.unwrap_or_else(|| " ".into());
            let mut chars = str(&fill)?.chars();
            let (Some(fill), None) = (chars.next(), chars.next()) else {
                return fault("The fill character must be exactly one character long");
            };
            let align = match name {
                "center" => Align::Center,
                "ljust" => Align::Left,
                _ => Align::Right,
            };
            run.made(strings::pad(text, width(size, name)?, fill, align))
        }
        "zfill" => {
            let [size] = arguments.bind(name, [""])?;
            run.made(strings::zero_fill(text, width(size, name)?))
        }
        "expandtabs" => {
            let [size] = arguments.bind(name, ["tabsize"])?;
            let size = width(Some(size.unwrap_or(Value::Int(8))), name)?;
            run.charge(text.matches('\t').count().saturating_mul(size))?;
            Ok(strings::expand_tabs(text, size).into())
        }
        "format" => format::str_format(run, text, &arguments).map(Value::from),
        "format_map" => {
            let [map] = arguments.bind(name, [""])?;
            let Value::Dict(map) = required(map, name)? else { return fault("format_map() needs a mapping") };
            let named = map.pairs().iter().filter_map(|(name, value)| match name {
                Value::Str(name) => Some((name.clone(), value.clone())),
                _ => None,
            });
            let values = Values { positional: Vec::new(), named: named.collect() };
            format::str_format(run, text, &values).map(Value::from)
        }
        "maketrans" => make_translation(arguments),
        _ => translate(run, text, arguments),
    }
}

fn texts(run: &mut Interpreter, parts: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Vec<Value>> {
    let mut values = Vec::new();
    for part in parts {
        run.charge(part.as_ref().len() + size_of::<Value>())?;
        values.push(part.as_ref().into());
    }
    Ok(values)
}

/// How often at most, if not as often as possible.
fn limit(value: Option<Value>) -> Result<Option<usize>> {
    Ok(usize::try_from(int_or(value, -1)?).ok())
}

fn width(value: Option<Value>, name: &str) -> Result<usize> {
    let width = int(&required(value, name)?)?;
    if width > format::MAX_WIDTH as i128 { fault("a field is too wide") } else { Ok(width.max(0) as usize) }
}

/// `strip` and its halves.
pub(in crate::template::jinja) fn strip(text: &str, name: &str, chars: Option<&Value>) -> Result<String> {
    let chars: Option<HashSet<char>> = chars.map(str).transpose()?.map(|chars| chars.chars().collect());
    let strips = |c: char| chars.as_ref().map_or_else(|| strings::is_space(c), |chars| chars.contains(&c));
    let mut rest = text;
    if name != "rstrip" {
        rest = rest.trim_start_matches(strips);
    }
    if name != "lstrip" {
        rest = rest.trim_end_matches(strips);
    }
    Ok(rest.to_owned())
}

fn split<'t>(text: &'t str, from_right: bool, separator: Option<&Value>, max: Option<usize>) -> Result<Vec<&'t str>> {
    let Some(separator) = separator else {
        return Ok(if from_right { strings::rsplit_space(text, max) } else { strings::split_space(text, max) });
    };
    let separator = str(separator)?;
    if separator.is_empty() {
        return fault("empty separator");
    }
    let count = max.map_or(usize::MAX, |max| max.saturating_add(1));
    Ok(if from_right {
        let mut parts: Vec<&str> = text.rsplitn(count, separator).collect();
        parts.reverse();
        parts
    } else {
        text.splitn(count, separator).collect()
    })
}

/// `replace`, as often as allowed.
pub(in crate::template::jinja) fn replace(
    run: &mut Interpreter,
    text: &str,
    old: &str,
    new: &str,
    max: Option<usize>,
) -> Result<String> {
    let found = text.matches(old).count().min(max.unwrap_or(usize::MAX));
    run.charge(text.len().saturating_add(found.saturating_mul(new.len())))?;
    Ok(text.replacen(old, new, max.unwrap_or(usize::MAX)))
}
