//! From logits to a token.

use super::{Definition, Values, by};
use crate::kernel::Access::{Read, Write};
use crate::kernel::Strategy;
use crate::params::{self, Params};

pub fn segments(strategy: Strategy) -> Definition {
    Definition {
        name: format!("segments {}", by(strategy)),
        template: "segments",
        params: params::Segments::WGSL,
        bindings: vec![Read, Write],
        values: Values::none().with("STRATEGY", format!("{strategy:?}")),
    }
}

pub fn top(strategy: Strategy) -> Definition {
    Definition {
        name: format!("top {}", by(strategy)),
        template: "top",
        params: params::Top::WGSL,
        bindings: vec![Read, Write, Write, Write],
        values: Values::none().with("STRATEGY", format!("{strategy:?}")),
    }
}

pub fn sample() -> Definition {
    Definition {
        name: "sample".to_owned(),
        template: "sample",
        params: params::Sample::WGSL,
        bindings: vec![Write, Read, Write, Write],
        values: Values::none(),
    }
}

pub fn bias_logits() -> Definition {
    Definition {
        name: "bias of logits".to_owned(),
        template: "bias_logits",
        params: params::BiasLogits::WGSL,
        bindings: vec![Read, Write],
        values: Values::none(),
    }
}

pub fn mask_logits() -> Definition {
    Definition {
        name: "mask of logits".to_owned(),
        template: "mask_logits",
        params: params::MaskLogits::WGSL,
        bindings: vec![Read, Write],
        values: Values::none(),
    }
}

pub fn log_sum_exp(strategy: Strategy) -> Definition {
    Definition {
        name: format!("log-sum-exp {}", by(strategy)),
        template: "log_sum_exp",
        params: params::LogSumExp::WGSL,
        bindings: vec![Read, Write],
        values: Values::none().with("STRATEGY", format!("{strategy:?}")),
    }
}
