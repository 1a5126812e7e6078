//! `text % values`.

use super::{Cursor, MAX_WIDTH, ascii, radix};
use crate::template::jinja::interpreter::Interpreter;
use crate::template::jinja::strings::{Align, pad};
use crate::template::jinja::value::Value;
use crate::template::jinja::{Result, attributes, fault, number};

/// `text % values`.
pub(in crate::template::jinja) fn printf(run: &mut Interpreter, text: &str, values: &Value) -> Result<String> {
    run.charge(text.len())?;
    let mut written = String::with_capacity(text.len());
    let mut source = Source { values, used: 0 };
    let mut by_name = false;
    let mut cursor = Cursor { rest: text };
    while let Some(c) = cursor.next() {
        if c != '%' {
            written.push(c);
            continue;
        }
        let mut named = None;
        if cursor.skip('(') {
            let Some(name) = cursor.until('(', ')') else { return fault("incomplete format key") };
            if !matches!(values, Value::Dict(_)) {
                return fault("format requires a mapping");
            }
            named = Some(attributes::subscript(run, values, &name.into())?);
            by_name = true;
        }
        let mut flags = Flags::default();
        loop {
            match cursor.peek() {
                Some('-') => flags.left = true,
                Some('+') => flags.plus = true,
                Some(' ') => flags.space = true,
                Some('0') => flags.zero = true,
                Some('#') => flags.alternate = true,
                _ => break,
            }
            cursor.next();
        }
        let star = |source: &mut Source<'_>| match source.next()?.as_int() {
            Some(width) if width.unsigned_abs() <= MAX_WIDTH as u128 => Ok(width),
            Some(_) => fault("a field is too wide"),
            None => fault("* wants int"),
        };
        let width = if cursor.skip('*') {
            let width = star(&mut source)?;
            flags.left |= width < 0;
            width.unsigned_abs() as usize
        } else {
            cursor.number()?.unwrap_or(0)
        };
        let precision = if cursor.skip('.') {
            Some(if cursor.skip('*') { star(&mut source)?.max(0) as usize } else { cursor.number()?.unwrap_or(0) })
        } else {
            None
        };
        while matches!(cursor.peek(), Some('h' | 'l' | 'L')) {
            cursor.next();
        }
        let Some(kind) = cursor.next() else { return fault("incomplete format") };
        if kind == '%' {
            written.push('%');
            continue;
        }
        let value = match named {
            Some(value) => value,
            None => source.next()?,
        };
        let field = printf_field(run, &value, kind, precision, &flags, width)?;
        run.charge(field.len())?;
        written.push_str(&field);
    }
    let is_mapping = matches!(values, Value::Dict(_) | Value::List(_) | Value::Undefined(_) | Value::Range(_));
    let given = if let Value::Tuple(items, _) = values { items.items.len() } else { 1 };
    if source.used < given && !by_name && !is_mapping {
        return fault("not all arguments converted during string formatting");
    }
    Ok(written)
}

/// What `%` takes its values from.
struct Source<'v> {
    values: &'v Value,
    used: usize,
}

impl Source<'_> {
    fn next(&mut self) -> Result<Value> {
        let found = match self.values {
            Value::Tuple(items, _) => items.items.get(self.used).cloned(),
            value => (self.used == 0).then(|| value.clone()),
        };
        self.used += 1;
        found.map_or_else(|| fault("not enough arguments for format string"), Ok)
    }
}

#[derive(Default)]
struct Flags {
    left: bool,
    plus: bool,
    space: bool,
    zero: bool,
    alternate: bool,
}

fn printf_field(
    run: &mut Interpreter,
    value: &Value,
    kind: char,
    precision: Option<usize>,
    flags: &Flags,
    width: usize,
) -> Result<String> {
    let cut = |text: String| match precision {
        Some(precision) => text.chars().take(precision).collect(),
        None => text,
    };
    let plain = match kind {
        's' => Some(cut(value.text(run)?.to_string())),
        'r' => Some(cut(value.repr(run)?)),
        'a' => Some(cut(ascii(&value.repr(run)?))),
        'c' => Some(match value {
            Value::Str(text) if text.chars().count() == 1 => text.to_string(),
            other => match other.as_int().and_then(|code| u32::try_from(code).ok()).and_then(char::from_u32) {
                Some(c) => c.to_string(),
                None => return fault("%c requires int or char"),
            },
        }),
        _ => None,
    };
    if let Some(text) = plain {
        return Ok(pad(&text, width, ' ', if flags.left { Align::Left } else { Align::Right }));
    }
    let (negative, digits, prefix) = match kind {
        'd' | 'i' | 'u' => {
            let whole = match value {
                Value::Float(value) if value.is_finite() => number::whole(value.trunc()),
                other => other.as_int(),
            };
            let Some(whole) = whole else {
                return fault(format!("%{kind} format: a real number is required, not {}", value.type_name()));
            };
            (whole < 0, whole.unsigned_abs().to_string(), "")
        }
        'x' | 'X' | 'o' => {
            let Some(whole) = value.as_int() else {
                return fault(format!("%{kind} format: an integer is required, not {}", value.type_name()));
            };
            let (digits, prefix) = radix(whole.unsigned_abs(), kind);
            (whole < 0, digits, if flags.alternate { prefix } else { "" })
        }
        'e' | 'E' | 'f' | 'F' | 'g' | 'G' => {
            let Some(value) = number_of(value)? else {
                return fault(format!("must be real number, not {}", value.type_name()));
            };
            let digits =
                number::formatted(value.abs(), kind.to_ascii_lowercase(), precision.unwrap_or(6), flags.alternate);
            let digits = if kind.is_ascii_uppercase() { digits.to_uppercase() } else { digits };
            (value.is_sign_negative() && !value.is_nan(), digits, "")
        }
        _ => return fault(format!("unsupported format character '{kind}'")),
    };
    let digits = match precision {
        Some(precision) if matches!(kind, 'd' | 'i' | 'u' | 'x' | 'X' | 'o') => {
            pad(&digits, precision, '0', Align::Right)
        }
        _ => digits,
    };
    let sign = match (negative, flags.plus, flags.space) {
        (true, ..) => "-",
        (_, true, _) => "+",
        (_, _, true) => " ",
        _ => "",
    };
    let used = sign.len() + prefix.len();
    Ok(if flags.left {
        pad(&format!("{sign}{prefix}{digits}"), width, ' ', Align::Left)
    } else if flags.zero {
        format!("{sign}{prefix}{}", pad(&digits, width.saturating_sub(used), '0', Align::Right))
    } else {
        pad(&format!("{sign}{prefix}{digits}"), width, ' ', Align::Right)
    })
}

/// A number, or `None` for a value of another kind.
fn number_of(value: &Value) -> Result<Option<f64>> {
    if let Value::Undefined(message) = value {
        return fault(&**message);
    }
    Ok(value.as_float())
}
