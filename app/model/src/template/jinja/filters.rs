//! Jinja2's filters, by their names. Here: the short ones of one value; those over many values are in `sequences`.

mod layout;
mod numbers;
mod quoting;
mod tojson;
mod wrap;

use std::cmp::Ordering;

use super::arguments::{Values, flag, required};
use super::interpreter::Interpreter;
use super::strings;
use super::value::Value;
use super::{Result, attributes, fault, format, methods, sequences};

/// The names of all filters.
pub(super) const NAMES: [&str; 54] = [
    "abs",
    "attr",
    "batch",
    "capitalize",
    "center",
    "count",
    "d",
    "default",
    "dictsort",
    "e",
    "escape",
    "filesizeformat",
    "first",
    "float",
    "forceescape",
    "format",
    "groupby",
    "indent",
    "int",
    "join",
    "last",
    "length",
    "list",
    "lower",
    "items",
    "map",
    "min",
    "max",
    "pprint",
    "random",
    "reject",
    "rejectattr",
    "replace",
    "reverse",
    "round",
    "safe",
    "select",
    "selectattr",
    "slice",
    "sort",
    "string",
    "striptags",
    "sum",
    "title",
    "trim",
    "truncate",
    "unique",
    "upper",
    "urlencode",
    "urlize",
    "wordcount",
    "wordwrap",
    "xmlattr",
    "tojson",
];

/// `value | name(arguments)`.
pub(super) fn call(run: &mut Interpreter, name: &str, value: Value, arguments: Values) -> Result<Value> {
    run.spend(1)?;
    let named = arguments.named.iter().map(|(_, value)| value);
    arguments.positional.iter().chain(named).try_for_each(|argument| run.read(argument))?;
    match name {
        "batch" => sequences::batch(run, &value, arguments),
        "slice" => sequences::slices(run, &value, arguments),
        "dictsort" => sequences::dictsort(run, &value, arguments),
        "groupby" => sequences::groupby(run, &value, arguments),
        "join" => sequences::join(run, &value, arguments),
        "map" => sequences::map(run, &value, arguments),
        "min" => sequences::extreme(run, &value, arguments, Ordering::Less),
        "max" => sequences::extreme(run, &value, arguments, Ordering::Greater),
        "select" => sequences::select(run, &value, arguments, true, false),
        "reject" => sequences::select(run, &value, arguments, false, false),
        "selectattr" => sequences::select(run, &value, arguments, true, true),
        "rejectattr" => sequences::select(run, &value, arguments, false, true),
        "sort" => sequences::sort(run, &value, arguments),
        "sum" => sequences::sum(run, &value, arguments),
        "unique" => sequences::unique(run, &value, arguments),
        "default" | "d" => {
            let [default, boolean] = arguments.bind(name, ["default_value", "boolean"])?;
            let is_missing = matches!(value, Value::Undefined(_)) || (flag(boolean) && !value.is_true());
            Ok(if is_missing { default.unwrap_or_else(|| "".into()) } else { value })
        }
        "attr" => {
            let [attribute] = arguments.bind(name, ["name"])?;
            let attribute = required(attribute, name)?.text(run)?;
            match &value {
                Value::Undefined(message) => fault(&**message),
                // Items do not count.
                Value::Dict(_) if methods::known(&value, &attribute).is_none() => {
                    Ok(Value::undefined(format!("'dict object' has no attribute '{attribute}'")))
                }
                other => attributes::attribute(run, other, &attribute),
            }
        }
        "format" => {
            let text = value.text(run)?;
            let values = if arguments.named.is_empty() {
                Value::tuple(arguments.positional)?
            } else if arguments.positional.is_empty() {
                sequences::dict(run, arguments)?
            } else {
                return fault("can't handle positional and keyword arguments at the same time");
            };
            format::printf(run, &text, &values).map(Value::from)
        }
        "int" | "float" | "round" | "abs" | "filesizeformat" => {
            if let Value::Str(text) = &value {
                run.spend(text.len() as u64 / 16)?;
            }
            numbers::call(name, &value, arguments)
        }
        "tojson" => tojson::tojson(run, &value, arguments),
        "indent" | "truncate" | "replace" | "center" | "trim" | "wordwrap" | "xmlattr" => {
            layout::call(run, name, &value, arguments)
        }
        "random" | "urlize" | "striptags" => fault(format!("the filter '{name}' is not supported")),
        _ if !NAMES.contains(&name) => fault(format!("No filter named '{name}'.")),
        _ => {
            let [] = arguments.bind(name, [])?;
            plain(run, name, value)
        }
    }
}

/// Filters without arguments.
fn plain(run: &mut Interpreter, name: &str, value: Value) -> Result<Value> {
    match name {
        "length" | "count" => return run.length(&value).map(Value::from),
        "list" => {
            let items = run.items(&value)?;
            return Value::list(items);
        }
        "items" => return sequences::items(run, &value),
        "reverse" => return sequences::reverse(run, &value),
        "first" => {
            if let Value::Iterator(items) = &value {
                let first = items.items.borrow_mut().pop_front();
                return Ok(first.unwrap_or_else(|| Value::undefined("No first item, sequence was empty.")));
            }
            let first = run.items(&value)?.into_iter().next();
            return Ok(first.unwrap_or_else(|| Value::undefined("No first item, sequence was empty.")));
        }
        "last" => {
            if matches!(value, Value::Iterator(_)) {
                return fault("'generator' object is not reversible");
            }
            let last = run.items(&value)?.pop();
            return Ok(last.unwrap_or_else(|| Value::undefined("No last item, sequence was empty.")));
        }
        "safe" => return Ok(Value::Str(value.text(run)?)),
        "urlencode" => return quoting::urlencode(run, &value),
        // On one line, and in the order of the dict.
        "pprint" => return value.repr(run).map(Value::from),
        _ => {}
    }
    let text = value.text(run)?;
    run.charge(text.len())?;
    let made = match name {
        "lower" => text.to_lowercase(),
        "upper" => text.to_uppercase(),
        "capitalize" => strings::capitalize(&text),
        "title" => strings::filter_title(&text),
        "string" => return Ok(Value::Str(text)),
        "wordcount" => return Ok(strings::count_words(&text).into()),
        _ => strings::escape_html(&text),
    };
    run.made(made)
}
