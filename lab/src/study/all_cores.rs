//! Records conversations on all cores: each answer of the base, and each aligned shadow beside one, is a job of its own.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use potluck_plan::ExpertId;
use potluck_predict::Alignment;

use super::StudyError;
use super::on_cpu::OnCpu;
use super::runner::{Answer, Runner, follow};
use crate::routing::Sequence;

/// What to record, on the CPU.
pub struct OnAllCores<'a> {
    /// The model that answers, greedily.
    pub base: OnCpu,
    /// Others.
    pub shadows: Vec<OnCpu>,
    /// Which shadow is aligned how, one channel each.
    pub channels: &'a [(usize, Alignment)],
    /// Most tokens of an answer.
    pub max_tokens: u32,
}

/// A model that has answered, with its KV cache.
struct Answered {
    base: OnCpu,
    tokens: Vec<u32>,
}

enum Job {
    Answer(usize),
    Follow { prompt: usize, channel: usize, answered: Arc<Answered> },
}

/// Channels of a prompt from a place on.
type Part = (usize, usize, Vec<Vec<ExpertId>>);

impl OnAllCores<'_> {
    /// Records prompts as [`super::runner::Recording::record`] does. `done` gets the number of each prompt and its sequence once
    /// it is whole, in any order.
    ///
    /// # Errors
    /// The first error of a job or of `done`. What was done is kept.
    pub fn record(
        &self,
        prompts: &[Vec<u32>],
        is_end: impl Fn(u32) -> bool + Sync,
        mut done: impl FnMut(usize, Sequence) -> Result<(), StudyError>,
    ) -> Result<(), StudyError> {
        let jobs = Jobs::new(0..prompts.len());
        let (sender, parts) = channel();
        std::thread::scope(|scope| {
            for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
                let (sender, jobs, is_end) = (sender.clone(), &jobs, &is_end);
                scope.spawn(move || self.work(jobs, prompts, is_end, &sender));
            }
            drop(sender);
            let mut open = vec![Vec::new(); prompts.len()];
            let finished = parts.iter().try_for_each(|part: Result<Part, StudyError>| {
                let (prompt, first, experts) = part?;
                open[prompt].extend((first..).zip(experts));
                if open[prompt].len() == 1 + self.foresight() + self.channels.len() {
                    let mut channels = std::mem::take(&mut open[prompt]);
                    channels.sort_by_key(|(channel, _)| *channel);
                    let experts = channels.into_iter().map(|(_, experts)| experts).collect();
                    done(prompt, Sequence { prompt: prompts[prompt].len() as u32, experts })?;
                }
                Ok(())
            });
            jobs.abandon();
            finished
        })
    }

    fn foresight(&self) -> usize {
        self.base.foresight()
    }

    fn work(
        &self,
        jobs: &Jobs,
        prompts: &[Vec<u32>],
        is_end: &(impl Fn(u32) -> bool + Sync),
        sender: &Sender<Result<Part, StudyError>>,
    ) {
        while let Some(job) = jobs.next() {
            let part = match job {
                Job::Answer(prompt) => {
                    let mut base = self.base.fork();
                    let answer = Answer::of(&mut base, &prompts[prompt], self.max_tokens, is_end);
                    let part = answer.map(|Answer { tokens, said }| {
                        let answered = Arc::new(Answered { base, tokens });
                        let of = |channel| Job::Follow { prompt, channel, answered: answered.clone() };
                        jobs.add((0..self.channels.len()).map(of));
                        (prompt, 0, std::iter::once(said.experts).chain(said.early).collect())
                    });
                    jobs.answered();
                    part
                }
                Job::Follow { prompt, channel, answered } => {
                    let (shadow, alignment) = self.channels[channel];
                    let Answered { base, tokens } = &*answered;
                    let mut shadow = self.shadows[shadow].fork();
                    let experts = follow(&mut shadow, base, alignment, &prompts[prompt], tokens);
                    experts.map(|experts| (prompt, 1 + self.foresight() + channel, vec![experts]))
                }
            };
            // If nobody listens any more, there is nothing left to do.
            if sender.send(part).is_err() {
                break;
            }
        }
    }
}

/// Jobs in the order that ends conversations soonest: those of answers that are there come before the next answer.
struct Jobs {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    unasked: Range<usize>,
    follow: VecDeque<Job>,
    answering: usize,
}

impl Jobs {
    fn new(unasked: Range<usize>) -> Self {
        Self { state: Mutex::new(State { unasked, follow: VecDeque::new(), answering: 0 }), changed: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next job; waits while answers are under way that will bring some.
    fn next(&self) -> Option<Job> {
        let mut state = self.state();
        loop {
            if let Some(job) = state.follow.pop_front() {
                return Some(job);
            }
            if let Some(prompt) = state.unasked.next() {
                state.answering += 1;
                return Some(Job::Answer(prompt));
            }
            if state.answering == 0 {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn add(&self, jobs: impl Iterator<Item = Job>) {
        self.state().follow.extend(jobs);
    }

    fn answered(&self) {
        self.state().answering -= 1;
        self.changed.notify_all();
    }

    fn abandon(&self) {
        let mut state = self.state();
        state.unasked = 0..0;
        state.follow.clear();
    }
}
