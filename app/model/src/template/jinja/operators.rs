//! Python's operators.

use super::ast::{Comparison, Operator};
use super::interpreter::Interpreter;
use super::value::Value;
use super::{Result, fault, format};

fn symbol(operator: Operator) -> &'static str {
    match operator {
        Operator::Add => "+",
        Operator::Sub => "-",
        Operator::Mul => "*",
        Operator::Div => "/",
        Operator::FloorDiv => "//",
        Operator::Mod => "%",
        Operator::Pow => "** or pow()",
    }
}

/// Python's whole numbers have no end, ours have.
pub(super) fn too_large<T>() -> Result<T> {
    fault("a number is too large")
}

pub(super) fn binary(run: &mut Interpreter, operator: Operator, left: &Value, right: &Value) -> Result<Value> {
    if let (Operator::Mod, Value::Str(text)) = (operator, left) {
        return Ok(format::printf(run, text, right)?.into());
    }
    if let Value::Undefined(message) = left {
        return fault(&**message);
    }
    if let Value::Undefined(message) = right {
        return fault(&**message);
    }
    match (operator, left, right) {
        (Operator::Add, Value::Str(a), Value::Str(b)) => {
            run.charge(a.len() + b.len())?;
            return Ok([&**a, &**b].concat().into());
        }
        (Operator::Add, Value::List(a), Value::List(b)) => {
            run.charge((a.items.len() + b.items.len()) * size_of::<Value>())?;
            return Value::list([&a.items[..], &b.items[..]].concat());
        }
        (Operator::Add, Value::Tuple(a, _), Value::Tuple(b, _)) => {
            run.charge((a.items.len() + b.items.len()) * size_of::<Value>())?;
            return Value::tuple([&a.items[..], &b.items[..]].concat());
        }
        (Operator::Mul, ..) => {
            let repeated = match (left.as_int(), right.as_int()) {
                (Some(count), None) => Some((right, count)),
                (None, Some(count)) => Some((left, count)),
                _ => None,
            };
            if let Some((value @ (Value::Str(_) | Value::List(_) | Value::Tuple(..)), count)) = repeated {
                return repeat(run, value, usize::try_from(count.max(0)).unwrap_or(usize::MAX));
            }
        }
        _ => {}
    }
    if let (Some(a), Some(b)) = (left.as_int(), right.as_int()) {
        return integers(operator, a, b);
    }
    if let (Some(a), Some(b)) = (left.as_float(), right.as_float()) {
        return floats(operator, a, b);
    }
    fault(format!(
        "unsupported operand type(s) for {}: '{}' and '{}'",
        symbol(operator),
        left.type_name(),
        right.type_name()
    ))
}

fn repeat(run: &mut Interpreter, value: &Value, count: usize) -> Result<Value> {
    match value {
        Value::Str(text) => {
            run.charge(text.len().saturating_mul(count))?;
            Ok(text.repeat(count).into())
        }
        Value::List(items) => {
            run.charge(items.items.len().saturating_mul(count).saturating_mul(size_of::<Value>()))?;
            Value::list(repeated(&items.items, count))
        }
        Value::Tuple(items, _) => {
            run.charge(items.items.len().saturating_mul(count).saturating_mul(size_of::<Value>()))?;
            Value::tuple(repeated(&items.items, count))
        }
        _ => fault("cannot be repeated"),
    }
}

fn repeated(items: &[Value], count: usize) -> Vec<Value> {
    // Nothing, as often as wanted, still takes a turn each.
    let count = if items.is_empty() { 0 } else { count };
    std::iter::repeat_n(items, count).flatten().cloned().collect()
}

fn integers(operator: Operator, a: i128, b: i128) -> Result<Value> {
    let checked = |value: Option<i128>| value.map(Value::Int).map_or_else(too_large, Ok);
    match operator {
        Operator::Add => checked(a.checked_add(b)),
        Operator::Sub => checked(a.checked_sub(b)),
        Operator::Mul => checked(a.checked_mul(b)),
        Operator::Div if b != 0 => Ok(Value::Float(a as f64 / b as f64)),
        Operator::FloorDiv if b != 0 => {
            let is_rounded = a.wrapping_rem(b) != 0 && (a < 0) != (b < 0);
            checked(a.checked_div(b).and_then(|quotient| quotient.checked_sub(i128::from(is_rounded))))
        }
        Operator::Mod if b != 0 => {
            let rest = a.wrapping_rem(b);
            Ok(Value::Int(if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest }))
        }
        Operator::Pow if b >= 0 => checked(u32::try_from(b).ok().and_then(|b| a.checked_pow(b))),
        Operator::Pow if a != 0 => floats(operator, a as f64, b as f64),
        _ => fault("division by zero"),
    }
}

