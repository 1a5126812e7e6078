//! Runs statements, which write text and set variables.

use std::rc::Rc;

use super::functions::check_name;
use super::{Interpreter, Scope};
use crate::template::jinja::ast::{Filter, Kind, Statement, Target};
use crate::template::jinja::value::Value;
use crate::template::jinja::{Fault, Result, fault, filters};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    On,
    Break,
    Continue,
}

impl Interpreter {
    pub(super) fn body(&mut self, body: &[Statement], scope: &Rc<Scope>, output: &mut String) -> Result<Flow> {
        for statement in body {
            self.spend(1)?;
            self.line = statement.line;
            let flow = self.statement(&statement.kind, scope, output)?;
            if flow != Flow::On {
                return Ok(flow);
            }
        }
        Ok(Flow::On)
    }

    fn write(&mut self, text: &str, output: &mut String) -> Result<()> {
        self.charge(text.len())?;
        if output.len() + text.len() > self.limits.output {
            return Err(Fault::Runaway);
        }
        output.push_str(text);
        Ok(())
    }

    fn statement(&mut self, kind: &Kind, scope: &Rc<Scope>, output: &mut String) -> Result<Flow> {
        match kind {
            Kind::Data(text) => self.write(text, output)?,
            Kind::Output(expr) => {
                let value = self.eval(expr, scope)?;
                let text = value.text(self)?;
                self.write(&text, output)?;
            }
            Kind::If(branches) => {
                for (condition, body) in branches {
                    let holds = match condition {
                        Some(condition) => self.eval(condition, scope)?.is_true(),
                        None => true,
                    };
                    if holds {
                        return self.deeper(|run| run.body(body, scope, output));
                    }
                }
            }
            Kind::For(node) => {
                let items = self.eval(&node.iterable, scope)?;
                self.for_loop(node, scope, &items, 0, output)?;
            }
            Kind::Set(target, expr) => {
                let value = self.eval(expr, scope)?;
                self.assign(target, value, scope)?;
            }
            Kind::SetBlock(target, filters, body) => {
                let text = self.captured(body, scope)?;
                let value = self.apply(filters, text.into(), scope)?;
                self.assign(target, value, scope)?;
            }
            Kind::FilterBlock(filters, body) => {
                let text = self.captured(body, scope)?;
                let value = self.apply(filters, text.into(), scope)?;
                let text = value.text(self)?;
                self.write(&text, output)?;
            }
            Kind::With(values, body) => {
                let inner = Scope::inside(scope)?;
                for (target, expr) in values {
                    let value = self.eval(expr, scope)?;
                    self.assign(target, value, &inner)?;
                }
                return self.deeper(|run| run.body(body, &inner, output));
            }
            Kind::Scope(body) => {
                let inner = Scope::inside(scope)?;
                return self.deeper(|run| run.body(body, &inner, output));
            }
            Kind::Block(body) => {
                let inner = Scope::inside(&self.root.clone())?;
                return self.deeper(|run| run.body(body, &inner, output));
            }
            Kind::Macro(node) => {
                if let Some(name) = &node.name {
                    scope.set(name, self.closure(node, scope));
                }
            }
            Kind::CallBlock(node, call) => {
                let caller = self.closure(node, scope);
                let value = self.call_node(call, scope, Some(caller))?;
                let text = value.text(self)?;
                self.write(&text, output)?;
            }
            Kind::Break => return Ok(Flow::Break),
            Kind::Continue => return Ok(Flow::Continue),
            Kind::Load => return fault("no loader for this environment specified"),
        }
        Ok(Flow::On)
    }

    fn captured(&mut self, body: &[Statement], scope: &Rc<Scope>) -> Result<String> {
        let inner = Scope::inside(scope)?;
        let mut text = String::new();
        self.deeper(|run| run.body(body, &inner, &mut text))?;
        Ok(text)
    }

    fn apply(&mut self, filters: &[Filter], mut value: Value, scope: &Rc<Scope>) -> Result<Value> {
        for filter in filters {
            let arguments = self.arguments(&filter.arguments, scope)?;
            value = filters::call(self, &filter.name, value, arguments)?;
        }
        Ok(value)
    }

    pub(super) fn assign(&mut self, target: &Target, value: Value, scope: &Rc<Scope>) -> Result<()> {
        match target {
            Target::Name(name) => scope.set(name, value),
            Target::Attribute(object, name) => {
                let Some(Value::Namespace(namespace)) = scope.get(object) else {
                    return fault("cannot assign attribute on non-namespace object");
                };
                check_name(name)?;
                namespace.attributes.borrow_mut().insert(Value::Str(name.clone()), value)?;
            }
            Target::Tuple(targets) => {
                let items = self.items(&value)?;
                if items.len() != targets.len() {
                    return fault(format!("{} values to unpack (expected {})", items.len(), targets.len()));
                }
                for (target, item) in targets.iter().zip(items) {
                    self.assign(target, item, scope)?;
                }
            }
        }
        Ok(())
    }
}
