//! One piece of engine work for several jobs, and its result split up again.

use potluck_plan::{
    BatchToken, BiasedTokens, Candidates, ExpertOutputs, FirstToken, Input, LmHeadRequest, LmHeadTokens, LogitBias,
    Outcome, Position, Task, Then,
};

use super::queue::Job;
use crate::own_biases::OwnBiases;

/// The batch of all jobs, in order.
pub(super) fn batch(jobs: &[Job]) -> Vec<BatchToken> {
    let rows = jobs.iter().flat_map(|job| {
        let (conversation, base) = (job.on_engine, job.forward.base.0);
        (0..job.forward.count).map(move |i| BatchToken { conversation, position: Position(base + i) })
    });
    rows.collect()
}

/// Multi-step decode, if the job asks for further steps.
pub(super) fn continuation(job: &Job) -> Option<Task> {
    let (forward, steps) = (&job.forward, job.forward.further_steps.saturating_add(1));
    match forward.tokens[..] {
        [token] if steps > 1 => {
            let row = BatchToken { conversation: job.on_engine, position: forward.base };
            Some(Task::Continue { row, token: FirstToken::Given(token), steps, sampling: forward.sampling.clone() })
        }
        _ => None,
    }
}

/// Input of the batch. Jobs that run together start at the same block.
pub(super) fn input(inputs: Vec<Input>) -> Input {
    let mut inputs = inputs.into_iter();
    let mut all = inputs.next().unwrap_or(Input::Tokens(Vec::new()));
    for input in inputs {
        match (&mut all, input) {
            (Input::Tokens(all), Input::Tokens(tokens)) => all.extend(tokens),
            (Input::Hidden(all), Input::Hidden(hidden)) => all.extend(hidden),
            (Input::Experts(all), Input::Experts(part)) if all.block == part.block => {
                all.residual.extend(part.residual);
                all.routes.extend(part.routes);
                all.outputs.extend(part.outputs);
            }
            // The engine refuses tokens and vectors that do not match.
            _ => {}
        }
    }
    all
}

/// What follows the last block: one job gets what it asked for; several get logits of every token, which are split
/// later.
pub(super) fn lm_head(jobs: &[Job]) -> Then {
    let both = |a: LmHeadRequest, b: LmHeadRequest| match a.logits.of_both(b.logits) {
        Some(logits) => LmHeadRequest { tokens: LmHeadTokens::All, logits },
        None => a,
    };
    jobs.iter().filter_map(|job| job.forward.lm_head).reduce(both).map_or(Then::Nothing, Then::LmHead)
}

/// What is added to the logits of each job's tokens, and which tokens may be chosen. `own`: what the host's device knows without having
/// been sent it.
pub(super) fn biases(jobs: &[Job], own: Option<&OwnBiases>) -> Vec<BiasedTokens> {
    let mut end = 0;
    let all = jobs.iter().flat_map(|job| {
        let tokens = end..end + job.forward.count;
        end = tokens.end;
        let (bias, allowed) = match own {
            // Where the LM head is the host's, only the host's own word counts: other stages have none of it.
            Some(own) if job.forward.lm_head.is_some() => own.of(job.forward.conversation),
            Some(_) => (LogitBias::default(), Vec::new()),
            None => (job.forward.bias.clone(), job.forward.allowed.clone()),
        };
        // One for each of the last tokens: those before do not pass the LM head.
        let first = tokens.end.saturating_sub(allowed.len() as u32).max(tokens.start);
        let before = BiasedTokens { tokens: tokens.start..first, bias: bias.clone(), allowed: None };
        let masked = (first..tokens.end).zip(allowed).map(|(token, allowed)| {
            let allowed = (!allowed.are_all()).then_some(allowed);
            BiasedTokens { tokens: token..token + 1, bias: bias.clone(), allowed }
        });
        [before].into_iter().chain(masked).collect::<Vec<_>>()
    });
    all.filter(|biased| !biased.tokens.is_empty() && (!biased.bias.is_empty() || biased.allowed.is_some())).collect()
}

/// Each job's part of the result; `None` if it does not fit them.
pub(super) fn split(jobs: &[Job], outcome: Outcome) -> Option<Vec<Outcome>> {
    if jobs.len() == 1 {
        return Some(vec![outcome]);
    }
    let counts: Vec<usize> = jobs.iter().map(|job| job.forward.count as usize).collect();
    let total: usize = counts.iter().sum();
    match outcome {
        Outcome::Hidden(hidden) => cut(hidden, &counts).map(|parts| parts.into_iter().map(Outcome::Hidden).collect()),
        Outcome::Candidates(rows) if rows.len() == total => cut(rows, &counts).map(|parts| {
            let asked = |(job, mut rows): (&Job, Vec<Candidates>)| {
                if let Some(LmHeadRequest { tokens: LmHeadTokens::Last, .. }) = job.forward.lm_head {
                    rows.drain(..rows.len().saturating_sub(1));
                }
                if let Some(LmHeadRequest { logits, .. }) = job.forward.lm_head {
                    rows.iter_mut().for_each(|row| row.cut(logits));
                }
                Outcome::Candidates(rows)
            };
            jobs.iter().zip(parts).map(asked).collect()
        }),
        same @ (Outcome::Done | Outcome::DeviceLost | Outcome::Cancelled | Outcome::Failed(_)) => {
            Some(vec![same; jobs.len()])
        }
        _ => None,
    }
}

