//! Validates a task before anything is encoded for it.

use std::collections::BTreeSet;

use potluck_plan::{
    BiasedTokens, BlockIndex, BlockRange, ExpertId, ExpertOutputs, FirstToken, Input, KernelClass, LmHeadTokens,
    LogitsRequest, Task, Then, WeightUnit, Work,
};

use crate::runtime::error::EngineError;
use crate::runtime::model::Model;
use crate::runtime::pieces::rows_of;
use crate::runtime::sizes::lm_head_tokens;

impl Model {
    /// Validates a task against the model and the resident weights. It does not check the KV cache.
    pub fn check(&self, task: &Task) -> Result<(), EngineError> {
        let hidden = self.spec.hidden as usize;
        let rows = rows_of(task);
        let (class, vectors) = match task {
            Task::Forward { class, input, .. } => (*class, input),
            Task::Continue { token, steps, .. } => return self.check_continue(*token, *steps),
            Task::Experts { block, class, normed, experts, sum } => {
                self.check_rows(*class, rows)?;
                self.check_experts(*block, normed, experts)?;
                return sum.as_ref().map_or(Ok(()), |sum| check_weights(*block, experts, sum));
            }
        };
        self.check_rows(class, rows)?;
        match vectors {
            Input::Tokens(tokens) => {
                if tokens.len() != rows {
                    return Err(EngineError::HiddenLength { got: tokens.len(), expected: rows });
                }
                if let Some(&token) = tokens.iter().find(|token| **token >= self.spec.vocabulary) {
                    return Err(EngineError::UnknownToken(token));
                }
                self.need(WeightUnit::Embedding)?;
            }
            Input::Hidden(values) => check_vectors(values, rows * hidden)?,
            Input::Experts(outputs) => self.check_outputs(outputs, rows)?,
        }
        let Task::Forward { blocks, then, biases, .. } = task else { return Ok(()) };
        let begun = if let Input::Experts(outputs) = vectors { Some(outputs.block.0) } else { None };
        if !blocks.is_empty() && begun.is_some_and(|block| blocks.start != block + 1) {
            return Err(EngineError::NotNext(BlockIndex(blocks.start)));
        }
        self.need_blocks(*blocks)?;
        match then {
            Then::Nothing | Then::Hidden => Ok(()),
            Then::Route(block) => {
                let before = if blocks.is_empty() { begun.map(|block| block + 1) } else { Some(blocks.end) };
                if before.is_some_and(|before| block.0 != before) {
                    return Err(EngineError::NotNext(*block));
                }
                self.routing(*block)?;
                self.need(WeightUnit::TokenMixer(*block))?;
                self.need_router(*block)
            }
            Then::LmHead(request) => {
                self.need(WeightUnit::LmHead)?;
                self.check_biases(biases, if request.tokens == LmHeadTokens::Last { 1 } else { rows })?;
                match request.logits {
                    LogitsRequest::Top(n) | LogitsRequest::TopWithSum(n)
                        if n == 0 || n > LogitsRequest::MAX_TOP || u32::from(n) > self.spec.vocabulary =>
                    {
                        Err(EngineError::BadCandidateCount(n))
                    }
                    LogitsRequest::Logits
                        if request.tokens == LmHeadTokens::All && rows > lm_head_tokens(&self.settings) as usize =>
                    {
                        Err(EngineError::TooManyRows { rows, max: lm_head_tokens(&self.settings) as usize })
                    }
                    _ => Ok(()),
                }
            }
        }
    }

    /// Requires that the vocabulary has all biased tokens, that masks are of the same vocabulary, and that no more than [`Work::DECODE_TOKENS`] pass the LM head.
    fn check_biases(&self, biases: &[BiasedTokens], rows: usize) -> Result<(), EngineError> {
        if !biases.is_empty() && rows > Work::DECODE_TOKENS {
            return Err(EngineError::TooManyRows { rows, max: Work::DECODE_TOKENS });
        }
        let vocabulary = self.spec.vocabulary;
        let of_another =
            |biased: &&BiasedTokens| biased.allowed.as_ref().is_some_and(|allowed| allowed.vocabulary() != vocabulary);
        if biases.iter().any(|biased| of_another(&biased)) {
            return Err(EngineError::OtherVocabulary);
        }
        let unknown = biases.iter().find_map(|biased| biased.bias.unknown(vocabulary));
        unknown.map_or(Ok(()), |token| Err(EngineError::UnknownToken(token)))
    }

    fn check_continue(&self, token: FirstToken, steps: u16) -> Result<(), EngineError> {
        if steps == 0 || steps > Work::MAX_STEPS {
            return Err(EngineError::BadSteps(steps));
        }
        match token {
            FirstToken::Given(token) if token >= self.spec.vocabulary => Err(EngineError::UnknownToken(token)),
            _ => {
                self.need(WeightUnit::Embedding)?;
                self.need_blocks(BlockRange::new(0, self.spec.blocks.len() as u16))?;
                self.need(WeightUnit::LmHead)
            }
        }
    }

