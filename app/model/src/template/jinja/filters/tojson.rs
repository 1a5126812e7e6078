//! `tojson` with its options.

use crate::template::jinja::arguments::{Values, flag, given, int, str};
use crate::template::jinja::interpreter::Interpreter;
use crate::template::jinja::json::{self, Layout};
use crate::template::jinja::value::Value;
use crate::template::jinja::{Result, fault};

/// `json.dumps` as Transformers calls it.
pub(super) fn tojson(run: &mut Interpreter, value: &Value, arguments: Values) -> Result<Value> {
    let names = ["ensure_ascii", "indent", "separators", "sort_keys"];
    let [ascii, indent, separators, sorted] = arguments.bind("tojson", names)?;
    let indent = match given(indent) {
        None => None,
        Some(Value::Str(indent)) => Some(indent.to_string()),
        Some(width) => {
            let width = int(&width)?;
            if width > 64 {
                return fault("an indent is too wide");
            }
            Some(" ".repeat(width.max(0) as usize))
        }
    };
    let separators = match given(separators) {
        // Python puts no space behind an item if the next one is on a line of its own.
        None => [if indent.is_some() { "," } else { ", " }.to_owned(), ": ".to_owned()],
        Some(pair) => {
            let pair = run.items(&pair)?;
            let [items, keys] = &pair[..] else { return fault("not enough values to unpack (expected 2)") };
            [str(items)?.to_owned(), str(keys)?.to_owned()]
        }
    };
    let [items, keys] = separators;
    let layout = Layout { items, keys, indent, sorted: flag(sorted), ascii: flag(ascii) };
    json::dumps(run, value, &layout).map(Value::from)
}
