//! JSON, as Python writes it.

use std::fmt;
use std::rc::Rc;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::interpreter::Interpreter;
use super::value::{Dict, Value};
use super::{Result, fault, number};

/// The options of `json.dumps`.
pub(super) struct Layout {
    pub items: String,
    pub keys: String,
    pub indent: Option<String>,
    pub sorted: bool,
    pub ascii: bool,
}

/// `json.dumps`.
pub(super) fn dumps(run: &mut Interpreter, value: &Value, layout: &Layout) -> Result<String> {
    let mut text = String::new();
    write(run, value, layout, 0, &mut text)?;
    Ok(text)
}

fn line(run: &mut Interpreter, layout: &Layout, depth: usize, text: &mut String) -> Result<()> {
    if let Some(indent) = &layout.indent {
        run.charge(depth.saturating_mul(indent.len()).saturating_add(1))?;
        text.push('\n');
        (0..depth).for_each(|_| text.push_str(indent));
    }
    Ok(())
}

fn write(run: &mut Interpreter, value: &Value, layout: &Layout, depth: usize, text: &mut String) -> Result<()> {
    run.spend(1)?;
    let before = text.len();
    match value {
        Value::None => text.push_str("null"),
        Value::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        Value::Int(value) => text.push_str(&value.to_string()),
        Value::Float(value) => text.push_str(&float(*value)),
        Value::Str(value) => string(value, layout.ascii, text),
        Value::List(items) | Value::Tuple(items, _) => {
            if items.items.is_empty() {
                text.push_str("[]");
            } else {
                text.push('[');
                for (at, item) in items.items.iter().enumerate() {
                    run.charge(layout.items.len())?;
                    text.push_str(if at > 0 { &layout.items } else { "" });
                    line(run, layout, depth + 1, text)?;
                    write(run, item, layout, depth + 1, text)?;
                }
                line(run, layout, depth, text)?;
                text.push(']');
            }
            return Ok(());
        }
        Value::Dict(dict) => {
            if dict.len() == 0 {
                text.push_str("{}");
                return Ok(());
            }
            let mut pairs: Vec<&(Value, Value)> = dict.pairs().iter().collect();
            if layout.sorted {
                pairs =
                    super::sequences::sort_by(run, pairs, &|run, (a, _), (b, _)| super::sequences::compare(run, a, b))?;
            }
            text.push('{');
            let mut is_first = true;
            for (name, value) in pairs {
                run.charge(layout.items.len() + layout.keys.len())?;
                text.push_str(if is_first { "" } else { &layout.items });
                is_first = false;
                line(run, layout, depth + 1, text)?;
                let name = match name {
                    Value::Str(name) => name.to_string(),
                    Value::None => "null".to_owned(),
                    Value::Bool(value) => if *value { "true" } else { "false" }.to_owned(),
                    Value::Int(value) => value.to_string(),
                    Value::Float(value) => float(*value),
                    other => {
                        return fault(format!("keys must be str, int, float, bool or None, not {}", other.type_name()));
                    }
                };
                let before = text.len();
                string(&name, layout.ascii, text);
                run.charge(text.len() - before)?;
                text.push_str(&layout.keys);
                write(run, value, layout, depth + 1, text)?;
            }
            line(run, layout, depth, text)?;
            text.push('}');
            return Ok(());
        }
        other => return fault(format!("Object of type {} is not JSON serializable", other.type_name())),
    }
    run.charge(text.len() - before)
}

fn float(value: f64) -> String {
    if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned()
    } else {
        number::repr(value)
    }
}

fn string(value: &str, ascii: bool, text: &mut String) {
    text.push('"');
    for c in value.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\x08' => text.push_str("\\b"),
            '\x0c' => text.push_str("\\f"),
            '\0'..='\x1f' => text.push_str(&format!("\\u{:04x}", u32::from(c))),
            '\x7f'.. if ascii && c != '\x7f' => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    text.push_str(&format!("\\u{unit:04x}"));
                }
            }
            c => text.push(c),
        }
    }
    text.push('"');
}

/// JSON text as a value, `text` applied to every string in it. `None` if it is none.
pub(in crate::template) fn parse(json: &str, text: &dyn Fn(&str) -> Value) -> Option<Value> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let value = Reader(text).deserialize(&mut deserializer).ok()?;
    deserializer.end().ok()?;
    Some(value)
}

/// Keeps the order of keys.
#[derive(Clone, Copy)]
struct Reader<'f>(&'f dyn Fn(&str) -> Value);

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> std::result::Result<Value, E> {
        Ok(Value::None)
    }

    fn visit_bool<E>(self, value: bool) -> std::result::Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> std::result::Result<Value, E> {
        Ok(Value::Int(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> std::result::Result<Value, E> {
        Ok(Value::Int(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> std::result::Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> std::result::Result<Value, E> {
        Ok((self.0)(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> std::result::Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(self)? {
            items.push(item);
        }
        Value::list(items).map_err(A::Error::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> std::result::Result<Value, A::Error> {
        let mut dict = Dict::default();
        while let Some(name) = access.next_key_seed(self)? {
            let value = access.next_value_seed(self)?;
            dict.insert(name, value).map_err(A::Error::custom)?;
        }
        Ok(Value::Dict(Rc::new(dict)))
    }
}
