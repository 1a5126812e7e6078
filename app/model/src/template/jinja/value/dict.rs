//! Dicts, which keep the order of their pairs, and what Python hashes.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::extent::Extent;
use super::{Value, View};
use crate::template::jinja::{Result, fault, number};

/// A dict, in the order of insertion.
#[derive(Clone, Default)]
pub(in crate::template) struct Dict {
    pairs: Vec<(Value, Value)>,
    index: FxHashMap<Key, usize>,
    pub(super) extent: Extent,
}

impl Dict {
    /// Adds a pair, or replaces the value of its key.
    pub(in crate::template) fn insert(&mut self, name: Value, value: Value) -> Result<()> {
        let extent = self.extent.with(value.extent())?.with(name.extent())?;
        match self.index.entry(key(&name)?) {
            Entry::Occupied(at) => {
                let old = std::mem::replace(&mut self.pairs[*at.get()].1, value);
                // What was there does not count any more.
                let weight = extent.weight.saturating_sub(old.extent().weight + name.extent().weight + 2);
                self.extent = Extent { depth: extent.depth, weight };
            }
            Entry::Vacant(at) => {
                at.insert(self.pairs.len());
                self.pairs.push((name, value));
                self.extent = extent;
            }
        }
        Ok(())
    }

    pub(in crate::template::jinja) fn get(&self, name: &Value) -> Result<Option<&Value>> {
        Ok(self.index.get(&key(name)?).map(|&at| &self.pairs[at].1))
    }

    pub(in crate::template::jinja) fn text(&self, name: &str) -> Option<&Value> {
        self.index.get(&Key::Str(name.into())).map(|&at| &self.pairs[at].1)
    }

    pub(in crate::template::jinja) fn pairs(&self) -> &[(Value, Value)] {
        &self.pairs
    }

    pub(super) fn into_values(self) -> impl Iterator<Item = Value> {
        self.pairs.into_iter().flat_map(|(name, value)| [name, value])
    }

    pub(in crate::template::jinja) fn len(&self) -> usize {
        self.pairs.len()
    }
}

/// What Python hashes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Undefined,
    None,
    Int(i128),
    Float(u64),
    Str(Arc<str>),
    Tuple(Vec<Key>),
    Range(i64, i64, i64),
    /// An object, by its address.
    Object(usize),
}

fn key(value: &Value) -> Result<Key> {
    Ok(match value {
        Value::Undefined(_) => Key::Undefined,
        Value::None => Key::None,
        Value::Bool(value) => Key::Int(i128::from(*value)),
        Value::Int(value) => Key::Int(*value),
        Value::Float(value) => number::whole(*value).map_or(Key::Float(value.to_bits()), Key::Int),
        Value::Str(text) => Key::Str(text.clone()),
        Value::Tuple(items, _) => Key::Tuple(items.items.iter().map(key).collect::<Result<_>>()?),
        Value::Range(range) => Key::Range(range.start, range.stop, range.step),
        Value::List(_) | Value::Dict(_) | Value::View(View::Keys | View::Items, _) => {
            return fault(format!("unhashable type: '{}'", value.type_name()));
        }
        other => Key::Object(other.address()),
    })
}
