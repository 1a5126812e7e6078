//! `str` and `repr` of values.

use std::fmt::Write;
use std::sync::Arc;

use super::extent::MAX_DEPTH;
use super::{Dict, Range, Value, View};
use crate::template::jinja::interpreter::Interpreter;
use crate::template::jinja::strings::is_printable;
use crate::template::jinja::{Result, number};

/// A text that is paid for while it is written: namespaces can hold each other so often that it would have no end.
struct Written<'r> {
    run: &'r mut Interpreter,
    text: String,
}

impl Written<'_> {
    fn push_str(&mut self, part: &str) -> Result<()> {
        self.run.charge(part.len())?;
        self.text.push_str(part);
        Ok(())
    }
}

impl Value {
    /// `str(value)`.
    pub(in crate::template::jinja) fn text(&self, run: &mut Interpreter) -> Result<Arc<str>> {
        Ok(match self {
            Self::Str(text) => text.clone(),
            Self::Undefined(_) => "".into(),
            other => other.repr(run)?.into(),
        })
    }

    /// `repr(value)`.
    pub(in crate::template::jinja) fn repr(&self, run: &mut Interpreter) -> Result<String> {
        let mut written = Written { run, text: String::new() };
        self.write_repr(&mut written, 0)?;
        Ok(written.text)
    }

    fn write_repr(&self, text: &mut Written<'_>, depth: u16) -> Result<()> {
        text.run.spend(1)?;
        // Only a namespace that contains itself is deeper; Python does not come to an end there.
        if depth > MAX_DEPTH {
            return text.push_str("...");
        }
        let items = |text: &mut Written<'_>, items: &mut dyn Iterator<Item = &Self>| -> Result<()> {
            for (at, item) in items.enumerate() {
                if at > 0 {
                    text.push_str(", ")?;
                }
                item.write_repr(text, depth + 1)?;
            }
            Ok(())
        };
        let pairs = |text: &mut Written<'_>, dict: &Dict, [open, between, close]: [&str; 3]| -> Result<()> {
            for (at, (name, value)) in dict.pairs().iter().enumerate() {
                text.push_str(if at > 0 { ", " } else { "" })?;
                text.push_str(open)?;
                name.write_repr(text, depth + 1)?;
                text.push_str(between)?;
                value.write_repr(text, depth + 1)?;
                text.push_str(close)?;
            }
            Ok(())
        };
        match self {
            Self::Undefined(_) => text.push_str("Undefined")?,
            Self::None => text.push_str("None")?,
            Self::Bool(value) => text.push_str(if *value { "True" } else { "False" })?,
            Self::Int(value) => {
                text.push_str(&format!("{value}"))?;
            }
            Self::Float(value) => text.push_str(&number::repr(*value))?,
            Self::Str(value) => text.push_str(&quoted(value))?,
            Self::List(list) => {
                text.push_str("[")?;
                items(text, &mut list.items.iter())?;
                text.push_str("]")?;
            }
            Self::Tuple(tuple, _) => {
                text.push_str("(")?;
                items(text, &mut tuple.items.iter())?;
                text.push_str(if tuple.items.len() == 1 { ",)" } else { ")" })?;
            }
            Self::Dict(dict) => {
                text.push_str("{")?;
                pairs(text, dict, ["", ": ", ""])?;
                text.push_str("}")?;
            }
            Self::View(view, dict) => {
                text.push_str(self.type_name())?;
                text.push_str("([")?;
                match view {
                    View::Keys => items(text, &mut dict.pairs().iter().map(|(name, _)| name))?,
                    View::Values => items(text, &mut dict.pairs().iter().map(|(_, value)| value))?,
                    View::Items => pairs(text, dict, ["(", ", ", ")"])?,
                }
                text.push_str("])")?;
            }
            Self::Range(Range { start, stop, step: 1 }) => {
                text.push_str(&format!("range({start}, {stop})"))?;
            }
            Self::Range(Range { start, stop, step }) => {
                text.push_str(&format!("range({start}, {stop}, {step})"))?;
            }
            Self::Namespace(namespace) => {
                text.push_str("<Namespace {")?;
                if let Ok(dict) = namespace.attributes.try_borrow() {
                    pairs(text, &dict, ["", ": ", ""])?;
                }
                text.push_str("}>")?;
            }
            Self::Macro(closure) => match &closure.node.name {
                Some(name) => {
                    text.push_str(&format!("<Macro {}>", quoted(name)))?;
                }
                None => text.push_str("<Macro anonymous>")?,
            },
            Self::Loop(state) => {
                let (index, length) = state.place();
                text.push_str(&format!("<LoopContext {index}/{length}>"))?;
            }
            // Python prints addresses, which are as long.
            Self::Method(method) => {
                let of = method.0.type_name();
                text.push_str(&format!("<built-in method {} of {of} object at 0x7f0000000000>", method.1))?;
            }
            other => text.push_str(&format!("<{} object>", other.type_name()))?,
        }
        Ok(())
    }
}

/// `repr` of a string.
fn quoted(value: &str) -> String {
    let quote = if value.contains('\'') && !value.contains('"') { '"' } else { '\'' };
    let mut text = String::with_capacity(value.len() + 2);
    text.push(quote);
    for c in value.chars() {
        match c {
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\\' => text.push_str("\\\\"),
            c if c == quote => text.extend(['\\', c]),
            c if is_printable(c) => text.push(c),
            c => {
                let code = u32::from(c);
                let _ = match code {
                    0..=0xff => write!(text, "\\x{code:02x}"),
                    0x100..=0xffff => write!(text, "\\u{code:04x}"),
                    _ => write!(text, "\\U{code:08x}"),
                };
            }
        }
    }
    text.push(quote);
    text
}
