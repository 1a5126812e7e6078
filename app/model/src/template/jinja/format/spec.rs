//! `format(value, spec)`: sign, width, precision and kind of one field.

use super::{Cursor, radix};
use crate::template::jinja::interpreter::Interpreter;
use crate::template::jinja::strings::{Align, pad};
use crate::template::jinja::value::Value;
use crate::template::jinja::{Result, fault, number};

/// Python's specification of a format.
struct Spec {
    fill: Option<char>,
    align: Option<char>,
    sign: char,
    alternate: bool,
    zero: bool,
    width: usize,
    group: Option<char>,
    precision: Option<usize>,
    kind: Option<char>,
}

fn spec(text: &str) -> Result<Spec> {
    let mut chars = text.chars();
    let (first, second) = (chars.next(), chars.next());
    let is_align = |c: Option<char>| c.filter(|c| matches!(c, '<' | '>' | '=' | '^'));
    let mut cursor = Cursor { rest: text };
    let (fill, align) = match (is_align(second), is_align(first)) {
        (Some(align), _) => {
            cursor.next();
            cursor.next();
            (first, Some(align))
        }
        (None, Some(align)) => {
            cursor.next();
            (None, Some(align))
        }
        _ => (None, None),
    };
    let sign = match cursor.peek() {
        Some(sign @ ('+' | '-' | ' ')) => {
            cursor.next();
            sign
        }
        _ => '-',
    };
    let alternate = cursor.skip('#');
    let zero = cursor.skip('0');
    let width = cursor.number()?.unwrap_or(0);
    let group = cursor.peek().filter(|c| matches!(c, ',' | '_'));
    if group.is_some() {
        cursor.next();
    }
    let precision = if cursor.skip('.') {
        let Some(precision) = cursor.number()? else { return fault("Format specifier missing precision") };
        Some(precision)
    } else {
        None
    };
    let kind = cursor.next();
    if !cursor.rest.is_empty() {
        return fault("Invalid format specifier");
    }
    Ok(Spec { fill, align, sign, alternate, zero, width, group, precision, kind })
}

/// `format(value, spec)`.
pub(super) fn format_value(run: &mut Interpreter, value: &Value, text: &str) -> Result<String> {
    if text.is_empty() {
        return Ok(value.text(run)?.to_string());
    }
    match value {
        Value::Str(value) => format_text(value, &spec(text)?),
        // Without a kind of its own, a `bool` is formatted as a number.
        Value::Bool(_) | Value::Int(_) => format_int(value.as_int().unwrap_or_default(), &spec(text)?),
        Value::Float(value) => format_float(*value, &spec(text)?),
        other => fault(format!("unsupported format string passed to {}.__format__", other.type_name())),
    }
}

fn format_text(text: &str, spec: &Spec) -> Result<String> {
    if !matches!(spec.kind, None | Some('s')) {
        return fault(format!("Unknown format code '{}' for object of type 'str'", spec.kind.unwrap_or_default()));
    }
    if spec.sign != '-' || spec.alternate || spec.group.is_some() || spec.align == Some('=') {
        return fault("not allowed in string format specifier");
    }
    let text: String = text.chars().take(spec.precision.unwrap_or(usize::MAX)).collect();
    let align = match spec.align {
        Some('>') => Align::Right,
        Some('^') => Align::Middle,
        _ => Align::Left,
    };
    Ok(pad(&text, spec.width, spec.fill.unwrap_or(if spec.zero { '0' } else { ' ' }), align))
}

fn format_int(value: i128, spec: &Spec) -> Result<String> {
    let kind = spec.kind.unwrap_or('d');
    if matches!(kind, 'e' | 'E' | 'f' | 'F' | 'g' | 'G' | '%') {
        return format_float(value as f64, spec);
    }
    if spec.precision.is_some() {
        return fault("Precision not allowed in integer format specifier");
    }
    let (digits, prefix, size) = match kind {
        'd' | 'n' => (value.unsigned_abs().to_string(), "", 3),
        'x' | 'X' | 'o' | 'b' => {
            let (digits, prefix) = radix(value.unsigned_abs(), kind);
            (digits, if spec.alternate { prefix } else { "" }, 4)
        }
        'c' => {
            let c = u32::try_from(value).ok().and_then(char::from_u32);
            let Some(c) = c else { return fault("%c arg not in range(0x110000)") };
            return Ok(pad(&c.to_string(), spec.width, spec.fill.unwrap_or(' '), align_of(spec, Align::Left)));
        }
        _ => return fault(format!("Unknown format code '{kind}' for object of type 'int'")),
    };
    if spec.group == Some(',') && size == 4 {
        return fault("Cannot specify ',' with this format");
    }
    Ok(numeric(value < 0, prefix, &digits, "", size, spec))
}

