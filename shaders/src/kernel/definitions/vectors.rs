//! Steps between products: embedding, norms, additions, activations, factors.

use super::{Definition, Values, by};
use crate::Format;
use crate::kernel::Access::{Read, Write};
use crate::kernel::{Addition, Glu, Strategy};
use crate::params::{self, Params};

pub fn embed(format: Format) -> Definition {
    Definition {
        name: format!("embed {}", format.name()),
        template: "embed",
        params: params::Embed::WGSL,
        bindings: vec![Read, Read, Write],
        values: Values::none().with("FORMAT", format.name()),
    }
}

pub fn norm(strategy: Strategy) -> Definition {
    Definition {
        name: format!("norm {}", by(strategy)),
        template: "norm",
        params: params::Norm::WGSL,
        bindings: vec![Read, Read, Write],
        values: Values::none().with("STRATEGY", format!("{strategy:?}")),
    }
}

pub fn norm_part(strategy: Strategy) -> Definition {
    Definition {
        name: format!("norm of a part {}", by(strategy)),
        template: "norm_part",
        params: params::NormPart::WGSL,
        bindings: vec![Write, Read],
        values: Values::none().with("STRATEGY", format!("{strategy:?}")),
    }
}

pub fn residual(strategy: Strategy, addition: Addition) -> Definition {
    let values = Values::none().with("STRATEGY", format!("{strategy:?}"));
    let (bindings, values) = match addition {
        Addition::Scaled => (vec![Read, Write], values),
        Addition::Normed => (vec![Read, Write, Read], values.with("NORM", "")),
        Addition::Gated => (vec![Read, Write, Read], values.with("GATE", "")),
    };
    Definition {
        name: format!("residual {} {}", format!("{addition:?}").to_lowercase(), by(strategy)),
        template: "residual",
        params: params::Residual::WGSL,
        bindings,
        values,
    }
}

pub fn glu(glu: Glu) -> Definition {
    Definition {
        name: match glu {
            Glu::Silu => "swiglu".to_owned(),
            glu => format!("glu {}", format!("{glu:?}").to_lowercase()),
        },
        template: "glu",
        params: params::Glu::WGSL,
        bindings: vec![Read, Write],
        values: Values::none().with("GLU", format!("{glu:?}")),
    }
}

pub fn query_gates() -> Definition {
    Definition {
        name: "gates of queries".to_owned(),
        template: "query_gates",
        params: params::QueryGates::WGSL,
        bindings: vec![Read, Write],
        values: Values::none(),
    }
}

pub fn gate_input() -> Definition {
    Definition {
        name: "gated input of a block".to_owned(),
        template: "gate_input",
        params: params::GateInput::WGSL,
        bindings: vec![Read, Write],
        values: Values::none(),
    }
}

pub fn scale_logits() -> Definition {
    Definition {
        name: "scale of logits".to_owned(),
        template: "scale_logits",
        params: params::ScaleLogits::WGSL,
        bindings: vec![Write],
        values: Values::none(),
    }
}

pub fn scale_by(expert: bool) -> Definition {
    Definition {
        name: format!("factors of {}", if expert { "experts" } else { "rows" }),
        template: "scale_by",
        params: params::ScaleBy::WGSL,
        bindings: if expert { vec![Read, Write, Read] } else { vec![Read, Write] },
        values: Values::none().flags([("EXPERT", expert)]),
    }
}
