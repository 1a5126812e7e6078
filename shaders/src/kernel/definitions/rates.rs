//! Measurements of a device's rates.

use super::{Definition, Values};
use crate::kernel::Access::{Read, Write};
use crate::params::{self, Params};

pub fn stream() -> Definition {
    Definition {
        name: "stream".to_owned(),
        template: "stream",
        params: params::Stream::WGSL,
        bindings: vec![Read, Write],
        values: Values::none(),
    }
}

pub fn peak(dots: bool) -> Definition {
    Definition {
        name: format!("peak {}", if dots { "dot4I8Packed" } else { "fma" }),
        template: "peak",
        params: params::Peak::WGSL,
        bindings: vec![Write],
        values: Values::none().flags([("DOTS", dots)]),
    }
}
