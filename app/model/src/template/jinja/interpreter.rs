//! Runs a template. Here: what a run holds and what it may cost; in the submodules: each kind of thing that runs.

mod calls;
mod expressions;
mod functions;
mod items;
mod loops;
mod macros;
mod statements;

use std::cell::RefCell;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::ast::{Statement, Text};
use super::value::{Function, Value, drop_flat};
use super::{Fault, Result, fault};
use crate::template::time::LocalTime;
pub(super) use loops::LoopState;
pub(super) use macros::MacroValue;

/// Deepest nesting of statements, expressions and macros that run; low, because a page's stack is small.
const MAX_DEPTH: u16 = 260;

/// What a rendering may cost.
#[derive(Clone, Copy, Debug)]
pub(in crate::template) struct Limits {
    /// Statements, expressions and items.
    pub steps: u64,
    /// Bytes of all values that are made, also of those that are gone.
    pub memory: usize,
    /// Bytes that are written.
    pub output: usize,
}

pub(super) struct Interpreter {
    limits: Limits,
    depth: u16,
    line: usize,
    now: Option<LocalTime>,
    /// The variables of the template, for blocks.
    root: Rc<Scope>,
}

/// Variables, with those around them.
struct Scope {
    variables: RefCell<FxHashMap<Text, Value>>,
    parent: Option<Rc<Scope>>,
    depth: u16,
}

/// A scope may hold what holds another one, and so on.
impl Drop for Scope {
    fn drop(&mut self) {
        drop_flat(self.variables.get_mut().drain().map(|(_, value)| value));
    }
}

impl Scope {
    fn inside(parent: &Rc<Self>) -> Result<Rc<Self>> {
        let depth = parent.depth + 1;
        if depth > MAX_DEPTH {
            return Err(Fault::Runaway);
        }
        Ok(Rc::new(Self { variables: RefCell::default(), parent: Some(parent.clone()), depth }))
    }

    fn set(&self, name: &Text, value: Value) {
        self.variables.borrow_mut().insert(name.clone(), value);
    }

    fn get(&self, name: &str) -> Option<Value> {
        let found = self.variables.borrow().get(name).cloned();
        found.or_else(|| self.parent.as_ref()?.get(name))
    }
}

/// Renders a template.
pub(super) fn render(
    body: &[Statement],
    variables: Vec<(&str, Value)>,
    now: Option<LocalTime>,
    limits: &mut Limits,
) -> Result<String> {
    let globals = Scope { variables: RefCell::default(), parent: None, depth: 0 };
    let functions = [
        ("range", Function::Range),
        ("dict", Function::Dict),
        ("namespace", Function::Namespace),
        ("cycler", Function::Cycler),
        ("joiner", Function::Joiner),
        ("raise_exception", Function::RaiseException),
    ];
    for (name, function) in functions {
        globals.set(&name.into(), Value::Function(function));
    }
    if now.is_some() {
        globals.set(&"strftime_now".into(), Value::Function(Function::StrftimeNow));
    }
    for (name, value) in variables {
        globals.set(&name.into(), value);
    }
    let root = Scope::inside(&Rc::new(globals))?;
    let mut run = Interpreter { limits: *limits, depth: 0, line: 1, now, root: root.clone() };
    let mut output = String::new();
    let done = run.body(body, &root, &mut output);
    // Macros hold their scope, which holds them.
    root.variables.borrow_mut().clear();
    *limits = run.limits;
    match done {
        Ok(_) => Ok(output),
        Err(Fault::Error(message)) => fault(format!("{message}, line {}", run.line)),
        Err(other) => Err(other),
    }
}

impl Interpreter {
    /// Counts steps.
    pub(super) fn spend(&mut self, steps: u64) -> Result<()> {
        match self.limits.steps.checked_sub(steps) {
            Some(left) => {
                self.limits.steps = left;
                Ok(())
            }
            None => Err(Fault::Runaway),
        }
    }

    /// Counts what is looked at of a value at once: a step for sixteen bytes of a text, and one for each item.
    pub(super) fn read(&mut self, value: &Value) -> Result<()> {
        self.spend(u64::from(value.extent().weight))
    }

    /// Counts bytes of a value that is made.
    pub(super) fn charge(&mut self, bytes: usize) -> Result<()> {
        match self.limits.memory.checked_sub(bytes) {
            Some(left) => {
                self.limits.memory = left;
                Ok(())
            }
            None => Err(Fault::Runaway),
        }
    }

    /// A text that is made, paid for.
    pub(super) fn made(&mut self, text: String) -> Result<Value> {
        self.charge(text.len())?;
        Ok(text.into())
    }

    /// Runs what may nest.
    pub(super) fn deeper<T>(&mut self, what: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_DEPTH {
            return Err(Fault::Error("maximum recursion depth exceeded".to_owned()));
        }
        self.depth += 1;
        let done = what(self);
        self.depth -= 1;
        done
    }
}
