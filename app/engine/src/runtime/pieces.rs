//! Cuts work with more tokens than fit scratch memory into pieces that run one after another, and joins their results.
//! A token's result does not depend on the cut.

use std::ops::Range;

use potluck_plan::{BiasedTokens, ExpertOutputs, Input, LmHeadRequest, LmHeadTokens, Outcome, Task, Then};

/// Results of the pieces of one work, while they arrive.
#[derive(Debug)]
pub struct Joining {
    /// Pieces that are not answered yet.
    pub left: usize,
    so_far: Option<Outcome>,
    millis: f64,
}

/// Number of tokens in a task.
pub fn rows_of(task: &Task) -> usize {
    match task {
        Task::Forward { batch: rows, .. } => rows.len(),
        Task::Continue { .. } => 1,
        Task::Experts { experts, .. } => experts.len(),
    }
}

/// Cuts a task into pieces of at most `max` tokens, in order.
pub fn cut(task: Task, max: usize) -> Vec<Task> {
    match task {
        Task::Forward { batch: rows, class, input, blocks, then, biases } if rows.len() > max => {
            let count = rows.len();
            let piece = |first: usize| {
                let end = (first + max).min(count);
                let input = part(&input, count, first..end);
                let then = match then {
                    Then::LmHead(LmHeadRequest { tokens: LmHeadTokens::Last, .. }) if end < count => Then::Nothing,
                    then => then,
                };
                let biases = BiasedTokens::within(&biases, &(first..end));
                Task::Forward { batch: rows[first..end].to_vec(), class, input, blocks, then, biases }
            };
            (0..count).step_by(max).map(piece).collect()
        }
        Task::Experts { block, class, normed, experts, sum } if experts.len() > max => {
            let width = normed.len() / experts.len();
            let mut sums = sum.as_ref().map(|sum| sum.chunks(max));
            let pieces = normed.chunks(width * max).zip(experts.chunks(max));
            pieces
                .map(|(normed, experts)| Task::Experts {
                    block,
                    class,
                    normed: normed.to_vec(),
                    experts: experts.to_vec(),
                    sum: sums.as_mut().map(|sums| sums.next().unwrap_or_default().to_vec()),
                })
                .collect()
        }
        whole => vec![whole],
    }
}

/// The input of some of `count` tokens.
fn part(input: &Input, count: usize, tokens: Range<usize>) -> Input {
    let vectors = |values: &[f32]| {
        let width = values.len() / count;
        values[tokens.start * width..tokens.end * width].to_vec()
    };
    match input {
        Input::Tokens(ids) => Input::Tokens(ids[tokens].to_vec()),
        Input::Hidden(values) => Input::Hidden(vectors(values)),
        Input::Experts(given) => {
            let pairs =
                |tokens: Range<usize>| given.routes[tokens].iter().map(|route| route.experts.len()).sum::<usize>();
            let width = given.residual.len() / count;
            let first = pairs(0..tokens.start) * width;
            let outputs = given.outputs[first..first + pairs(tokens.clone()) * width].to_vec();
            Input::Experts(ExpertOutputs {
                block: given.block,
                residual: vectors(&given.residual),
                routes: given.routes[tokens].to_vec(),
                outputs,
            })
        }
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
    use Outcome::{Candidates, Done, ExpertOutputs, Hidden, Logits, Routed};
    match (first, second) {
        (Done, outcome) => outcome,
        (Hidden(a), Hidden(b)) => Hidden([a, b].concat()),
        (ExpertOutputs(a), ExpertOutputs(b)) => ExpertOutputs([a, b].concat()),
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
        (failure @ (Outcome::DeviceLost | Outcome::Cancelled | Outcome::Failed(_) | Outcome::Missing { .. }), _) => {
            failure
        }
        (_, outcome) => outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use potluck_plan::{
        BatchToken, BlockIndex, BlockRange, ConversationId, ExpertId, ExpertRoute, KernelClass, LogitsRequest, Position,
    };

    fn forward(count: u32, input: Input, then: Then) -> Task {
        let rows = (0..count).map(|p| BatchToken { conversation: ConversationId(1), position: Position(p) }).collect();
        let (class, blocks, biases) = (KernelClass::Prefill, BlockRange::new(0, 1), Vec::new());
        Task::Forward { batch: rows, class, input, blocks, then, biases }
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
    fn experts_stay_with_their_vectors() {
        let experts = vec![vec![ExpertId(3)]; 5];
        let task = Task::Experts {
            block: BlockIndex(0),
            class: KernelClass::Prefill,
            normed: vec![0.0; 40],
            experts,
            sum: None,
        };
        let sizes: Vec<_> = cut(task, 2)
            .iter()
            .map(|piece| match piece {
                Task::Experts { normed, experts, .. } => (normed.len(), experts.len()),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(sizes, [(16, 2), (16, 2), (8, 1)]);
    }

    #[test]
    fn outputs_stay_with_the_tokens_whose_experts_gave_them() {
        // Four tokens of width 2 with 2, 0, 1 and 2 experts; output i of the five is [i, i].
        let route = |count: u16| ExpertRoute { experts: (0..count).map(|e| (ExpertId(e), 1.0)).collect() };
        let outputs = ExpertOutputs {
            block: BlockIndex(0),
            residual: (0..8).map(|v| v as f32).collect(),
            routes: [2, 0, 1, 2].map(route).to_vec(),
            outputs: (0..10).map(|v| (v / 2) as f32).collect(),
        };
        let pieces: Vec<_> = cut(forward(4, Input::Experts(outputs), Then::Hidden), 3)
            .into_iter()
            .map(|piece| match piece {
                Task::Forward { input: Input::Experts(given), .. } => {
                    (given.residual.len(), given.routes.len(), given.outputs)
                }
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(pieces, [(6, 3, vec![0.0, 0.0, 1.0, 1.0, 2.0, 2.0]), (2, 1, vec![3.0, 3.0, 4.0, 4.0])]);
    }

    #[test]
    fn one_failure_fails_all() {
        let mut joining = Joining::new(3);
        assert_eq!(joining.add(Outcome::Done, 1.0), None);
        assert_eq!(joining.add(Outcome::Failed("no".into()), 0.0), None);
        assert_eq!(joining.add(Outcome::Done, 0.0), Some((Outcome::Failed("no".into()), 1.0)));
    }
}
