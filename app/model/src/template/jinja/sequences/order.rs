//! Filters that compare items with each other: sorted, grouped, without doubles, the least and the greatest.

use std::cmp::Ordering;

use super::paths::{lookup, lookup_or};
use crate::template::jinja::arguments::{Values, flag, given, required, str};
use crate::template::jinja::interpreter::Interpreter;
use crate::template::jinja::value::{Dict, TupleKind, Value};
use crate::template::jinja::{Result, fault};

/// What insertion sorts faster than merging.
const FEW: usize = 20;

/// Sorts by an order that may not exist, keeping equal ones as they are. Any order will do, also one that contradicts itself, as
/// with NaN: the standard library's sort panics there.
pub(in crate::template::jinja) fn sort_by<T>(
    run: &mut Interpreter,
    mut items: Vec<T>,
    order: &impl Fn(&mut Interpreter, &T, &T) -> Result<Option<Ordering>>,
) -> Result<Vec<T>> {
    if items.len() <= FEW {
        for end in 1..items.len() {
            for at in (1..=end).rev() {
                if order(run, &items[at], &items[at - 1])? != Some(Ordering::Less) {
                    break;
                }
                items.swap(at, at - 1);
            }
        }
        return Ok(items);
    }
    let mut sorted = Vec::with_capacity(items.len());
    let right = items.split_off(items.len() / 2);
    let mut left = sort_by(run, items, order)?.into_iter().peekable();
    let mut right = sort_by(run, right, order)?.into_iter().peekable();
    while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
        let is_less = order(run, b, a)? == Some(Ordering::Less);
        sorted.extend(if is_less { right.next() } else { left.next() });
    }
    sorted.extend(left);
    sorted.extend(right);
    Ok(sorted)
}

/// `<`, paid for.
pub(in crate::template::jinja) fn compare(run: &mut Interpreter, a: &Value, b: &Value) -> Result<Option<Ordering>> {
    run.spend(1 + u64::from(a.extent().weight.min(b.extent().weight)))?;
    a.compare(b, "<")
}

/// `==`, paid for.
pub(in crate::template::jinja) fn equal(run: &mut Interpreter, a: &Value, b: &Value) -> Result<bool> {
    run.spend(1 + u64::from(a.extent().weight.min(b.extent().weight)))?;
    Ok(a.equals(b))
}

/// Texts in small letters, other values as they are.
fn ignoring_case(value: Value) -> Value {
    match value {
        Value::Str(text) => text.to_lowercase().into(),
        other => other,
    }
}

fn keys(run: &mut Interpreter, items: &[Value], paths: &[Value], case_sensitive: bool) -> Result<Vec<Vec<Value>>> {
    let mut all = Vec::with_capacity(items.len());
    for item in items {
        let mut key = Vec::with_capacity(paths.len());
        for path in paths {
            let found = lookup(run, item, path)?;
            run.read(&found)?;
            if let (false, Value::Str(text)) = (case_sensitive, &found) {
                run.charge(text.len())?;
            }
            key.push(if case_sensitive { found } else { ignoring_case(found) });
        }
        all.push(key);
    }
    Ok(all)
}

/// Keys of several parts are compared as lists, single ones as they are.
fn compare_keys(run: &mut Interpreter, a: &[Value], b: &[Value], as_lists: bool) -> Result<Option<Ordering>> {
    if let ([a], [b], false) = (a, b, as_lists) {
        return compare(run, a, b);
    }
    for (a, b) in a.iter().zip(b) {
        if !equal(run, a, b)? {
            return compare(run, a, b);
        }
    }
    Ok(Some(Ordering::Equal))
}

/// `sort`.
pub(in crate::template::jinja) fn sort(run: &mut Interpreter, value: &Value, arguments: Values) -> Result<Value> {
    let [reverse, case, attribute] = arguments.bind("sort", ["reverse", "case_sensitive", "attribute"])?;
    let items = run.items(value)?;
    let paths: Vec<Value> = match given(attribute) {
        Some(Value::Str(paths)) => paths.split(',').map(Value::from).collect(),
        Some(path) => vec![path],
        None => vec![Value::None],
    };
    let keys = keys(run, &items, &paths, flag(case))?;
    sorted(run, items, keys, flag(reverse), true).and_then(Value::list)
}

fn sorted(
    run: &mut Interpreter,
    items: Vec<Value>,
    keys: Vec<Vec<Value>>,
    reverse: bool,
    as_lists: bool,
) -> Result<Vec<Value>> {
    let pairs: Vec<(Vec<Value>, Value)> = keys.into_iter().zip(items).collect();
    let pairs = sort_by(run, pairs, &|run, (a, _), (b, _)| {
        let order = compare_keys(run, a, b, as_lists)?;
        Ok(if reverse { order.map(Ordering::reverse) } else { order })
    })?;
    Ok(pairs.into_iter().map(|(_, item)| item).collect())
}

