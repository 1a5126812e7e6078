//! Pages of KV cache: how many conversations take, on a device and in the host's books alike.

use potluck_plan::{KV_PAGE_TOKENS, Plan, STATE_CONVERSATIONS};

const PAGE: usize = KV_PAGE_TOKENS as usize;

/// Pages for this many positions.
pub(crate) fn pages(positions: usize) -> usize {
    positions.div_ceil(PAGE)
}

/// Positions left in the page that the position before `end` lies in.
pub(crate) fn left_in_page(end: usize) -> usize {
    pages(end) * PAGE - end
}

/// Pages that all conversations of a plan share. The host promises that they fit, and that each takes one at least.
pub(crate) fn of_plan(plan: &Plan) -> usize {
    pages(plan.context as usize).max(1)
}

/// Pages that a conversation takes at least of a context. There are few recurrent states, and pages are what is shared
/// out among conversations, so each then takes so many that no more fit than there are states.
pub(crate) fn least_pages(recurrent: bool, context: usize) -> usize {
    if !recurrent {
        return 1;
    }
    let (total, states) = (pages(context), STATE_CONVERSATIONS as usize);
    let share = total / states;
    if (states + 1) * share > total { share } else { total.div_ceil(states) }.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_conversations_have_pages_than_there_are_recurrent_states() {
        for context in [64, 200, 256, 300, 448, 4096, 4160, 100_000] {
            let (total, least) = (pages(context), least_pages(true, context));
            let fitting = total / least;
            assert!((1..=STATE_CONVERSATIONS as usize).contains(&fitting), "{fitting} fit in {context} positions");
        }
        assert_eq!(4096 / PAGE / least_pages(true, 4096), STATE_CONVERSATIONS as usize);
    }
}
