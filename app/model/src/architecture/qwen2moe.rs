//! Qwen 1.5 and 2 with experts.

use super::{Description, Source};
use crate::{ModelError, RopePairs, SharedSpec};

pub(super) fn describe(source: &Source<'_>) -> Result<Description, ModelError> {
    source.softmax_only()?;
    let mut model = source.standard(RopePairs::Halves)?;
    for (_, experts) in model.experts() {
        experts.router.normalize = false;
        experts.shared = match source.shared(0)? {
            Some(shared) => Some(SharedSpec { gated: true, ..shared }),
            None => {
                let intermediate = source.keys.size("feed_forward_length", 1 << 20)?;
                Some(SharedSpec { intermediate, gated: true })
            }
        };
    }
    Ok(model)
}
