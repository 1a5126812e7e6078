//! Gemma 4's calls: `call:name{key:<|"|>text<|"|>,other:[1,2]}`.

use super::{is_json, is_name, object, quoted};
use crate::ToolCall;

/// Around texts.
const QUOTE: &str = "<|\"|>";
/// Depth of lists and objects: what is deeper is no call.
const DEPTH: usize = 32;

/// The calls in a text.
pub(super) fn read(text: &str) -> Option<Vec<ToolCall>> {
    let mut rest = text.trim_start();
    let mut calls = Vec::new();
    while !rest.is_empty() {
        let (name, arguments) = rest.strip_prefix("call:")?.split_at_checked(rest.find('{')?.checked_sub(5)?)?;
        let (arguments, behind) = value(arguments, DEPTH)?;
        let name = name.trim();
        calls.push(is_name(name).then(|| ToolCall::new(name, arguments))?);
        rest = behind.trim_start();
    }
    Some(calls)
}

/// A value as JSON, and what is behind it.
fn value(text: &str, depth: usize) -> Option<(String, &str)> {
    let text = text.trim_start();
    let depth = depth.checked_sub(1)?;
    if let Some(rest) = text.strip_prefix(QUOTE) {
        let (said, behind) = rest.split_once(QUOTE)?;
        return Some((quoted(said), behind));
    }
    if let Some(rest) = text.strip_prefix('{') {
        let (fields, behind) = sequence(rest, '}', |rest| {
            let (key, rest) = key(rest)?;
            let (value, rest) = value(rest, depth)?;
            Some(((key, value), rest))
        })?;
        return Some((object(&fields), behind));
    }
    if let Some(rest) = text.strip_prefix('[') {
        let (items, behind) = sequence(rest, ']', |rest| value(rest, depth))?;
        return Some((format!("[{}]", items.join(", ")), behind));
    }
    let end = text.find([',', '}', ']'])?;
    let (bare, behind) = text.split_at(end);
    let bare = bare.trim();
    Some((if is_json(bare) { bare.to_owned() } else { quoted(bare) }, behind))
}

fn key(text: &str) -> Option<(String, &str)> {
    let text = text.trim_start();
    match text.strip_prefix(QUOTE) {
        Some(rest) => {
            let (key, behind) = rest.split_once(QUOTE)?;
            Some((key.to_owned(), behind.trim_start().strip_prefix(':')?))
        }
        None => text.split_once(':').map(|(key, behind)| (key.trim().to_owned(), behind)),
    }
}

/// Items with commas between them up to this end, and what is behind it.
fn sequence<'a, T>(
    mut rest: &'a str,
    end: char,
    item: impl Fn(&'a str) -> Option<(T, &'a str)>,
) -> Option<(Vec<T>, &'a str)> {
    let mut items = Vec::new();
    loop {
        rest = rest.trim_start();
        if let Some(behind) = rest.strip_prefix(end) {
            return Some((items, behind));
        }
        if !items.is_empty() {
            rest = rest.strip_prefix(',')?;
        }
        let (next, behind) = item(rest)?;
        items.push(next);
        rest = behind;
    }
}
