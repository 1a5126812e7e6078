//! How much a value holds. Its depth is bounded for what recurs over it, its size for what is printed or compared at once.

use super::Value;
use crate::template::jinja::{Fault, Result};

/// Deepest nesting of lists and dicts. JSON has at most 128.
pub(super) const MAX_DEPTH: u16 = 200;

/// Largest value, in items and in sixteenths of a text's bytes: what is printed or compared at once.
const MAX_WEIGHT: u32 = 8 << 20;

/// How much a value holds, shared parts counted each time.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::template::jinja) struct Extent {
    pub(super) depth: u16,
    pub(in crate::template::jinja) weight: u32,
}

impl Extent {
    /// Of what holds `self` and one thing more.
    pub(in crate::template::jinja) fn with(self, item: Self) -> Result<Self> {
        let depth = self.depth.max(item.depth + 1);
        let weight = self.weight.saturating_add(item.weight).saturating_add(1);
        if depth > MAX_DEPTH || weight > MAX_WEIGHT { Err(Fault::Runaway) } else { Ok(Self { depth, weight }) }
    }

    /// The same with what it may hold for a while.
    pub(in crate::template::jinja) fn deepened(self, item: Self) -> Result<Self> {
        Ok(Self { depth: self.with(item)?.depth, ..self })
    }

    pub(super) fn of(items: &[Value]) -> Result<Self> {
        items.iter().try_fold(Self { depth: 1, weight: 1 }, |extent, item| extent.with(item.extent()))
    }
}

impl Value {
    pub(in crate::template::jinja) fn extent(&self) -> Extent {
        match self {
            Self::Str(text) => Extent { depth: 0, weight: u32::try_from(text.len() / 16).unwrap_or(u32::MAX) },
            Self::List(items) | Self::Tuple(items, _) => items.extent,
            Self::Dict(dict) | Self::View(_, dict) => dict.extent,
            Self::Namespace(namespace) => namespace.attributes.try_borrow().map(|dict| dict.extent).unwrap_or_default(),
            Self::Iterator(items) => items.extent,
            Self::Cycler(cycler) => cycler.0.extent,
            Self::Loop(state) => state.extent(),
            Self::Joiner(joiner) => Self::Str(joiner.0.clone()).extent(),
            Self::Method(method) => {
                let of = method.0.extent();
                Extent { depth: of.depth + 1, weight: of.weight.saturating_add(1) }
            }
            Self::Macro(closure) => Extent { depth: closure.depth, weight: 1 },
            _ => Extent::default(),
        }
    }
}
