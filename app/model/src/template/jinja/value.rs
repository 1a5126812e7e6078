//! Python's values, as far as a template can make them. Here: their kinds; in the submodules: what all of them can do.

mod compare;
mod dict;
mod drops;
mod extent;
mod repr;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use super::Result;
use super::interpreter::{LoopState, MacroValue};
pub(in crate::template) use dict::Dict;
pub(super) use drops::drop_flat;
pub(super) use extent::Extent;

/// A value.
#[derive(Clone)]
pub(in crate::template) enum Value {
    /// What Jinja2 says about the missing name.
    Undefined(Rc<str>),
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Str(Arc<str>),
    List(Rc<Sequence>),
    Tuple(Rc<Sequence>, TupleKind),
    Dict(Rc<Dict>),
    View(View, Rc<Dict>),
    Range(Range),
    /// A generator: what is left of it.
    Iterator(Rc<Generator>),
    Namespace(Rc<Namespace>),
    Loop(Rc<LoopState>),
    Macro(Rc<MacroValue>),
    Function(Function),
    /// A method of a value that was not called yet.
    Method(Rc<(Value, &'static str)>),
    Cycler(Rc<(Sequence, RefCell<usize>)>),
    Joiner(Rc<(Arc<str>, RefCell<bool>)>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::template) enum TupleKind {
    Plain,
    /// A pair of `groupby`, with the names `grouper` and `list`.
    Group,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::template) enum View {
    Keys,
    Values,
    Items,
}

/// `range(start, stop, step)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::template) struct Range {
    pub start: i64,
    pub stop: i64,
    pub step: i64,
}

impl Range {
    pub(super) fn len(self) -> usize {
        let (start, stop, step) = (i128::from(self.start), i128::from(self.stop), i128::from(self.step).abs());
        let span = if self.step > 0 { stop - start } else { start - stop };
        if span <= 0 { 0 } else { usize::try_from((span + step - 1) / step).unwrap_or(usize::MAX) }
    }

    pub(super) fn get(self, index: usize) -> Value {
        Value::Int(i128::from(self.start) + i128::from(self.step) * index as i128)
    }
}

/// Functions of the environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::template) enum Function {
    Range,
    Dict,
    Namespace,
    Cycler,
    Joiner,
    RaiseException,
    StrftimeNow,
}

/// Items with the depth of their nesting.
pub(in crate::template) struct Sequence {
    pub items: Vec<Value>,
    extent: Extent,
}

fn sequence(items: Vec<Value>) -> Result<Sequence> {
    let extent = Extent::of(&items)?;
    Ok(Sequence { items, extent })
}

/// What is left of the items, with the depth of the nesting of all.
pub(in crate::template) struct Generator {
    pub items: RefCell<VecDeque<Value>>,
    extent: Extent,
}

pub(in crate::template) struct Namespace {
    pub attributes: RefCell<Dict>,
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Str(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Str(text.into())
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<usize> for Value {
    fn from(value: usize) -> Self {
        Self::Int(value as i128)
    }
}

impl Value {
    pub(super) fn undefined(message: impl Into<String>) -> Self {
        Self::Undefined(message.into().into())
    }

    /// A list.
    pub(in crate::template) fn list(items: Vec<Self>) -> Result<Self> {
        Ok(Self::List(Rc::new(sequence(items)?)))
    }

    pub(super) fn tuple(items: Vec<Self>) -> Result<Self> {
        Ok(Self::Tuple(Rc::new(sequence(items)?), TupleKind::Plain))
    }

    pub(super) fn iterator(items: Vec<Self>) -> Result<Self> {
        let extent = Extent::of(&items)?;
        Ok(Self::Iterator(Rc::new(Generator { items: RefCell::new(items.into()), extent })))
    }

    pub(super) fn cycler(items: Vec<Self>) -> Result<Self> {
        Ok(Self::Cycler(Rc::new((sequence(items)?, RefCell::new(0)))))
    }

    /// A dict with text keys.
    pub(in crate::template) fn dict<'k>(pairs: impl IntoIterator<Item = (&'k str, Self)>) -> Result<Self> {
        let mut dict = Dict::default();
        for (name, value) in pairs {
            dict.insert(name.into(), value)?;
        }
        Ok(Self::Dict(Rc::new(dict)))
    }

    /// Where an object lies.
    pub(super) fn address(&self) -> usize {
        fn of<T: ?Sized>(object: &Rc<T>) -> usize {
            Rc::as_ptr(object).cast::<u8>() as usize
        }
        match self {
            Self::Str(text) => Arc::as_ptr(text).cast::<u8>() as usize,
            Self::List(items) | Self::Tuple(items, _) => of(items),
            Self::Dict(dict) | Self::View(_, dict) => of(dict),
            Self::Iterator(items) => of(items),
            Self::Namespace(namespace) => of(namespace),
            Self::Loop(state) => of(state),
            Self::Macro(closure) => of(closure),
            Self::Method(method) => of(method),
            Self::Cycler(cycler) => of(cycler),
            Self::Joiner(joiner) => of(joiner),
            Self::Function(function) => *function as usize,
            _ => 0,
        }
    }

    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Undefined(_) => "Undefined",
            Self::None => "NoneType",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Float(_) => "float",
            Self::Str(_) => "str",
            Self::List(_) => "list",
            Self::Tuple(..) => "tuple",
            Self::Dict(_) => "dict",
            Self::View(View::Keys, _) => "dict_keys",
            Self::View(View::Values, _) => "dict_values",
            Self::View(View::Items, _) => "dict_items",
            Self::Range(_) => "range",
            Self::Iterator(_) => "generator",
            Self::Namespace(_) => "Namespace",
            Self::Loop(_) => "LoopContext",
            Self::Macro(_) => "Macro",
            Self::Function(_) => "function",
            Self::Method(_) => "builtin_function_or_method",
            Self::Cycler(_) => "Cycler",
            Self::Joiner(_) => "Joiner",
        }
    }

    pub(super) fn is_true(&self) -> bool {
        match self {
            Self::Undefined(_) | Self::None => false,
            Self::Bool(value) => *value,
            Self::Int(value) => *value != 0,
            Self::Float(value) => *value != 0.0,
            Self::Str(text) => !text.is_empty(),
            Self::List(items) | Self::Tuple(items, _) => !items.items.is_empty(),
            Self::Dict(dict) | Self::View(_, dict) => dict.len() > 0,
            Self::Range(range) => range.len() > 0,
            _ => true,
        }
    }

    /// A number that counts as a whole one: Python's `bool` is one, too.
    pub(super) fn as_int(&self) -> Option<i128> {
        match self {
            Self::Bool(value) => Some(i128::from(*value)),
            Self::Int(value) => Some(*value),
            _ => None,
        }
    }

    pub(super) fn as_float(&self) -> Option<f64> {
        match self {
            Self::Float(value) => Some(*value),
            _ => self.as_int().map(|value| value as f64),
        }
    }

    pub(super) fn as_str(&self) -> Option<&str> {
        if let Self::Str(text) = self { Some(text) } else { None }
    }
}
