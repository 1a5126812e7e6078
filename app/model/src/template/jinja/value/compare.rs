//! `==` and `<` of values.

use std::cmp::Ordering;

use super::{Value, View};
use crate::template::jinja::{Result, fault};

impl Value {
    /// `==`.
    pub(in crate::template::jinja) fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Undefined(_), Self::Undefined(_)) | (Self::None, Self::None) => true,
            (Self::Str(a), Self::Str(b)) => a == b,
            (Self::List(a), Self::List(b)) | (Self::Tuple(a, _), Self::Tuple(b, _)) => {
                a.items.len() == b.items.len() && a.items.iter().zip(&b.items).all(|(a, b)| a.equals(b))
            }
            (Self::Dict(a), Self::Dict(b)) => {
                let same =
                    |(name, value): &(Self, Self)| b.get(name).ok().flatten().is_some_and(|other| value.equals(other));
                a.len() == b.len() && a.pairs().iter().all(same)
            }
            (Self::Range(a), Self::Range(b)) => {
                a.len() == b.len() && (0..a.len().min(2)).all(|at| a.get(at).equals(&b.get(at)))
            }
            (Self::View(View::Keys, a), Self::View(View::Keys, b)) => {
                a.len() == b.len() && a.pairs().iter().all(|(name, _)| b.get(name).is_ok_and(|found| found.is_some()))
            }
            (Self::Method(a), Self::Method(b)) => a.1 == b.1 && a.0.address() == b.0.address(),
            _ => match (self.as_int(), other.as_int()) {
                (Some(a), Some(b)) => a == b,
                _ => match (self.as_float(), other.as_float()) {
                    (Some(a), Some(b)) => a == b,
                    (None, None) => {
                        std::mem::discriminant(self) == std::mem::discriminant(other)
                            && self.address() == other.address()
                            && self.address() != 0
                    }
                    _ => false,
                },
            },
        }
    }

    /// The order of two values, `None` if one is not a number.
    pub(in crate::template::jinja) fn compare(&self, other: &Self, operator: &str) -> Result<Option<Ordering>> {
        match (self, other) {
            (Self::Undefined(message), _) | (_, Self::Undefined(message)) => fault(&**message),
            (Self::Str(a), Self::Str(b)) => Ok(Some(a.cmp(b))),
            (Self::List(a), Self::List(b)) | (Self::Tuple(a, _), Self::Tuple(b, _)) => {
                match a.items.iter().zip(&b.items).find(|(a, b)| !a.equals(b)) {
                    Some((a, b)) => a.compare(b, operator),
                    None => Ok(Some(a.items.len().cmp(&b.items.len()))),
                }
            }
            _ => match (self.as_int(), other.as_int(), self.as_float(), other.as_float()) {
                (Some(a), Some(b), ..) => Ok(Some(a.cmp(&b))),
                (_, _, Some(a), Some(b)) => Ok(a.partial_cmp(&b)),
                _ => fault(format!(
                    "'{operator}' not supported between instances of '{}' and '{}'",
                    self.type_name(),
                    other.type_name()
                )),
            },
        }
    }
}
