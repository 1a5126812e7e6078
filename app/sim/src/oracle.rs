//! The reference: what one undisturbed device would answer.

use potluck_plan::{
    AllowedTokens, BatchToken, BiasedTokens, BlockRange, Candidates, ConversationId, Input, KernelClass, LmHeadRequest,
    LmHeadTokens, LogitBias, LogitsRequest, Outcome, PooledExperts, Position, Task, Then, Ticket, WeightUnit, Work,
};
use potluck_swarm::Language;

use super::engine::{SimEngine, SimModel};
use super::language::{Bytewise, formed, sampling};

/// The answer of one undisturbed device: `count` tokens after the prompt.
pub fn undisturbed(model: &SimModel, prompt: &[u32], count: usize) -> Vec<u32> {
    Device::new(model).answer(prompt, count)
}

/// The same with a bias of the logits.
pub fn undisturbed_biased(model: &SimModel, prompt: &[u32], count: usize, bias: &LogitBias) -> Vec<u32> {
    Device { bias: bias.clone(), ..Device::new(model) }.answer(prompt, count)
}

/// The same of the form [`crate::EVERY_THIRD`].
pub fn undisturbed_formed(model: &SimModel, prompt: &[u32], count: usize) -> Vec<u32> {
    let mut device = Device::new(model);
    let next = |last: Option<u32>, allowed| {
        device.allowed = Some(allowed);
        match last {
            None => device.run(prompt, KernelClass::Prefill),
            Some(token) => device.run(&[token], KernelClass::Decode),
        }
    };
    formed(next, count)
}

/// The same, sampled with this seed and a temperature.
pub fn undisturbed_sampled(model: &SimModel, prompt: &[u32], count: usize, seed: u64) -> Vec<u32> {
    let mut device = Device::new(model);
    let mut log = prompt.to_vec();
    let mut next = device.run(prompt, KernelClass::Prefill);
    while let Some(best) = next.filter(|_| log.len() < prompt.len() + count) {
        let best = Candidates { ids: vec![best], logits: vec![1.0], sampled: None, log_sum_exp: None };
        let token = Bytewise.choose(&best, &sampling(Some(seed)), log.len() as u32, &log);
        log.push(token);
        next = device.run(&[token], KernelClass::Decode);
    }
    log.split_off(prompt.len())
}

/// The answer to a second question of a conversation with its KV cache kept: the first answer's tokens were decoded.
pub fn undisturbed_follow_up(model: &SimModel, prompt: &[u32], answer: &[u32], then: &[u32], count: usize) -> Vec<u32> {
    let mut device = Device::new(model);
    device.run(prompt, KernelClass::Prefill);
    for token in answer {
        device.run(&[*token], KernelClass::Decode);
    }
    device.answer(then, count)
}

struct Device<'a> {
    model: &'a SimModel,
    engine: SimEngine,
    position: u32,
    bias: LogitBias,
    allowed: Option<AllowedTokens>,
}

impl<'a> Device<'a> {
    /// A device that holds the whole model.
    fn new(model: &'a SimModel) -> Self {
        let shape = model.shape();
        let mut units = vec![WeightUnit::Embedding, WeightUnit::LmHead];
        for block in shape.all_blocks().iter() {
            units.extend(shape.block_units(block));
            units.extend(shape.block_experts(block).into_iter().map(|expert| WeightUnit::Expert(block, expert)));
        }
        let mut engine = SimEngine::default();
        engine.set_resident(&units, &PooledExperts::default());
        Self { model, engine, position: 0, bias: LogitBias::default(), allowed: None }
    }

    fn answer(&mut self, prompt: &[u32], count: usize) -> Vec<u32> {
        let mut answer = Vec::new();
        let mut next = self.run(prompt, KernelClass::Prefill);
        while let Some(token) = next.filter(|_| answer.len() < count) {
            answer.push(token);
            next = self.run(&[token], KernelClass::Decode);
        }
        answer
    }

    /// Runs tokens through the model. Returns the token after the last one.
    fn run(&mut self, tokens: &[u32], class: KernelClass) -> Option<u32> {
        let conversation = ConversationId(0);
        let batch =
            (self.position..).zip(tokens).map(|(at, _)| BatchToken { conversation, position: Position(at) }).collect();
        let then = Then::LmHead(LmHeadRequest { tokens: LmHeadTokens::Last, logits: LogitsRequest::Top(1) });
        let (input, blocks) = (Input::Tokens(tokens.to_vec()), BlockRange::new(0, self.model.blocks));
        let (count, bias, allowed) = (tokens.len() as u32, self.bias.clone(), self.allowed.clone());
        let biases = vec![BiasedTokens { tokens: 0..count, bias, allowed }];
        let task = Task::Forward { batch, class, input, blocks, then, biases };
        self.position += tokens.len() as u32;
        match self.engine.run(self.model, &Work { ticket: Ticket(0), task }) {
            Outcome::Candidates(candidates) => candidates.first()?.ids.first().copied(),
            _ => None,
        }
    }
}
