//! Records what routers choose along an answer: the base model's, and those of shadows beside it (od-moe.txt 3.2).

use potluck_model::{FeedForwardSpec, ModelSpec};
use potluck_plan::ExpertId;
use potluck_predict::{Alignment, TraceShape};

use super::StudyError;
use crate::routing::Sequence;

/// What came of appending tokens to a conversation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Appended {
    /// What the routers chose: tokens × blocks with experts × experts a token, in router order.
    pub experts: Vec<ExpertId>,
    /// What the same routers would have chosen earlier: `early[n]` on the output of `n + 1` blocks before. Empty if this
    /// runner does not know.
    pub early: Vec<Vec<ExpertId>>,
    /// The best next token.
    pub next: u32,
}

/// A model with one conversation.
pub trait Runner: Sized {
    /// Forgets the conversation.
    fn restart(&mut self);

    /// Appends tokens, at least one.
    ///
    /// # Errors
    /// The device is lost.
    fn append(&mut self, tokens: &[u32]) -> Result<Appended, StudyError>;

    /// Takes over the base's KV cache as far as both have positions.
    ///
    /// # Errors
    /// [`StudyError::NoKvAlignment`].
    fn align_kv(&mut self, base: &Self) -> Result<(), StudyError>;

    /// Blocks ahead for which [`Appended::early`] says something.
    fn foresight(&self) -> usize;
}

/// What to record of a conversation.
pub struct Recording<'a, R> {
    /// The model that answers, greedily.
    pub base: &'a mut R,
    /// Others.
    pub shadows: &'a mut [R],
    /// Which shadow is aligned how, one channel each.
    pub channels: &'a [(usize, Alignment)],
    /// Most tokens of the answer.
    pub max_tokens: u32,
}

impl<R: Runner> Recording<'_, R> {
    /// Records a prompt and its answer: a channel for the base, one for each block of its foresight, one for each aligned
    /// shadow. The answer ends before the token for which `is_end` holds.
    ///
    /// # Errors
    /// A runner fails.
    pub fn record(&mut self, prompt: &[u32], is_end: impl Fn(u32) -> bool) -> Result<Sequence, StudyError> {
        let answer = Answer::of(self.base, prompt, self.max_tokens, is_end)?;
        let mut experts = vec![answer.said.experts];
        experts.extend(answer.said.early);
        for &(shadow, alignment) in self.channels {
            experts.push(follow(&mut self.shadows[shadow], self.base, alignment, prompt, &answer.tokens)?);
        }
        Ok(Sequence { prompt: prompt.len() as u32, experts })
    }
}

/// The base's answer, and all that was appended for it.
pub struct Answer {
    /// The answer.
    pub tokens: Vec<u32>,
    /// What the routers chose for the prompt and the answer.
    pub said: Appended,
}

impl Answer {
    /// Answers a prompt greedily, in a new conversation, up to the token for which `is_end` holds.
    ///
    /// # Errors
    /// The runner fails.
    pub fn of<R: Runner>(
        base: &mut R,
        prompt: &[u32],
        max_tokens: u32,
        is_end: impl Fn(u32) -> bool,
    ) -> Result<Self, StudyError> {
        base.restart();
        let mut said = base.append(prompt)?;
        let mut tokens = Vec::new();
        while tokens.len() < max_tokens as usize && !is_end(said.next) {
            tokens.push(said.next);
            let step = base.append(&[said.next])?;
            said.experts.extend(step.experts);
            said.early.iter_mut().zip(step.early).for_each(|(all, new)| all.extend(new));
            said.next = step.next;
        }
        Ok(Self { tokens, said })
    }
}

/// What a shadow's routers choose beside the answer of a base, which has said all of it.
///
/// # Errors
/// A runner fails.
pub fn follow<R: Runner>(
    shadow: &mut R,
    base: &R,
    alignment: Alignment,
    prompt: &[u32],
    answer: &[u32],
) -> Result<Vec<ExpertId>, StudyError> {
    shadow.restart();
    let mut step = shadow.append(prompt)?;
    let mut experts = std::mem::take(&mut step.experts);
    for (index, &token) in (0..).zip(answer) {
        if alignment.takes_kv(index) {
            shadow.align_kv(base)?;
        }
        step = shadow.append(&[if alignment.takes_token(index) { token } else { step.next }])?;
        experts.append(&mut step.experts);
    }
    Ok(experts)
}

/// The sizes of a model's routing, if all blocks with experts agree.
pub fn shape_of(spec: &ModelSpec) -> Option<TraceShape> {
    let sizes = spec.blocks.iter().filter_map(|block| match &block.feed_forward {
        FeedForwardSpec::Experts(experts) => Some((experts.count, experts.used)),
        FeedForwardSpec::Dense(_) => None,
    });
    let sizes: Vec<(u32, u32)> = sizes.collect();
    let &(experts, used) = sizes.first()?;
    let shape = TraceShape {
        blocks: u16::try_from(sizes.len()).ok()?,
        experts: u16::try_from(experts).ok()?,
        used: u8::try_from(used).ok()?,
    };
    sizes.iter().all(|size| *size == (experts, used)).then_some(shape)
}