/// The parts of each job of what experts have computed for a batch.
pub(super) fn split_experts(all: ExpertOutputs, counts: &[usize], width: usize) -> Vec<ExpertOutputs> {
    if let [_] = counts {
        return vec![all];
    }
    let ExpertOutputs { block, residual, routes, outputs } = all;
    let (mut residual, mut routes, mut outputs) = (residual.into_iter(), routes.into_iter(), outputs.into_iter());
    let part = |count: &usize| {
        let routes: Vec<_> = routes.by_ref().take(*count).collect();
        let pairs: usize = routes.iter().map(|route| route.experts.len()).sum();
        let residual = residual.by_ref().take(count * width).collect();
        ExpertOutputs { block, residual, routes, outputs: outputs.by_ref().take(pairs * width).collect() }
    };
    counts.iter().map(part).collect()
}

/// Splits a matrix of `counts.sum()` rows into the rows of each job.
fn cut<T>(mut values: Vec<T>, counts: &[usize]) -> Option<Vec<Vec<T>>> {
    let total: usize = counts.iter().sum();
    if total == 0 || !values.len().is_multiple_of(total) {
        return None;
    }
    let width = values.len() / total;
    let mut parts: Vec<Vec<T>> =
        counts.iter().rev().map(|count| values.split_off(values.len() - count * width)).collect();
    parts.reverse();
    Some(parts)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use potluck_plan::{
        AllowedTokens, BlockIndex, ConversationId, ExpertId, ExpertRoute, KernelClass, LogitBias, LogitsRequest,
        PlanEpoch, StageId, WireType,
    };
    use potluck_protocol::{Forward, PassId};

    use super::*;

    fn job(conversation: u32, base: u32, rows: usize, lm_head: LmHeadRequest) -> Job {
        let forward = Forward {
            epoch: PlanEpoch(1),
            stage: StageId(0),
            pass: PassId(1),
            live: Vec::new(),
            conversation: ConversationId(conversation),
            base: Position(base),
            class: KernelClass::Decode,
            count: rows as u32,
            tokens: vec![5; rows],
            further_steps: 0,
            sampling: None,
            lm_head: Some(lm_head),
            bias: LogitBias::default(),
            allowed: Vec::new(),
            stage_millis: Vec::new(),
            wire: WireType::F32,
            hidden: Vec::new(),
        };
        Job::new(forward, ConversationId(conversation), 0)
    }

    fn candidates(id: u32) -> Candidates {
        Candidates { ids: vec![id, 0], logits: vec![1.0, 0.0], sampled: None, log_sum_exp: None }
    }

    #[test]
    fn each_job_gets_the_candidates_it_asked_for() {
        let last = LmHeadRequest { tokens: LmHeadTokens::Last, logits: LogitsRequest::Top(1) };
        let all = LmHeadRequest { tokens: LmHeadTokens::All, logits: LogitsRequest::Top(128) };
        let jobs = [job(1, 7, 2, last), job(2, 3, 3, all)];
        assert_eq!(
            lm_head(&jobs),
            Then::LmHead(LmHeadRequest { tokens: LmHeadTokens::All, logits: LogitsRequest::Top(128) })
        );
        let positions: Vec<(u32, u32)> = batch(&jobs).iter().map(|row| (row.conversation.0, row.position.0)).collect();
        assert_eq!(positions, [(1, 7), (1, 8), (2, 3), (2, 4), (2, 5)]);
        let parts = split(&jobs, Outcome::Candidates((10..15).map(candidates).collect()));
        let first = Candidates { ids: vec![11], logits: vec![1.0], sampled: None, log_sum_exp: None };
        let second = (12..15).map(candidates).collect();
        assert_eq!(parts, Some(vec![Outcome::Candidates(vec![first]), Outcome::Candidates(second)]));
    }

    #[test]
    fn each_job_has_its_own_bias_and_its_sum_if_it_asked_for_one() {
        let last = |logits| LmHeadRequest { tokens: LmHeadTokens::Last, logits };
        let [summed, plain] = [LogitsRequest::TopWithSum(1), LogitsRequest::Top(2)].map(last);
        let mut jobs = [job(1, 7, 2, plain), job(2, 3, 1, summed), job(3, 0, 3, plain)];
        let bias = LogitBias::new([(4, 2.0)]).unwrap();
        jobs[1].forward.bias = bias.clone();
        let plain = |tokens| BiasedTokens { tokens, bias: bias.clone(), allowed: None };
        assert_eq!(biases(&jobs, None), [plain(2..3)], "nobody else's tokens");
        let mut own = OwnBiases::default();
        own.put(ConversationId(3), bias.clone(), Vec::new());
        let of_host = plain(3..6);
        assert_eq!(
            biases(&jobs, Some(&own)),
            [of_host],
            "what the host keeps for itself, and nothing that came in a frame"
        );
        assert_eq!(
            lm_head(&jobs),
            Then::LmHead(LmHeadRequest { tokens: LmHeadTokens::All, logits: LogitsRequest::TopWithSum(2) })
        );
        let all = (10..16).map(|id| Candidates { log_sum_exp: Some(1.5), ..candidates(id) });
        let parts = split(&jobs, Outcome::Candidates(all.collect())).unwrap();
        let one = Candidates { ids: vec![12], logits: vec![1.0], sampled: None, log_sum_exp: Some(1.5) };
        let expected = [candidates(11), one, candidates(15)].map(|best| Outcome::Candidates(vec![best]));
        assert_eq!(parts, expected);
    }

    #[test]
    fn each_of_the_last_tokens_has_its_own_choice() {
        let last = |logits| LmHeadRequest { tokens: LmHeadTokens::Last, logits };
        let mut jobs = [LogitsRequest::Top(1), LogitsRequest::Top(2)].map(|logits| job(1, 7, 3, last(logits)));
        let only = |token| AllowedTokens::only(9, [token]).unwrap();
        jobs[0].forward.allowed = vec![only(4)];
        jobs[1].forward.allowed = vec![only(5), AllowedTokens::all(9).unwrap(), only(6)];
        let of = |tokens, token| BiasedTokens { tokens, bias: LogitBias::default(), allowed: Some(only(token)) };
        assert_eq!(biases(&jobs, None), [of(2..3, 4), of(3..4, 5), of(5..6, 6)], "all tokens need no mask");
        // More than tokens are of no token.
        jobs[0].forward.allowed = vec![only(1); 9];
        assert_eq!(biases(&jobs[..1], None), [of(0..1, 1), of(1..2, 1), of(2..3, 1)]);
        jobs[0].forward.bias = LogitBias::new([(4, 2.0)]).unwrap();
        jobs[0].forward.allowed = vec![only(4)];
        let with_bias = |tokens, allowed| BiasedTokens { tokens, bias: jobs[0].forward.bias.clone(), allowed };
        assert_eq!(biases(&jobs[..1], None), [with_bias(0..2, None), with_bias(2..3, Some(only(4)))]);
    }

    #[test]
    fn hidden_vectors_are_split_by_job() {
        let last = LmHeadRequest { tokens: LmHeadTokens::Last, logits: LogitsRequest::Top(1) };
        let jobs = [job(1, 0, 1, last), job(2, 0, 2, last)];
        let parts = split(&jobs, Outcome::Hidden(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
        assert_eq!(parts, Some(vec![Outcome::Hidden(vec![1.0, 2.0]), Outcome::Hidden(vec![3.0, 4.0, 5.0, 6.0])]));
    }

    #[test]
    fn what_experts_computed_is_split_by_job_and_joined_again() {
        let route = |experts: &[u16]| ExpertRoute { experts: experts.iter().map(|id| (ExpertId(*id), 0.5)).collect() };
        let all = ExpertOutputs {
            block: BlockIndex(3),
            residual: (0..6).map(|value| value as f32).collect(),
            routes: vec![route(&[1]), route(&[2, 0]), route(&[1, 2])],
            outputs: (10..20).map(|value| value as f32).collect(),
        };
        assert_eq!(split_experts(all.clone(), &[3], 2), std::slice::from_ref(&all));
        let parts = split_experts(all.clone(), &[1, 2], 2);
        assert_eq!(parts[0].outputs, [10.0, 11.0], "the first token has one expert");
        assert_eq!((parts[1].residual.len(), parts[1].outputs.len()), (4, 8));
        assert_eq!(input(parts.into_iter().map(Input::Experts).collect()), Input::Experts(all));
    }

    #[test]
    fn a_result_of_the_wrong_size_fits_no_job() {
        let last = LmHeadRequest { tokens: LmHeadTokens::Last, logits: LogitsRequest::Top(1) };
        let jobs = [job(1, 0, 1, last), job(2, 0, 2, last)];
        for wrong in [Outcome::Hidden(vec![1.0; 4]), Outcome::Candidates(vec![candidates(1)])] {
            assert_eq!(split(&jobs, wrong), None);
        }
    }
}