fn format_float(value: f64, spec: &Spec) -> Result<String> {
    let negative = value.is_sign_negative() && !value.is_nan();
    let size = value.abs();
    let text = match spec.kind {
        None if spec.precision.is_none() => number::repr(size),
        None => {
            // As `g`, but with a digit behind the point.
            let precision = spec.precision.unwrap_or(0).max(1);
            let text = number::formatted(size, 'g', precision, false);
            let exponent =
                format!("{size:.*e}", precision - 1).split_once('e').and_then(|(_, e)| e.parse::<i32>().ok());
            match exponent {
                Some(exponent) if !text.contains(['.', 'e', 'n', 'i']) && exponent < precision as i32 - 1 => {
                    text + ".0"
                }
                Some(exponent) if !text.contains(['.', 'e', 'n', 'i']) && exponent == precision as i32 - 1 => {
                    number::formatted(size, 'e', precision - 1, false)
                }
                _ => text,
            }
        }
        Some(kind @ ('e' | 'E' | 'f' | 'F' | 'g' | 'G')) => {
            let text = number::formatted(size, kind.to_ascii_lowercase(), spec.precision.unwrap_or(6), spec.alternate);
            if kind.is_ascii_uppercase() { text.to_uppercase() } else { text }
        }
        Some('n') => number::formatted(size, 'g', spec.precision.unwrap_or(6), spec.alternate),
        Some('%') => number::formatted(size * 100.0, 'f', spec.precision.unwrap_or(6), spec.alternate) + "%",
        Some(kind) => return fault(format!("Unknown format code '{kind}' for object of type 'float'")),
    };
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (whole, rest) = text.split_at(end);
    Ok(numeric(negative, "", whole, rest, 3, spec))
}

fn align_of(spec: &Spec, default: Align) -> Align {
    match spec.align {
        Some('<') => Align::Left,
        Some('>' | '=') => Align::Right,
        Some('^') => Align::Middle,
        _ => default,
    }
}

/// Sign, prefix and digits in their field. `rest` follows the digits that are grouped.
fn numeric(negative: bool, prefix: &str, digits: &str, rest: &str, size: usize, spec: &Spec) -> String {
    let sign = match (negative, spec.sign) {
        (true, _) => "-",
        (_, '+') => "+",
        (_, ' ') => " ",
        _ => "",
    };
    let fills_inside = spec.align == Some('=') || (spec.align.is_none() && spec.zero);
    let fill = spec.fill.unwrap_or(if spec.zero { '0' } else { ' ' });
    let taken = sign.len() + prefix.len() + rest.chars().count();
    let inner = spec.width.saturating_sub(taken);
    let digits = match spec.group {
        Some(group) => {
            // Zeros in front are grouped, too.
            let zeros = if fills_inside && fill == '0' { inner } else { 0 };
            grouped(digits, group, size, zeros)
        }
        None => digits.to_owned(),
    };
    if fills_inside {
        let digits = pad(&digits, inner, fill, Align::Right);
        return format!("{sign}{prefix}{digits}{rest}");
    }
    pad(&format!("{sign}{prefix}{digits}{rest}"), spec.width, fill, align_of(spec, Align::Right))
}

fn grouped(digits: &str, group: char, size: usize, least: usize) -> String {
    let mut reversed = String::new();
    let mut chars = digits.chars().rev();
    for at in 0.. {
        let digit = match chars.next() {
            Some(digit) => digit,
            None if reversed.len() < least => '0',
            None => break,
        };
        if at > 0 && at % size == 0 {
            reversed.push(group);
        }
        reversed.push(digit);
    }
    reversed.chars().rev().collect()
}
