//! Arguments of a call, bound to the names of parameters.

use super::ast::Text;
use super::value::Value;
use super::{Result, fault};

/// Evaluated arguments.
#[derive(Clone, Default)]
pub(super) struct Values {
    pub positional: Vec<Value>,
    pub named: Vec<(Text, Value)>,
}

impl Values {
    /// The arguments in the order of these parameters; a parameter without a name has a place only.
    pub(super) fn bind<const N: usize>(self, function: &str, parameters: [&str; N]) -> Result<[Option<Value>; N]> {
        if self.positional.len() > N {
            return fault(format!("{function}() takes at most {N} arguments ({} given)", self.positional.len()));
        }
        let mut bound = [const { None }; N];
        for (slot, value) in bound.iter_mut().zip(self.positional) {
            *slot = Some(value);
        }
        for (name, value) in self.named {
            let Some(at) = parameters.iter().position(|parameter| *parameter == &*name) else {
                return fault(format!("{function}() got an unexpected keyword argument '{name}'"));
            };
            if bound[at].is_some() {
                return fault(format!("{function}() got multiple values for argument '{name}'"));
            }
            bound[at] = Some(value);
        }
        Ok(bound)
    }
}

/// What a parameter must have.
pub(super) fn required(value: Option<Value>, function: &str) -> Result<Value> {
    value.map_or_else(|| fault(format!("{function}() lacks an argument")), Ok)
}

/// A whole number.
pub(super) fn int(value: &Value) -> Result<i128> {
    match value {
        Value::Undefined(message) => fault(&**message),
        other => match other.as_int() {
            Some(value) => Ok(value),
            None => fault(format!("'{}' object cannot be interpreted as an integer", other.type_name())),
        },
    }
}

/// A whole number of a parameter that may be left out.
pub(super) fn int_or(value: Option<Value>, default: i128) -> Result<i128> {
    value.map_or(Ok(default), |value| int(&value))
}

/// A text.
pub(super) fn str(value: &Value) -> Result<&str> {
    value.as_str().map_or_else(|| fault(format!("expected str, got '{}'", value.type_name())), Ok)
}

/// True if the parameter is given and true.
pub(super) fn flag(value: Option<Value>) -> bool {
    value.is_some_and(|value| value.is_true())
}

/// `None` for a parameter that is left out or `none`.
pub(super) fn given(value: Option<Value>) -> Option<Value> {
    value.filter(|value| !matches!(value, Value::None))
}