fn floats(operator: Operator, a: f64, b: f64) -> Result<Value> {
    Ok(Value::Float(match operator {
        Operator::Add => a + b,
        Operator::Sub => a - b,
        Operator::Mul => a * b,
        Operator::Div if b != 0.0 => a / b,
        Operator::FloorDiv if b != 0.0 => ((a - modulo(a, b)) / b).round(),
        Operator::Mod if b != 0.0 => modulo(a, b),
        Operator::Pow if a == 0.0 && b < 0.0 => return fault("0.0 cannot be raised to a negative power"),
        Operator::Pow if a < 0.0 && b.fract() != 0.0 => return fault("a complex number"),
        Operator::Pow => a.powf(b),
        _ => return fault("float division by zero"),
    }))
}

/// With the sign of the divisor.
fn modulo(a: f64, b: f64) -> f64 {
    let rest = a % b;
    if rest != 0.0 && (rest < 0.0) != (b < 0.0) {
        rest + b
    } else if rest == 0.0 {
        0.0_f64.copysign(b)
    } else {
        rest
    }
}

pub(super) fn negative(value: &Value) -> Result<Value> {
    match value {
        Value::Undefined(message) => fault(&**message),
        Value::Float(value) => Ok(Value::Float(-value)),
        other => match other.as_int() {
            Some(value) => value.checked_neg().map(Value::Int).map_or_else(too_large, Ok),
            None => fault(format!("bad operand type for unary -: '{}'", other.type_name())),
        },
    }
}

pub(super) fn positive(value: &Value) -> Result<Value> {
    match value {
        Value::Undefined(message) => fault(&**message),
        Value::Float(value) => Ok(Value::Float(*value)),
        other => match other.as_int() {
            Some(value) => Ok(Value::Int(value)),
            None => fault(format!("bad operand type for unary +: '{}'", other.type_name())),
        },
    }
}

pub(super) fn compare(run: &mut Interpreter, comparison: Comparison, left: &Value, right: &Value) -> Result<bool> {
    run.spend(u64::from(left.extent().weight.min(right.extent().weight)))?;
    let order = |symbol: &str| left.compare(right, symbol);
    Ok(match comparison {
        Comparison::Eq => left.equals(right),
        Comparison::Ne => !left.equals(right),
        Comparison::Lt => order("<")?.is_some_and(std::cmp::Ordering::is_lt),
        Comparison::Le => order("<=")?.is_some_and(std::cmp::Ordering::is_le),
        Comparison::Gt => order(">")?.is_some_and(std::cmp::Ordering::is_gt),
        Comparison::Ge => order(">=")?.is_some_and(std::cmp::Ordering::is_ge),
        Comparison::In => contains(run, right, left)?,
        Comparison::NotIn => !contains(run, right, left)?,
    })
}

/// `item in container`.
pub(super) fn contains(run: &mut Interpreter, container: &Value, item: &Value) -> Result<bool> {
    match container {
        Value::Str(text) => match item {
            Value::Str(part) => {
                run.spend((text.len() + part.len()) as u64 / 64)?;
                Ok(text.contains(&**part))
            }
            other => fault(format!("'in <string>' requires string as left operand, not {}", other.type_name())),
        },
        Value::Dict(dict) | Value::View(super::value::View::Keys, dict) => {
            run.read(item)?;
            Ok(dict.get(item)?.is_some())
        }
        Value::Range(range) => Ok(match item.as_int() {
            Some(value) => {
                let (offset, step) = (value.saturating_sub(range.start.into()), i128::from(range.step));
                offset.checked_rem(step) == Some(0)
                    && offset.checked_div(step).is_some_and(|at| (0..range.len() as i128).contains(&at))
            }
            None => {
                run.spend(range.len() as u64)?;
                (0..range.len()).any(|at| range.get(at).equals(item))
            }
        }),
        other => {
            let items = run.items(other)?;
            run.spend(u64::from(other.extent().weight))?;
            Ok(items.iter().any(|found| found.equals(item)))
        }
    }
}
