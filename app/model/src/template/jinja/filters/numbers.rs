//! Filters that make numbers, or texts of them.

use crate::template::jinja::arguments::{Values, flag, int_or, str};
use crate::template::jinja::operators::too_large;
use crate::template::jinja::value::Value;
use crate::template::jinja::{Result, fault, methods, number};

pub(super) fn call(name: &str, value: &Value, arguments: Values) -> Result<Value> {
    match name {
        "int" => {
            let [default, base] = arguments.bind(name, ["default", "base"])?;
            let base = int_or(base, 10)?;
            let Some(base) = u32::try_from(base).ok().filter(|base| matches!(base, 0 | 2..=36)) else {
                return Ok(default.unwrap_or(Value::Int(0)));
            };
            if let Some(number) = methods::to_int(value, base)? {
                return Ok(Value::Int(number));
            }
            let float = value.as_str().and_then(number::parse_float).filter(|float| float.is_finite());
            let whole = float.and_then(|float| number::whole(float.trunc()));
            Ok(whole.map_or_else(|| default.unwrap_or(Value::Int(0)), Value::Int))
        }
        "float" => {
            let [default] = arguments.bind(name, ["default"])?;
            let number = match value {
                Value::Undefined(message) => return fault(&**message),
                Value::Str(text) => number::parse_float(text),
                other => other.as_float(),
            };
            Ok(number.map_or_else(|| default.unwrap_or(Value::Float(0.0)), Value::Float))
        }
        "abs" => {
            let [] = arguments.bind(name, [])?;
            match value {
                Value::Float(value) => Ok(Value::Float(value.abs())),
                other => match other.as_int() {
                    Some(value) => value.checked_abs().map(Value::Int).map_or_else(too_large, Ok),
                    None => fault(format!("bad operand type for abs(): '{}'", other.type_name())),
                },
            }
        }
        "filesizeformat" => {
            let [binary] = arguments.bind(name, ["binary"])?;
            let bytes = match value {
                Value::Str(text) => number::parse_float(text),
                other => other.as_float(),
            };
            let Some(bytes) = bytes else { return fault("could not convert to float") };
            Ok(file_size(bytes, flag(binary)).into())
        }
        _ => {
            let [precision, method] = arguments.bind(name, ["precision", "method"])?;
            let digits = int_or(precision, 0)?;
            let method = method.unwrap_or_else(|| "common".into());
            let scale = 10_f64.powi(i32::try_from(digits).unwrap_or(0));
            let rounded = |round: fn(f64) -> f64| match value.as_float() {
                Some(value) if value.is_finite() => Ok(Value::Float(round(value * scale) / scale)),
                _ => fault("must be real number"),
            };
            match (str(&method)?, value) {
                ("ceil", _) => rounded(f64::ceil),
                ("floor", _) => rounded(f64::floor),
                ("common", Value::Float(value)) => Ok(Value::Float(number::round(*value, digits))),
                ("common", other) => match other.as_int() {
                    Some(value) => number::round_int(value, digits).map(Value::Int).map_or_else(too_large, Ok),
                    None => fault(format!("type {} doesn't define __round__ method", other.type_name())),
                },
                _ => fault("method must be common, ceil or floor"),
            }
        }
    }
}

fn file_size(bytes: f64, binary: bool) -> String {
    let base: f64 = if binary { 1024.0 } else { 1000.0 };
    if bytes == 1.0 {
        return "1 Byte".to_owned();
    }
    if bytes < base {
        return format!("{} Bytes", bytes as i64);
    }
    let mut unit = base;
    let mut prefix = "";
    for next in ["k", "M", "G", "T", "P", "E", "Z", "Y"] {
        prefix = next;
        unit *= base;
        if bytes < unit {
            break;
        }
    }
    let prefix = if binary { format!("{}i", prefix.to_uppercase()) } else { prefix.to_owned() };
    format!("{:.1} {prefix}B", base * bytes / unit)
}