/// `dictsort`.
pub(in crate::template::jinja) fn dictsort(run: &mut Interpreter, value: &Value, arguments: Values) -> Result<Value> {
    let [case, by, reverse] = arguments.bind("dictsort", ["case_sensitive", "by", "reverse"])?;
    let by = by.unwrap_or_else(|| "key".into());
    let at = match str(&by)? {
        "key" => 0,
        "value" => 1,
        _ => return fault("You can only sort by either \"key\" or \"value\""),
    };
    let Value::Dict(dict) = value else {
        return match value {
            Value::Undefined(message) => fault(&**message),
            other => fault(format!("'{}' object has no attribute 'items'", other.type_name())),
        };
    };
    let case = flag(case);
    let key = |pair: &(Value, Value)| {
        let key = if at == 0 { &pair.0 } else { &pair.1 };
        vec![if case { key.clone() } else { ignoring_case(key.clone()) }]
    };
    let keys = dict.pairs().iter().map(key).collect();
    let items = dict.pairs().iter().map(|(name, value)| Value::tuple(vec![name.clone(), value.clone()]));
    let items = items.collect::<Result<Vec<Value>>>()?;
    sorted(run, items, keys, flag(reverse), false).and_then(Value::list)
}

/// `unique`.
pub(in crate::template::jinja) fn unique(run: &mut Interpreter, value: &Value, arguments: Values) -> Result<Value> {
    let [case, attribute] = arguments.bind("unique", ["case_sensitive", "attribute"])?;
    let items = run.items(value)?;
    let paths = [attribute.unwrap_or(Value::None)];
    let keys = keys(run, &items, &paths, flag(case))?;
    let mut seen = Dict::default();
    let mut unique = Vec::new();
    for (key, item) in keys.into_iter().zip(items) {
        let key = key.into_iter().next().unwrap_or(Value::None);
        if seen.get(&key)?.is_none() {
            seen.insert(key, Value::None)?;
            unique.push(item);
        }
    }
    Value::iterator(unique)
}

/// `min` and `max`: the first of the best ones.
pub(in crate::template::jinja) fn extreme(
    run: &mut Interpreter,
    value: &Value,
    arguments: Values,
    wanted: Ordering,
) -> Result<Value> {
    let [case, attribute] = arguments.bind("min", ["case_sensitive", "attribute"])?;
    let items = run.items(value)?;
    let paths = [attribute.unwrap_or(Value::None)];
    let keys = keys(run, &items, &paths, flag(case))?;
    let symbol = if wanted == Ordering::Less { "<" } else { ">" };
    let mut best: Option<(&Value, Value)> = None;
    for (key, item) in keys.iter().flatten().zip(items) {
        let is_better = match &best {
            None => true,
            Some((other, _)) => {
                run.spend(1 + u64::from(key.extent().weight.min(other.extent().weight)))?;
                key.compare(other, symbol)? == Some(wanted)
            }
        };
        if is_better {
            best = Some((key, item));
        }
    }
    Ok(best.map_or_else(|| Value::undefined("No aggregated item, sequence was empty."), |(_, item)| item))
}

/// `groupby`.
pub(in crate::template::jinja) fn groupby(run: &mut Interpreter, value: &Value, arguments: Values) -> Result<Value> {
    let [attribute, default, case] = arguments.bind("groupby", ["attribute", "default", "case_sensitive"])?;
    let path = required(attribute, "groupby")?;
    let (default, case) = (given(default), flag(case));
    let items = run.items(value)?;
    let mut pairs = Vec::with_capacity(items.len());
    for item in items {
        let found = lookup_or(run, &item, &path, default.as_ref())?;
        pairs.push((if case { found.clone() } else { ignoring_case(found.clone()) }, found, item));
    }
    let pairs = sort_by(run, pairs, &|run, (a, ..), (b, ..)| compare(run, a, b))?;
    let mut groups: Vec<(Value, Value, Vec<Value>)> = Vec::new();
    for (key, found, item) in pairs {
        match groups.last_mut().filter(|(last, ..)| last.equals(&key)) {
            Some((.., items)) => items.push(item),
            None => groups.push((key, found, vec![item])),
        }
    }
    let groups =
        groups.into_iter().map(|(_, grouper, items)| match Value::tuple(vec![grouper, Value::list(items)?])? {
            Value::Tuple(pair, _) => Ok(Value::Tuple(pair, TupleKind::Group)),
            other => Ok(other),
        });
    groups.collect::<Result<Vec<Value>>>().and_then(Value::list)
}
