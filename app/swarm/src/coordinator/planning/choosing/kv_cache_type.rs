//! Choice of the KV cache type: the host's, or the largest automatic one that fits the room's memory.

use std::sync::Arc;

use potluck_plan::KvCacheType;

use crate::event::{HostCommand, OpenedModel};

/// Shorter contexts are not suggested.
const MIN_CONTEXT: u32 = 512;

/// The model with each KV cache type that may be planned with now, in order of preference. Changing the type means
/// that every device loads anew and every conversation is recomputed. So a running plan never gets a smaller type,
/// and a larger one only between answers.
pub(in crate::coordinator::planning) fn choices(
    model: &Arc<OpenedModel>,
    preferred: Option<KvCacheType>,
    running: Option<KvCacheType>,
    answering: bool,
) -> Vec<Arc<OpenedModel>> {
    let allowed = |kv_cache: KvCacheType| match (preferred, running) {
        (Some(preferred), _) => kv_cache == preferred,
        (None, Some(running)) if answering => kv_cache == running,
        (None, Some(running)) => kv_cache <= running,
        (None, None) => KvCacheType::AUTOMATIC.contains(&kv_cache),
    };
    let allowed = model.shapes.iter().filter(|shape| allowed(shape.kv_cache));
    allowed
        .map(|shape| match shape.kv_cache == model.shape.kv_cache {
            true => model.clone(),
            false => Arc::new(OpenedModel { shape: shape.clone(), ..OpenedModel::clone(model) }),
        })
        .collect()
}

/// Why the model cannot use the type that the host chose.
pub(in crate::coordinator::planning) fn refusal(model: &OpenedModel, preferred: Option<KvCacheType>) -> String {
    let names: Vec<&str> = model.shapes.iter().map(|shape| shape.kv_cache.name()).collect();
    format!(
        "This model's keys and values cannot be stored as {}. Choose {}, or let Potluck choose.",
        preferred.unwrap_or_default(),
        names.join(" or ")
    )
}

/// One sentence on what would fit the room as it is: a smaller KV cache type if the host chose a larger one, else a
/// shorter context, else a type that is chosen by hand only.
pub(in crate::coordinator::planning) fn what_would_fit(
    model: &OpenedModel,
    command: &HostCommand,
    fits: impl Fn(&OpenedModel, &HostCommand) -> bool,
) -> Option<String> {
    let smaller = model.shapes.iter().filter(|shape| shape.kv_cache > model.shape.kv_cache);
    let smaller = smaller.map(|shape| OpenedModel { shape: shape.clone(), ..model.clone() });
    let fitting_type = smaller.into_iter().find(|model| fits(model, command)).map(|model| model.shape.kv_cache);
    let with_type = |kv_cache| format!("With {kv_cache} keys and values it fits.");
    if let Some(kv_cache) = fitting_type.filter(|kv_cache| KvCacheType::AUTOMATIC.contains(kv_cache)) {
        return Some(with_type(kv_cache));
    }
    let shorter = std::iter::successors(Some(command.context / 2), |context| Some(context / 2));
    let shorter = shorter.take_while(|context| *context >= MIN_CONTEXT);
    let fitting =
        shorter.map(|context| HostCommand { context, ..command.clone() }).find(|command| fits(model, command));
    let shorter = fitting.map(|command| format!("A context of {} tokens fits.", command.context));
    shorter.or_else(|| fitting_type.map(with_type))
}
