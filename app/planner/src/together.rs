//! Many conversations at once: their tokens pass the stages in groups. A group shares the reading of weights, messages and
//! the round trips for experts; groups pass one behind the other.

use potluck_plan::Plan;

use crate::Room;
use crate::cost::predict_batch;

/// How several conversations are expected to decode together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Together {
    /// Groups that pass the stages one behind the other.
    pub groups: u32,
    /// Milliseconds between two tokens of one conversation.
    pub token_millis: f64,
    /// Tokens a second, of all conversations.
    pub tokens_per_second: f64,
}

/// The decode rate of this many conversations under a plan, in the best number of groups: few share the most, many keep
/// all stages busy, also while others wait for experts elsewhere.
pub fn predict_together(room: &Room<'_>, plan: &Plan, conversations: u32) -> Together {
    let conversations = conversations.max(1);
    let most = conversations.min(plan.stages.len().max(1) as u32 + 1);
    let of = |groups: u32| {
        let prediction = predict_batch(room, plan, conversations.div_ceil(groups));
        let slowest = prediction.stages.iter().map(crate::StageCost::engine_millis).fold(0.0, f64::max);
        let token_millis = prediction.token_millis.max(slowest * f64::from(groups));
        Together { groups, token_millis, tokens_per_second: f64::from(conversations) * 1e3 / token_millis }
    };
    let first = of(1);
    (2..=most).map(of).fold(
        first,
        |best, next| {
            if next.tokens_per_second > best.tokens_per_second { next } else { best }
        },
    )
}
