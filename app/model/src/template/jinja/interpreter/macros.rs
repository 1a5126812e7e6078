//! Macros, and the bodies of call blocks, which are macros without a name.

use std::rc::Rc;
use std::sync::Arc;

use super::{Interpreter, Scope};
use crate::template::jinja::arguments::Values;
use crate::template::jinja::ast::Macro;
use crate::template::jinja::value::{Dict, Value};
use crate::template::jinja::{Result, fault};

/// A macro with the variables around it.
pub(in crate::template) struct MacroValue {
    pub(in crate::template::jinja) node: Arc<Macro>,
    scope: Rc<Scope>,
    pub(in crate::template::jinja) depth: u16,
}

impl MacroValue {
    pub(in crate::template::jinja) fn attribute(&self, name: &str) -> Result<Option<Value>> {
        let node = &self.node;
        Ok(Some(match name {
            "name" => node.name.clone().map_or(Value::None, Value::Str),
            "arguments" => Value::list(node.parameters.iter().map(|(name, _)| Value::Str(name.clone())).collect())?,
            "catch_kwargs" => Value::Bool(node.catches.kwargs),
            "catch_varargs" => Value::Bool(node.catches.varargs),
            "caller" => Value::Bool(node.catches.caller),
            _ => return Ok(None),
        }))
    }
}

impl Interpreter {
    pub(super) fn closure(&self, node: &Arc<Macro>, scope: &Rc<Scope>) -> Value {
        Value::Macro(Rc::new(MacroValue { node: node.clone(), scope: scope.clone(), depth: scope.depth }))
    }

    pub(super) fn call_macro(&mut self, closure: &MacroValue, mut values: Values) -> Result<Value> {
        let node = closure.node.clone();
        let scope = Scope::inside(&closure.scope)?;
        let name = node.name.as_deref().unwrap_or("caller");
        let given = values.positional.len();
        let mut positional = values.positional.into_iter();
        let mut missing = Vec::new();
        for (parameter, default) in &node.parameters {
            let named = values.named.iter().position(|(named, _)| named == parameter);
            let value = match positional.next() {
                Some(value) => Some(value),
                None => named.map(|at| values.named.remove(at).1),
            };
            match value {
                Some(value) => scope.set(parameter, value),
                None => missing.push((parameter, default)),
            }
        }
        let rest: Vec<Value> = positional.collect();
        let mut named = values.named;
        if node.catches.caller {
            let at = named.iter().position(|(name, _)| &**name == "caller");
            let caller = at.map(|at| named.remove(at).1).filter(|caller| !matches!(caller, Value::None));
            scope.set(&"caller".into(), caller.unwrap_or_else(|| Value::undefined("No caller defined")));
        }
        if node.catches.kwargs {
            let mut dict = Dict::default();
            for (name, value) in named {
                dict.insert(Value::Str(name), value)?;
            }
            scope.set(&"kwargs".into(), Value::Dict(Rc::new(dict)));
        } else if let Some((unknown, _)) = named.first() {
            return fault(format!("macro '{name}' takes no keyword argument '{unknown}'"));
        }
        if node.catches.varargs {
            scope.set(&"varargs".into(), Value::tuple(rest)?);
        } else if !rest.is_empty() {
            return fault(format!(
                "macro '{name}' takes not more than {} argument(s), not {given}",
                node.parameters.len()
            ));
        }
        for (parameter, default) in missing {
            let value = match default {
                Some(default) => self.eval(default, &scope)?,
                None => Value::undefined(format!("parameter '{parameter}' was not provided")),
            };
            scope.set(parameter, value);
        }
        let mut text = String::new();
        self.body(&node.body, &scope, &mut text)?;
        Ok(text.into())
    }
}
