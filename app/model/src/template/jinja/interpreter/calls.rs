//! Calls: the arguments, and what each kind of value does when it is called.

use std::rc::Rc;

use super::{Interpreter, Scope};
use crate::template::jinja::arguments::Values;
use crate::template::jinja::ast::{Arguments, Call};
use crate::template::jinja::value::Value;
use crate::template::jinja::{Result, fault, methods};

impl Interpreter {
    pub(super) fn arguments(&mut self, arguments: &Arguments, scope: &Rc<Scope>) -> Result<Values> {
        let mut values = Values { positional: self.eval_all(&arguments.positional, scope)?, named: Vec::new() };
        for (name, value) in &arguments.named {
            values.named.push((name.clone(), self.eval(value, scope)?));
        }
        if let Some(rest) = &arguments.rest {
            let rest = self.eval(rest, scope)?;
            values.positional.extend(self.items(&rest)?);
        }
        if let Some(rest) = &arguments.rest_named {
            let Value::Dict(rest) = self.eval(rest, scope)? else {
                return fault("argument after ** must be a mapping");
            };
            // Each name is compared with all before it.
            self.spend((values.named.len() + rest.len()) as u64 * rest.len() as u64 / 16)?;
            for (name, value) in rest.pairs() {
                let Value::Str(name) = name else { return fault("keywords must be strings") };
                if values.named.iter().any(|(other, _)| other == name) {
                    return fault(format!("got multiple values for keyword argument '{name}'"));
                }
                values.named.push((name.clone(), value.clone()));
            }
        }
        Ok(values)
    }

    pub(super) fn call_node(&mut self, call: &Call, scope: &Rc<Scope>, caller: Option<Value>) -> Result<Value> {
        let callee = self.eval(&call.callee, scope)?;
        let mut values = self.arguments(&call.arguments, scope)?;
        values.named.extend(caller.map(|caller| ("caller".into(), caller)));
        let line = self.line;
        let value = self.call(&callee, values)?;
        self.line = line;
        Ok(value)
    }

    fn call(&mut self, callee: &Value, values: Values) -> Result<Value> {
        match callee {
            Value::Undefined(message) => fault(&**message),
            Value::Method(method) => methods::call(self, &method.0, method.1, values),
            Value::Macro(closure) => self.deeper(|run| run.call_macro(closure, values)),
            Value::Function(function) => self.call_function(*function, values),
            Value::Joiner(joiner) => {
                let [] = values.bind("joiner", [])?;
                let used = joiner.1.replace(true);
                Ok(if used { Value::Str(joiner.0.clone()) } else { "".into() })
            }
            Value::Loop(state) => self.call_loop(state, values),
            other => fault(format!("'{}' object is not callable", other.type_name())),
        }
    }
}
