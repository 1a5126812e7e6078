//! Cuts work with more tokens than fit scratch memory into pieces that run one after another, and joins their results.
//! A token's result does not depend on the cut.

use potluck_plan::{Input, LmHeadRequest, LmHeadTokens, Outcome, Task, Then};

/// Results of the pieces of one work, while they arrive.
#[derive(Debug)]
pub struct Joining {
    /// Pieces that are not answered yet.
    pub left: usize,
    so_far: Option<Outcome>,
    millis: f64,
}

/// Cuts a task into pieces of at most `max` tokens, in order.
pub fn cut(task: Task, max: usize) -> Vec<Task> {
    match task {
        Task::Forward { batch: rows, class, input, blocks, then } if rows.len() > max => {
            let count = rows.len();
            let width = if let Input::Hidden(values) = &input { values.len() / count } else { 1 };
            let piece = |first: usize| {
                let end = (first + max).min(count);
                let input = match &input {
                    Input::Tokens(tokens) => Input::Tokens(tokens[first..end].to_vec()),
                    Input::Hidden(values) => Input::Hidden(values[first * width..end * width].to_vec()),
                };
                let then = match then {
                    Then::LmHead(LmHeadRequest { tokens: LmHeadTokens::Last, .. }) if end < count => Then::Nothing,
                    then => then,
                };
                Task::Forward { batch: rows[first..end].to_vec(), class, input, blocks, then }
            };
            (0..count).step_by(max).map(piece).collect()
        }
        Task::Experts { block, class, normed, routes } if routes.len() > max => {
            let width = normed.len() / routes.len();
            let pieces = normed.chunks(width * max).zip(routes.chunks(max));
            pieces
                .map(|(normed, routes)| Task::Experts {
                    block,
                    class,
                    normed: normed.to_vec(),
                    routes: routes.to_vec(),
                })
                .collect()
        }
        whole => vec![whole],
    }
}

impl Joining {
    /// Expects `left` pieces.
    pub fn new(left: usize) -> Self {
        Self { left, so_far: None, millis: 0.0 }
    }

    /// Adds the next piece's result. After the last piece it returns the complete result and its total time.
    pub fn add(&mut self, outcome: Outcome, millis: f64) -> Option<(Outcome, f64)> {
        self.left = self.left.saturating_sub(1);
        self.millis = self.millis.max(millis);
        self.so_far = Some(match self.so_far.take() {
            None => outcome,
            Some(before) => join(before, outcome),
        });
        if self.left > 0 { None } else { self.so_far.take().map(|outcome| (outcome, self.millis)) }
    }
}

/// Joins the results of two consecutive pieces. The first failure wins.
fn join(first: Outcome, second: Outcome) -> Outcome {
    use Outcome::{Candidates, Done, Hidden, Logits, Routed, Sum};
    match (first, second) {
        (Done, outcome) => outcome,
        (Hidden(a), Hidden(b)) => Hidden([a, b].concat()),
        (Sum(a), Sum(b)) => Sum([a, b].concat()),
        (Logits(a), Logits(b)) => Logits([a, b].concat()),
        (Candidates(a), Candidates(b)) => Candidates([a, b].concat()),
        (
            Routed { residual: residual_a, normed: normed_a, routes: routes_a },
            Routed { residual: residual_b, normed: normed_b, routes: routes_b },
        ) => Routed {
            residual: [residual_a, residual_b].concat(),
            normed: [normed_a, normed_b].concat(),
            routes: [routes_a, routes_b].concat(),
        },
        (failure @ (Outcome::DeviceLost | Outcome::Cancelled | Outcome::Failed(_)), _) => failure,
        (_, outcome) => outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use potluck_plan::{BatchToken, BlockIndex, BlockRange, ConversationId, KernelClass, LogitsRequest, Position};

    fn forward(count: u32, input: Input, then: Then) -> Task {
        let rows = (0..count).map(|p| BatchToken { conversation: ConversationId(1), position: Position(p) }).collect();
        Task::Forward { batch: rows, class: KernelClass::Prefill, input, blocks: BlockRange::new(0, 1), then }
    }

    #[test]
    fn only_the_last_piece_has_the_last_head() {
        let head = Then::LmHead(LmHeadRequest { tokens: LmHeadTokens::Last, logits: LogitsRequest::Top(1) });
        let pieces = cut(forward(150, Input::Tokens((0..150).collect()), head), 64);
        let seen: Vec<_> = pieces
            .iter()
            .map(|piece| match piece {
                Task::Forward { batch: rows, input: Input::Tokens(tokens), then, .. } => (rows.len(), tokens[0], *then),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(seen, [(64, 0, Then::Nothing), (64, 64, Then::Nothing), (22, 128, head)]);
    }

    #[test]
    fn vectors_are_cut_at_rows_and_joined_again() {
        let values: Vec<f32> = (0..30).map(|v| v as f32).collect();
        let pieces = cut(forward(10, Input::Hidden(values.clone()), Then::Hidden), 4);
        let mut joining = Joining::new(pieces.len());
        let mut whole = None;
        for (millis, piece) in (1..).zip(pieces) {
            let Task::Forward { input: Input::Hidden(values), .. } = piece else { panic!("{piece:?}") };
            assert!(whole.is_none());
            whole = joining.add(Outcome::Hidden(values), f64::from(millis));
        }
        assert_eq!(whole, Some((Outcome::Hidden(values), 3.0)));
    }

    #[test]
    fn routes_stay_with_their_vectors() {
        let routes = vec![potluck_plan::Route { experts: vec![] }; 5];
        let task = Task::Experts { block: BlockIndex(0), class: KernelClass::Prefill, normed: vec![0.0; 40], routes };
        let sizes: Vec<_> = cut(task, 2)
            .iter()
            .map(|piece| match piece {
                Task::Experts { normed, routes, .. } => (normed.len(), routes.len()),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(sizes, [(16, 2), (16, 2), (8, 1)]);
    }

    #[test]
    fn one_failure_fails_all() {
        let mut joining = Joining::new(3);
        assert_eq!(joining.add(Outcome::Done, 1.0), None);
        assert_eq!(joining.add(Outcome::Failed("no".into()), 0.0), None);
        assert_eq!(joining.add(Outcome::Done, 0.0), Some((Outcome::Failed("no".into()), 1.0)));
    }
}
