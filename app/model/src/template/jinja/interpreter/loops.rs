//! `for`, and the variable `loop` inside it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use super::statements::Flow;
use super::{Interpreter, Scope};
use crate::template::jinja::arguments::{Values, required};
use crate::template::jinja::ast::{For, Target, Text};
use crate::template::jinja::value::{Extent, Value, drop_flat};
use crate::template::jinja::{Result, fault};

/// The variable `loop`.
pub(in crate::template) struct LoopState {
    node: Arc<For>,
    /// The variables around the loop.
    scope: Rc<Scope>,
    /// Items that are still to come, before the condition.
    rest: RefCell<VecDeque<Value>>,
    length: Cell<Option<usize>>,
    /// Iterations that have begun.
    index: Cell<usize>,
    before: RefCell<Option<Value>>,
    current: RefCell<Option<Value>>,
    after: RefCell<Option<Value>>,
    changed: RefCell<Option<Vec<Value>>>,
    depth: usize,
    /// Of all that it holds.
    extent: Cell<Extent>,
}

/// A loop may hold one that was before it, and so on.
impl Drop for LoopState {
    fn drop(&mut self) {
        let rest = std::mem::take(self.rest.get_mut());
        let around = [self.before.take(), self.current.take(), self.after.take()];
        let changed = self.changed.take().unwrap_or_default();
        drop_flat(rest.into_iter().chain(around.into_iter().flatten()).chain(changed));
    }
}

impl LoopState {
    pub(in crate::template::jinja) fn extent(&self) -> Extent {
        self.extent.get()
    }

    /// The next item that meets the condition.
    fn fetch(&self, run: &mut Interpreter) -> Result<Option<Value>> {
        loop {
            let Some(item) = self.rest.borrow_mut().pop_front() else { return Ok(None) };
            run.spend(1)?;
            // Once the length is known, the rest has met the condition.
            let Some(condition) = self.node.condition.as_ref().filter(|_| self.length.get().is_none()) else {
                return Ok(Some(item));
            };
            let scope = Scope::inside(&self.scope)?;
            run.assign(&self.node.target, item.clone(), &scope)?;
            if run.eval(condition, &scope)?.is_true() {
                // Jinja2 yields the variables, so a pair comes out as a tuple.
                return packed(&self.node.target, item, &scope).map(Some);
            }
        }
    }

    fn peek(&self, run: &mut Interpreter) -> Result<Option<Value>> {
        if self.after.borrow().is_none() {
            let next = self.fetch(run)?;
            *self.after.borrow_mut() = next;
        }
        Ok(self.after.borrow().clone())
    }

    fn advance(&self, run: &mut Interpreter) -> Result<Option<Value>> {
        let waiting = self.after.borrow_mut().take();
        let next = match waiting {
            Some(next) => Some(next),
            None => self.fetch(run)?,
        };
        if let Some(next) = &next {
            self.index.set(self.index.get() + 1);
            let current = self.current.replace(Some(next.clone()));
            *self.before.borrow_mut() = current;
        }
        Ok(next)
    }

    pub(super) fn length(&self, run: &mut Interpreter) -> Result<usize> {
        if let Some(length) = self.length.get() {
            return Ok(length);
        }
        let mut rest = VecDeque::new();
        while let Some(item) = self.fetch(run)? {
            rest.push_back(item);
        }
        let length = rest.len() + self.index.get() + usize::from(self.after.borrow().is_some());
        *self.rest.borrow_mut() = rest;
        self.length.set(Some(length));
        Ok(length)
    }

    /// Index and length, for people.
    pub(in crate::template::jinja) fn place(&self) -> (usize, usize) {
        let ahead = self.rest.borrow().len() + usize::from(self.after.borrow().is_some());
        (self.index.get(), self.length.get().unwrap_or(self.index.get() + ahead))
    }

