//! The items of a value, and how many there are.

use super::Interpreter;
use crate::template::jinja::value::{Value, View};
use crate::template::jinja::{Result, fault};

impl Interpreter {
    /// `len(value)`.
    pub(in crate::template::jinja) fn length(&mut self, value: &Value) -> Result<usize> {
        Ok(match value {
            Value::Undefined(_) => 0,
            Value::Str(text) => {
                self.spend(text.len() as u64 / 64)?;
                text.chars().count()
            }
            Value::List(items) | Value::Tuple(items, _) => items.items.len(),
            Value::Dict(dict) | Value::View(_, dict) => dict.len(),
            Value::Range(range) => range.len(),
            Value::Loop(state) => state.clone().length(self)?,
            other => return fault(format!("object of type '{}' has no len()", other.type_name())),
        })
    }

    pub(in crate::template::jinja) fn is_iterable(&self, value: &Value) -> bool {
        matches!(
            value,
            Value::Undefined(_)
                | Value::Str(_)
                | Value::List(_)
                | Value::Tuple(..)
                | Value::Dict(_)
                | Value::View(..)
                | Value::Range(_)
                | Value::Iterator(_)
                | Value::Loop(_)
        )
    }

    /// The items that a loop over the value sees. A generator is empty afterwards.
    pub(in crate::template::jinja) fn items(&mut self, value: &Value) -> Result<Vec<Value>> {
        let items: Vec<Value> = match value {
            Value::Undefined(_) => Vec::new(),
            Value::Str(text) => {
                self.charge(text.len().saturating_mul(size_of::<Value>()))?;
                text.chars().map(|c| Value::from(&*c.encode_utf8(&mut [0; 4]))).collect()
            }
            Value::List(items) | Value::Tuple(items, _) => items.items.clone(),
            Value::Dict(dict) | Value::View(View::Keys, dict) => {
                dict.pairs().iter().map(|(name, _)| name.clone()).collect()
            }
            Value::View(View::Values, dict) => dict.pairs().iter().map(|(_, value)| value.clone()).collect(),
            Value::View(View::Items, dict) => {
                let pairs = dict.pairs().iter().map(|(name, value)| Value::tuple(vec![name.clone(), value.clone()]));
                pairs.collect::<Result<_>>()?
            }
            Value::Range(range) => (0..range.len()).map(|at| range.get(at)).collect(),
            Value::Iterator(items) => items.items.borrow_mut().drain(..).collect(),
            other => return fault(format!("'{}' object is not iterable", other.type_name())),
        };
        self.charge(items.len() * size_of::<Value>())?;
        self.spend(items.len() as u64 / 8)?;
        Ok(items)
    }
}
