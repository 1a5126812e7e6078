//! Routers, and what is done with the outputs of experts.

use super::{Definition, Values, by};
use crate::MAX_EXPERTS;
use crate::kernel::Access::{Read, Write};
use crate::kernel::{Kernel, Strategy};
use crate::params::{self, Params};

/// Sizes of a router that takes four probabilities at a time.
const QUADS: [(&str, u32); 2] = [("EXPERTS", MAX_EXPERTS), ("EXPERT_QUADS", MAX_EXPERTS.div_ceil(4))];

pub fn groups(strategy: Strategy, threads: u32) -> Definition {
    Definition {
        name: format!("groups {}", by(strategy)),
        template: match strategy {
            Strategy::PerThread => "groups_per_thread",
            Strategy::Workgroup => "groups",
        },
        params: params::Groups::WGSL,
        bindings: vec![Read, Read, Write, Write],
        values: Values::none().numbers([("EXPERTS", MAX_EXPERTS), ("BITMAPS", MAX_EXPERTS * threads / 32)]),
    }
}

pub fn router(strategy: Strategy) -> Definition {
    Definition {
        name: format!("router {}", by(strategy)),
        template: "router",
        params: params::Router::WGSL,
        bindings: vec![Read, Write, Write],
        values: Values::none().with("STRATEGY", format!("{strategy:?}")).numbers(QUADS),
    }
}

pub fn route() -> Definition {
    Definition {
        name: "router and norm".to_owned(),
        template: "route",
        params: params::Route::WGSL,
        bindings: vec![Read, Write, Write, Read, Read, Write, Read],
        values: Values::none().flags([("FACTORS", true)]).numbers(QUADS),
    }
}

pub fn choose(strategy: Strategy, sigmoid: bool, biased: bool) -> Definition {
    Definition {
        name: format!(
            "router by {}{} {}",
            if sigmoid { "sigmoid" } else { "softmax" },
            if biased { " with bias" } else { "" },
            by(strategy)
        ),
        template: "choose",
        params: params::Choose::WGSL,
        bindings: if biased { vec![Read, Write, Write, Read] } else { vec![Read, Write, Write] },
        values: Values::none()
            .with("STRATEGY", format!("{strategy:?}"))
            .numbers([("EXPERTS", MAX_EXPERTS), ("GROUPS", Kernel::MAX_GROUPS)])
            .flags([("SIGMOID", sigmoid), ("BIASED", biased)]),
    }
}

pub fn expert_bias() -> Definition {
    Definition {
        name: "bias of experts".to_owned(),
        template: "expert_bias",
        params: params::ExpertBias::WGSL,
        bindings: vec![Read, Write, Read, Read],
        values: Values::none(),
    }
}

pub fn combine() -> Definition {
    Definition {
        name: "combine".to_owned(),
        template: "combine",
        params: params::Combine::WGSL,
        bindings: vec![Read, Read, Read, Write],
        values: Values::none(),
    }
}

pub fn beside() -> Definition {
    Definition {
        name: "end of a block with a network beside experts".to_owned(),
        template: "beside",
        params: params::Beside::WGSL,
        bindings: vec![Read, Write, Write, Read, Read, Read, Read],
        values: Values::none(),
    }
}