    pub(in crate::template::jinja) fn attribute(
        self: Rc<Self>,
        run: &mut Interpreter,
        name: &str,
    ) -> Result<Option<Value>> {
        let index = self.index.get();
        Ok(Some(match name {
            "index" => index.into(),
            "index0" => Value::Int(index as i128 - 1),
            "first" => (index == 1).into(),
            "last" => self.peek(run)?.is_none().into(),
            "length" => self.length(run)?.into(),
            "revindex" => Value::Int(self.length(run)? as i128 - index as i128 + 1),
            "revindex0" => Value::Int(self.length(run)? as i128 - index as i128),
            "depth" => (self.depth + 1).into(),
            "depth0" => self.depth.into(),
            "previtem" => {
                let before = self.before.borrow().clone().filter(|_| index > 1);
                before.unwrap_or_else(|| Value::undefined("there is no previous item"))
            }
            "nextitem" => self.peek(run)?.unwrap_or_else(|| Value::undefined("there is no next item")),
            _ => return Ok(None),
        }))
    }

    /// `loop.cycle(…)` and `loop.changed(…)`.
    pub(in crate::template::jinja) fn call(self: Rc<Self>, name: &str, arguments: Values) -> Result<Value> {
        if !arguments.named.is_empty() {
            return fault(format!("{name}() takes no keyword arguments"));
        }
        let items = arguments.positional;
        if name == "cycle" {
            if items.is_empty() {
                return fault("no items for cycling given");
            }
            let at = self.index.get().saturating_sub(1) % items.len();
            return Ok(items[at].clone());
        }
        for item in &items {
            self.extent.set(self.extent.get().deepened(item.extent())?);
        }
        let mut last = self.changed.borrow_mut();
        let same = last.as_ref().is_some_and(|last| {
            last.len() == items.len() && last.iter().zip(&items).all(|(last, item)| last.equals(item))
        });
        *last = Some(items);
        Ok(Value::Bool(!same))
    }
}

impl Interpreter {
    pub(super) fn for_loop(
        &mut self,
        node: &Arc<For>,
        scope: &Rc<Scope>,
        items: &Value,
        depth: usize,
        output: &mut String,
    ) -> Result<()> {
        let extent = Extent::default().with(items.extent())?;
        let length = match items {
            _ if node.condition.is_some() => None,
            Value::Iterator(_) => None,
            other => self.length(other).ok(),
        };
        let items = self.items(items)?;
        let length = length.or_else(|| node.condition.is_none().then_some(items.len()));
        let state = Rc::new(LoopState {
            node: node.clone(),
            scope: scope.clone(),
            rest: RefCell::new(items.into()),
            length: Cell::new(length),
            index: Cell::new(0),
            before: RefCell::default(),
            current: RefCell::default(),
            after: RefCell::default(),
            changed: RefCell::default(),
            depth,
            extent: Cell::new(extent),
        });
        let name: Text = "loop".into();
        // As in Jinja2, `else` is for a loop of which no turn came to its end.
        let mut ended = false;
        while let Some(item) = state.advance(self)? {
            self.spend(1)?;
            let inner = Scope::inside(scope)?;
            inner.set(&name, Value::Loop(state.clone()));
            self.assign(&node.target, item, &inner)?;
            match self.deeper(|run| run.body(&node.body, &inner, output))? {
                Flow::On => ended = true,
                Flow::Continue => {}
                Flow::Break => break,
            }
        }
        if !ended {
            let inner = Scope::inside(scope)?;
            self.deeper(|run| run.body(&node.otherwise, &inner, output))?;
        }
        Ok(())
    }

    /// `loop(…)`: the loop once more, over these items.
    pub(super) fn call_loop(&mut self, state: &LoopState, values: Values) -> Result<Value> {
        let [items] = values.bind("loop", ["iterable"])?;
        if !state.node.recursive {
            return fault("The loop must have the 'recursive' marker to be called recursively.");
        }
        let items = required(items, "loop")?;
        let mut text = String::new();
        let (node, scope, depth) = (state.node.clone(), state.scope.clone(), state.depth + 1);
        self.deeper(|run| run.for_loop(&node, &scope, &items, depth, &mut text))?;
        Ok(text.into())
    }
}

/// What the variables of a target hold; `item` is what they were taken from.
fn packed(target: &Target, item: Value, scope: &Scope) -> Result<Value> {
    match target {
        Target::Name(name) => Ok(scope.get(name).unwrap_or(item)),
        Target::Attribute(..) => Ok(item),
        Target::Tuple(targets) => {
            let items = targets.iter().map(|target| packed(target, Value::None, scope));
            Value::tuple(items.collect::<Result<_>>()?)
        }
    }
}
