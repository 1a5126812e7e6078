//! Computes the value of an expression.

use std::rc::Rc;

use super::{Interpreter, Scope};
use crate::template::jinja::ast::{Comparison, Expr};
use crate::template::jinja::value::{Dict, Value};
use crate::template::jinja::{Fault, Result, attributes, filters, operators, tests};

impl Interpreter {
    pub(super) fn eval(&mut self, expr: &Expr, scope: &Rc<Scope>) -> Result<Value> {
        self.spend(1)?;
        self.deeper(|run| run.eval_deeper(expr, scope))
    }

    pub(super) fn eval_all(&mut self, exprs: &[Expr], scope: &Rc<Scope>) -> Result<Vec<Value>> {
        exprs.iter().map(|expr| self.eval(expr, scope)).collect()
    }

    fn eval_deeper(&mut self, expr: &Expr, scope: &Rc<Scope>) -> Result<Value> {
        Ok(match expr {
            Expr::None => Value::None,
            Expr::Bool(value) => Value::Bool(*value),
            Expr::Int(value) => Value::Int(*value),
            Expr::Float(value) => Value::Float(*value),
            Expr::Str(text) => Value::Str(text.clone()),
            Expr::Name(name) => {
                // The name is looked for in each scope around.
                self.spend((1 + u64::from(scope.depth)) * (1 + name.len() as u64 / 64) / 8)?;
                scope.get(name).unwrap_or_else(|| Value::undefined(format!("'{name}' is undefined")))
            }
            Expr::List(items) => Value::list(self.eval_all(items, scope)?)?,
            Expr::Tuple(items) => Value::tuple(self.eval_all(items, scope)?)?,
            Expr::Dict(pairs) => {
                let mut dict = Dict::default();
                for (name, value) in pairs {
                    let name = self.eval(name, scope)?;
                    self.read(&name)?;
                    dict.insert(name, self.eval(value, scope)?)?;
                }
                Value::Dict(Rc::new(dict))
            }
            Expr::Cond(parts, other) => {
                let [condition, value] = &**parts;
                if self.eval(condition, scope)?.is_true() {
                    self.eval(value, scope)?
                } else if let Some(other) = other {
                    self.eval(other, scope)?
                } else {
                    Value::undefined("the inline if-expression evaluated to false and no else section was defined.")
                }
            }
            Expr::Or(parts) => {
                let left = self.eval(&parts[0], scope)?;
                if left.is_true() { left } else { self.eval(&parts[1], scope)? }
            }
            Expr::And(parts) => {
                let left = self.eval(&parts[0], scope)?;
                if left.is_true() { self.eval(&parts[1], scope)? } else { left }
            }
            Expr::Not(value) => Value::Bool(!self.eval(value, scope)?.is_true()),
            Expr::Compare(first, rest) => self.comparisons(first, rest, scope)?,
            Expr::Binary(operator, parts) => {
                let left = self.eval(&parts[0], scope)?;
                let right = self.eval(&parts[1], scope)?;
                operators::binary(self, *operator, &left, &right)?
            }
            Expr::Concat(parts) => {
                let mut text = String::new();
                for part in self.eval_all(parts, scope)? {
                    let part = part.text(self)?;
                    self.charge(part.len())?;
                    text.push_str(&part);
                }
                text.into()
            }
            Expr::Neg(value) => operators::negative(&self.eval(value, scope)?)?,
            Expr::Pos(value) => operators::positive(&self.eval(value, scope)?)?,
            Expr::Attribute(value, name) => {
                let value = self.eval(value, scope)?;
                self.spend(name.len() as u64 / 64)?;
                attributes::attribute(self, &value, name)?
            }
            Expr::Item(parts) => {
                let value = self.eval(&parts[0], scope)?;
                let key = self.eval(&parts[1], scope)?;
                attributes::item(self, &value, &key)?
            }
            Expr::Slice(value, parts) => {
                let constant = is_constant(value) && parts.iter().flatten().all(is_constant);
                let value = self.eval(value, scope)?;
                let mut bounds = [const { None }; 3];
                for (bound, part) in bounds.iter_mut().zip(&**parts) {
                    *bound = part.as_ref().map(|part| self.eval(part, scope)).transpose()?;
                }
                match attributes::slice(self, &value, bounds) {
                    // Jinja2 slices constants as it looks up items.
                    Err(Fault::Error(message)) if constant => Value::undefined(message),
                    sliced => sliced?,
                }
            }
            Expr::Call(call) => self.call_node(call, scope, None)?,
            Expr::Filter(filter) => {
                let value = match &filter.value {
                    Some(value) => self.eval(value, scope)?,
                    None => Value::None,
                };
                let arguments = self.arguments(&filter.arguments, scope)?;
                filters::call(self, &filter.name, value, arguments)?
            }
            Expr::Test(value, test) => {
                let value = self.eval(value, scope)?;
                let arguments = self.arguments(&test.arguments, scope)?;
                Value::Bool(tests::call(self, &test.name, value, arguments)?)
            }
        })
    }

    /// `a < b < c`: up to the first that does not hold.
    fn comparisons(&mut self, first: &Expr, rest: &[(Comparison, Expr)], scope: &Rc<Scope>) -> Result<Value> {
        let mut left = self.eval(first, scope)?;
        for (comparison, expr) in rest {
            let right = self.eval(expr, scope)?;
            if !operators::compare(self, *comparison, &left, &right)? {
                return Ok(Value::Bool(false));
            }
            left = right;
        }
        Ok(Value::Bool(true))
    }
}

/// An expression that Jinja2 computes when it compiles.
fn is_constant(expr: &Expr) -> bool {
    match expr {
        Expr::None | Expr::Bool(_) | Expr::Int(_) | Expr::Float(_) | Expr::Str(_) => true,
        Expr::List(items) | Expr::Tuple(items) => items.iter().all(is_constant),
        Expr::Dict(pairs) => pairs.iter().all(|(name, value)| is_constant(name) && is_constant(value)),
        Expr::Neg(value) | Expr::Pos(value) => is_constant(value),
        _ => false,
    }
}
