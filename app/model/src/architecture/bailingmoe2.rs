//! Ling 2.0 and Ring 2.0.

use super::{Description, Source, dots1};
use crate::ModelError;

pub(super) fn describe(source: &Source<'_>) -> Result<Description, ModelError> {
    let mut model = dots1::describe(source)?;
    // The file's width is that of one shared expert.
    let count = source.keys.optional_u32("expert_shared_count")?.unwrap_or(1);
    for (_, experts) in model.experts() {
        let own = source.keys.nonzero_u32("expert_shared_feed_forward_length")?.unwrap_or(experts.intermediate);
        experts.shared = source.shared_of(own.saturating_mul(count))?;
    }
    Ok(model)
}