    /// Requires that all weights of the blocks are resident.
    fn need_blocks(&self, blocks: BlockRange) -> Result<(), EngineError> {
        for block in blocks.iter() {
            self.need(WeightUnit::TokenMixer(block))?;
            if self.expert_count(block) == 0 {
                self.need(WeightUnit::Dense(block))?;
            } else {
                self.need_router(block)?;
                (0..self.expert_count(block) as u16)
                    .try_for_each(|e| self.need(WeightUnit::Expert(block, potluck_plan::ExpertId(e))))?;
            }
        }
        Ok(())
    }

    /// Requires a block's router, and the shared expert that runs beside it.
    fn need_router(&self, block: BlockIndex) -> Result<(), EngineError> {
        self.need(WeightUnit::Router(block))?;
        match self.spec.experts(usize::from(block.0)).and_then(|experts| experts.shared) {
            Some(_) => self.need(WeightUnit::SharedExpert(block)),
            None => Ok(()),
        }
    }

    fn check_rows(&self, class: KernelClass, rows: usize) -> Result<(), EngineError> {
        let max = self.max_batch_tokens(class);
        match rows {
            0 => Err(EngineError::NoRows),
            _ if rows > max => Err(EngineError::TooManyRows { rows, max }),
            _ => Ok(()),
        }
    }

    fn check_experts(&self, block: BlockIndex, normed: &[f32], experts: &[Vec<ExpertId>]) -> Result<(), EngineError> {
        self.routing(block)?;
        check_vectors(normed, experts.len() * self.spec.hidden as usize)?;
        for chosen in experts {
            self.check_chosen(block, chosen.iter().copied())?;
            if self.weights.slots().has(block) {
                // A pooled expert that is missing is an outcome of its own.
                continue;
            }
            let absent = chosen.iter().find(|expert| !self.weights.is_resident(WeightUnit::Expert(block, **expert)));
            if let Some(&expert) = absent {
                return Err(EngineError::ExpertNotHeld(block, expert));
            }
        }
        Ok(())
    }

    /// Requires different experts of a block, at most as many as a token uses.
    fn check_chosen(
        &self,
        block: BlockIndex,
        chosen: impl ExactSizeIterator<Item = ExpertId>,
    ) -> Result<(), EngineError> {
        let (used, count) = self.routing(block)?;
        let bad = |reason| EngineError::BadRoute { block, reason };
        if chosen.len() > used as usize {
            return Err(bad("it names more experts than a token uses"));
        }
        let mut seen = BTreeSet::new();
        for expert in chosen {
            if u32::from(expert.0) >= count {
                return Err(bad("it names an expert that does not exist"));
            }
            if !seen.insert(expert) {
                return Err(bad("it names an expert twice"));
            }
        }
        Ok(())
    }

    /// Requires routes for `rows` tokens, with an output for each of their experts.
    fn check_outputs(&self, given: &ExpertOutputs, rows: usize) -> Result<(), EngineError> {
        self.routing(given.block)?;
        // Only an engine with the router has room for outputs; what runs beside experts is added with them.
        self.need_router(given.block)?;
        if given.routes.len() != rows {
            return Err(EngineError::HiddenLength { got: given.routes.len(), expected: rows });
        }
        for route in &given.routes {
            self.check_chosen(given.block, route.experts.iter().map(|(expert, _)| *expert))?;
            if !route.experts.iter().all(|(_, gate)| gate.is_finite()) {
                return Err(EngineError::NotFinite);
            }
        }
        let pairs: usize = given.routes.iter().map(|route| route.experts.len()).sum();
        let hidden = self.spec.hidden as usize;
        check_vectors(&given.residual, rows * hidden)?;
        check_vectors(&given.outputs, pairs * hidden)
    }

    fn need(&self, unit: WeightUnit) -> Result<(), EngineError> {
        if self.weights.is_resident(unit) { Ok(()) } else { Err(EngineError::NotResident(unit)) }
    }

    pub fn max_batch_tokens(&self, class: KernelClass) -> usize {
        match class {
            KernelClass::Decode => Work::DECODE_TOKENS,
            KernelClass::Prefill => Work::PREFILL_TOKENS,
        }
    }
}

/// Requires a finite weight for each of the experts.
fn check_weights(block: BlockIndex, experts: &[Vec<ExpertId>], sum: &[Vec<f32>]) -> Result<(), EngineError> {
    let fit =
        experts.len() == sum.len() && experts.iter().zip(sum).all(|(chosen, weights)| chosen.len() == weights.len());
    if !fit {
        return Err(EngineError::BadRoute { block, reason: "its weights are not those of its experts" });
    }
    if sum.iter().flatten().all(|weight| weight.is_finite()) { Ok(()) } else { Err(EngineError::NotFinite) }
}

fn check_vectors(values: &[f32], expected: usize) -> Result<(), EngineError> {
    if values.len() != expected {
        return Err(EngineError::HiddenLength { got: values.len(), expected });
    }
    if values.iter().all(|value| value.is_finite()) { Ok(()) } else { Err(EngineError::NotFinite) }
}
