//! The simulated engine: hashes of f32 values, and float sums of experts' outputs.

use std::collections::{BTreeMap, BTreeSet};

use potluck_plan::{
    AllowedTokens, BatchToken, BiasedTokens, BlockIndex, BlockRange, BlockShape, Bytes, Candidates, ConversationId,
    Cuts, ExpertId, ExpertOutputs, ExpertRoute, FeedForwardShape, FirstToken, Input, KV_PAGE_TOKENS, KernelClass,
    KvCacheType, LmHeadRequest, LmHeadTokens, LogitBias, LogitsRequest, ModelId, ModelShape, Outcome, PooledExperts,
    Position, STATE_CONVERSATIONS, SampledSteps, StateHistory, Task, Then, WeightUnit, Work,
};

use super::language;
use super::random::mix;
use super::slots::SimSlots;

/// A simulated model.
#[derive(Clone, Debug)]
pub struct SimModel {
    /// Blocks.
    pub blocks: u16,
    /// Experts a block; 0 for a dense model. A token uses two.
    pub experts: u16,
    /// Bytes of exact KV cache for one position of a block.
    pub kv_bytes: u64,
    /// Bytes of recurrent state of a block; 0 for blocks that only attend.
    pub state_bytes: u64,
}

impl SimModel {
    /// A dense model whose KV cache takes nothing.
    #[must_use]
    pub const fn dense(blocks: u16) -> Self {
        Self { blocks, experts: 0, kv_bytes: 0, state_bytes: 0 }
    }
}

const WIDTH: usize = 2;
/// A token's values. They use all bits of an f32, so that a sum depends on the order of its terms.
type Values = [f32; WIDTH];
/// Every token is an ASCII character, so that an answer can be part of the next prompt.
pub(crate) const VOCABULARY: u64 = 128;
/// Context of a simulated room in positions, and its pages.
pub(crate) const CONTEXT: u32 = 256;
const PAGE: usize = KV_PAGE_TOKENS as usize;
const PAGES: usize = CONTEXT as usize / PAGE;

/// Why an engine refuses tokens for which it has no free page.
pub(crate) const OUT_OF_PAGES: &str = "out of pages";
/// Why work fails that does not begin where its KV cache ends, or before.
pub(crate) const GAP: &str = "a gap in the KV cache";
/// Why it refuses work that begins where it kept no recurrent state.
pub(crate) const NO_STATE: &str = "no state";

impl SimModel {
    /// Its sizes with each KV cache type: the exact type takes `kv_bytes` a position and block, each further one half
    /// of the one before.
    pub fn shapes(&self) -> Vec<ModelShape> {
        let shape = self.shape();
        let with = |(index, kv_cache): (u32, KvCacheType)| {
            let mut shape = ModelShape { kv_cache, ..shape.clone() };
            shape.blocks.iter_mut().for_each(|block| block.kv_cache_per_position.0 >>= index);
            shape
        };
        (0..).zip(KvCacheType::ALL).map(with).collect()
    }

    /// Its sizes: 100 bytes a token mixer, 60 a dense feed-forward network, 20 an expert, 50 each end, exact KV
    /// cache.
    pub fn shape(&self) -> ModelShape {
        let feed_forward = match self.experts {
            0 => FeedForwardShape::Dense { bytes: Bytes(60) },
            count => {
                FeedForwardShape::Experts { router: Bytes(5), expert: Bytes(20), count, used: 2, shared: Bytes::ZERO }
            }
        };
        let block = BlockShape {
            token_mixer: Bytes(100),
            kv_cache_per_position: Bytes(self.kv_bytes),
            kv_buffers: 2,
            state: Bytes::ZERO,
            feed_forward,
        };
        ModelShape {
            model: ModelId([9; 32]),
            hidden: WIDTH as u32,
            vocabulary: VOCABULARY as u32,
            embedding: Bytes(50),
            lm_head: Bytes(50),
            tied_lm_head: false,
            cuts: Cuts::Anywhere,
            kv_cache: KvCacheType::F32,
            blocks: (0..self.blocks).map(|index| self.block(index, &block)).collect(),
        }
    }

    /// A block that attends, or has recurrent state instead.
    fn block(&self, index: u16, attends: &BlockShape) -> BlockShape {
        let state = Bytes(self.state_bytes);
        if self.is_recurrent(BlockIndex(index)) {
            BlockShape { kv_cache_per_position: Bytes::ZERO, state, ..attends.clone() }
        } else {
            attends.clone()
        }
    }

    /// In a model with recurrent state, every second block has one.
    fn is_recurrent(&self, block: BlockIndex) -> bool {
        self.state_bytes > 0 && block.0 % 2 == 1
    }
}

/// The recurrent states of a conversation in a block: running hashes.
#[derive(Default)]
struct States {
    history: StateHistory,
    slots: [u64; StateHistory::SLOTS as usize],
}

/// The engine of one device.
#[derive(Default)]
pub(crate) struct SimEngine {
    resident: BTreeSet<WeightUnit>,
    /// Slots for experts on demand.
    slots: SimSlots,
    /// For each block and conversation the running hash up to each position.
    kv_cache: BTreeMap<(u16, ConversationId), Vec<u64>>,
    states: BTreeMap<(u16, ConversationId), States>,
    /// For each conversation the position after its last logits, and the token sampled there.
    chosen: BTreeMap<ConversationId, (u32, u32)>,
    /// It samples other tokens ahead than the coordinator does.
    pub samples_otherwise: bool,
}

impl SimEngine {
    pub fn resident(&self) -> &BTreeSet<WeightUnit> {
        &self.resident
    }

    /// Holds these units, and slots for experts.
    pub fn set_resident(&mut self, units: &[WeightUnit], pool: &PooledExperts) {
        self.resident = units.iter().copied().collect();
        self.slots.set(pool);
        let resident = &self.resident;
        self.kv_cache.retain(|(block, _), _| resident.contains(&WeightUnit::TokenMixer(BlockIndex(*block))));
        self.states.retain(|(block, _), _| resident.contains(&WeightUnit::TokenMixer(BlockIndex(*block))));
    }

    /// The slots for experts on demand.
    pub fn slots_mut(&mut self) -> &mut SimSlots {
        &mut self.slots
    }

    /// Adds one unit.
    pub fn load_unit(&mut self, unit: WeightUnit) {
        self.resident.insert(unit);
    }

    pub fn forget(&mut self, conversation: ConversationId) {
        self.kv_cache.retain(|(_, known), _| *known != conversation);
        self.states.retain(|(_, known), _| *known != conversation);
        self.chosen.remove(&conversation);
    }

    pub fn run(&mut self, model: &SimModel, work: &Work) -> Outcome {
        match self.try_run(model, &work.task) {
            Ok(outcome) => outcome,
            Err(sentence) => Outcome::Failed(sentence),
        }
    }

    fn need(&self, unit: WeightUnit) -> Result<(), String> {
        if self.resident.contains(&unit) { Ok(()) } else { Err(format!("{unit:?} is not loaded")) }
    }

    fn try_run(&mut self, model: &SimModel, task: &Task) -> Result<Outcome, String> {
        match task {
            Task::Forward { batch, class, input, blocks, then, biases } => {
                let mut hidden = self.enter(batch, *blocks, input)?;
                for block in blocks.iter() {
                    for (row, value) in batch.iter().zip(&mut hidden) {
                        let residual = self.token_mixer(model, block, *row, *class, *value)?;
                        *value = match model.experts {
                            0 => residual,
                            count => {
                                let normed = normed(residual);
                                let route = route(block, normed, count);
                                let outputs =
                                    route.experts.iter().map(|(expert, _)| self.expert(block, normed, *expert));
                                combine(residual, &route, &outputs.collect::<Result<Vec<_>, _>>()?)
                            }
                        };
                    }
                }
                let outcome = self.leave(model, batch, *class, hidden, (*then, biases))?;
                self.remember(batch, &outcome);
                Ok(outcome)
            }
            Task::Continue { row, token, steps, sampling } => {
                self.go_on(model, *row, *token, *steps, sampling.as_ref())
            }
            Task::Experts { block, normed, experts, sum: Some(weights), .. } => {
                let tokens = values(normed).into_iter().zip(experts.iter().zip(weights));
                let sums = tokens.map(|(normed, (row, weights))| {
                    let outputs = row.iter().map(|expert| self.expert(*block, normed, *expert));
                    let route = ExpertRoute { experts: row.iter().copied().zip(weights.iter().copied()).collect() };
                    Ok(combine([0.0; WIDTH], &route, &outputs.collect::<Result<Vec<_>, String>>()?))
                });
                Ok(Outcome::ExpertOutputs(flat(&sums.collect::<Result<Vec<_>, String>>()?)))
            }
            Task::Experts { block, normed, experts, sum: None, .. } => {
                let rows = values(normed).into_iter().zip(experts);
                let pairs = rows.flat_map(|(normed, row)| row.iter().map(move |expert| (normed, *expert)));
                let outputs = pairs.map(|(normed, expert)| self.expert(*block, normed, expert));
                Ok(Outcome::ExpertOutputs(flat(&outputs.collect::<Result<Vec<_>, _>>()?)))
            }
        }
    }

    /// Steps one after another, greedy or sampled.
    fn go_on(
        &mut self,
        model: &SimModel,
        row: BatchToken,
        token: FirstToken,
        steps: u16,
        sampling: Option<&SampledSteps>,
    ) -> Result<Outcome, String> {
        let mut recent = sampling.map(|sampling| sampling.recent.clone()).unwrap_or_default();
        let mut token = match token {
            FirstToken::Given(token) => token,
            FirstToken::Sampled => match self.chosen.get(&row.conversation) {
                Some(&(position, token)) if position == row.position.0 => token,
                _ => return Err("no token was chosen for that position".into()),
            },
        };
        let mut all = Vec::new();
        for step in 0..u32::from(steps) {
            let row = BatchToken { position: Position(row.position.0 + step), ..row };
            let task = Task::Forward {
                batch: vec![row],
                class: KernelClass::Decode,
                input: Input::Tokens(vec![token]),
                blocks: BlockRange::new(0, model.blocks),
                then: Then::LmHead(LmHeadRequest { tokens: LmHeadTokens::Last, logits: LogitsRequest::Top(1) }),
                biases: Vec::new(),
            };
            let Outcome::Candidates(mut best) = self.try_run(model, &task)? else { return Err("no candidates".into()) };
            token = best[0].ids[0];
            if let Some(SampledSteps { sampling, .. }) = sampling {
                let position = row.position.0 + 1;
                token = language::draw(token, sampling.seed, position, &recent);
                // Another letter now and then.
                token ^= u32::from(self.samples_otherwise && position.is_multiple_of(5));
                recent.push(token);
                best[0].sampled = Some(token);
            }
            all.extend(best);
        }
        Ok(Outcome::Candidates(all))
    }

    /// Remembers the token sampled last.
    fn remember(&mut self, batch: &[BatchToken], outcome: &Outcome) {
        let Some(last) = batch.last() else { return };
        self.chosen.remove(&last.conversation);
        if let Outcome::Candidates(best) = outcome
            && let Some(best) = best.last()
        {
            self.chosen.insert(last.conversation, (last.position.0 + 1, best.ids[0]));
        }
    }

    fn enter(&self, batch: &[BatchToken], blocks: BlockRange, input: &Input) -> Result<Vec<Values>, String> {
        match input {
            Input::Tokens(tokens) => {
                self.need(WeightUnit::Embedding)?;
                Ok(tokens.iter().map(|token| split(mix(u64::from(*token) + 1))).collect())
            }
            Input::Hidden(hidden) if hidden.len() == batch.len() * WIDTH => Ok(values(hidden)),
            Input::Hidden(_) => Err("hidden vectors of the wrong length".into()),
            Input::Experts(ExpertOutputs { block, residual, routes, outputs }) => {
                let pairs: usize = routes.iter().map(|route| route.experts.len()).sum();
                let fits = [residual.len(), routes.len() * WIDTH].iter().all(|len| *len == batch.len() * WIDTH);
                if !fits || outputs.len() != pairs * WIDTH || block.0 + 1 != blocks.start {
                    return Err("outputs of experts that do not fit the batch".into());
                }
                let mut outputs = values(outputs).into_iter();
                let row = |(residual, route): (Values, &ExpertRoute)| {
                    combine(residual, route, &outputs.by_ref().take(route.experts.len()).collect::<Vec<_>>())
                };
                Ok(values(residual).into_iter().zip(routes).map(row).collect())
            }
        }
    }

    fn token_mixer(
        &mut self,
        model: &SimModel,
        block: BlockIndex,
        row: BatchToken,
        class: KernelClass,
        value: Values,
    ) -> Result<Values, String> {
        self.need(WeightUnit::TokenMixer(block))?;
        let kernel = match class {
            KernelClass::Decode => 1,
            KernelClass::Prefill => 2,
        };
        let next = |before: u64| mix(before ^ mix(bits(value)).wrapping_add(kernel) ^ u64::from(block.0) << 56);
        if model.is_recurrent(block) {
            return self.recur(block, row, class, next).map(split);
        }
        let kv_cache = self.kv_cache.entry((block.0, row.conversation)).or_default();
        let position = row.position.0 as usize;
        if kv_cache.len() < position {
            return Err(GAP.into());
        }
        kv_cache.truncate(position);
        let before = kv_cache.last().copied().unwrap_or(7);
        // Blocks share their pages: what later ones have from here on is overwritten, too.
        let later = self.kv_cache.iter_mut().filter(|((other, of), _)| *other > block.0 && *of == row.conversation);
        later.for_each(|(_, kv_cache)| kv_cache.truncate(position));
        let reserved = self.kv_cache.iter().filter(|((other, _), _)| *other == block.0);
        if reserved.map(|(_, kv_cache)| kv_cache.len().div_ceil(PAGE)).sum::<usize>() > PAGES {
            return Err(OUT_OF_PAGES.into());
        }
        let kv_cache = self.kv_cache.entry((block.0, row.conversation)).or_default();
        let now = next(before);
        kv_cache.push(now);
        Ok(split(now))
    }

    /// A row of a recurrence: what is not kept cannot be taken up again.
    fn recur(
        &mut self,
        block: BlockIndex,
        row: BatchToken,
        class: KernelClass,
        next: impl Fn(u64) -> u64,
    ) -> Result<u64, String> {
        self.states.entry((block.0, row.conversation)).or_default();
        if self.states.keys().filter(|(other, _)| *other == block.0).count() > STATE_CONVERSATIONS as usize {
            return Err(OUT_OF_PAGES.into());
        }
        let states = self.states.entry((block.0, row.conversation)).or_default();
        let position = row.position.0;
        let moves = states.history.advance(position, position + 1, class).ok_or(NO_STATE)?;
        let now = next(moves.from.map_or(7, |slot| states.slots[usize::from(slot)]));
        let copies = moves.copies.into_iter().map(|(_, slot)| slot);
        copies.chain([StateHistory::LIVE]).for_each(|slot| states.slots[usize::from(slot)] = now);
        Ok(now)
    }

    fn expert(&mut self, block: BlockIndex, normed: Values, expert: ExpertId) -> Result<Values, String> {
        if !self.slots.use_expert(block, expert) {
            self.need(WeightUnit::Expert(block, expert))?;
        }
        Ok(split(mix(mix(bits(normed)) ^ u64::from(expert.0) << 48 ^ u64::from(block.0))))
    }

    fn leave(
        &mut self,
        model: &SimModel,
        batch: &[BatchToken],
        class: KernelClass,
        hidden: Vec<Values>,
        (then, biases): (Then, &[BiasedTokens]),
    ) -> Result<Outcome, String> {
        Ok(match then {
            Then::Nothing => Outcome::Done,
            Then::Hidden => Outcome::Hidden(flat(&hidden)),
            Then::Route(block) => {
                let mixed =
                    batch.iter().zip(hidden).map(|(row, value)| self.token_mixer(model, block, *row, class, value));
                let residual = mixed.collect::<Result<Vec<_>, _>>()?;
                let normed: Vec<_> = residual.iter().map(|row| normed(*row)).collect();
                let routes = normed.iter().map(|row| route(block, *row, model.experts)).collect();
                Outcome::Routed { residual: flat(&residual), normed: flat(&normed), routes }
            }
            Then::LmHead(request) => {
                self.need(WeightUnit::LmHead)?;
                let first = match request.tokens {
                    LmHeadTokens::Last => hidden.len().saturating_sub(1),
                    LmHeadTokens::All => 0,
                };
                let best = |(row, last): (usize, &Values)| {
                    let biased = biases.iter().rfind(|biased| biased.tokens.contains(&(row as u32)));
                    let id = best_token(bits(*last), biased);
                    let log_sum_exp = request.logits.sums().then(|| 2.0 + id as f32 / VOCABULARY as f32);
                    Candidates { ids: vec![id], logits: vec![1.0], sampled: None, log_sum_exp }
                };
                Outcome::Candidates(hidden.iter().enumerate().skip(first).map(best).collect())
            }
        })
    }
}

/// The best token after these values: one of a hash that no bias bans and that may be chosen. Every bias and every mask makes another
/// hash, so that an answer shows if one was lost, or was another conversation's.
fn best_token(values: u64, changes: Option<&BiasedTokens>) -> u32 {
    let (biases, allowed) =
        changes.map_or((&[][..], None), |changes| (changes.bias.tokens(), changes.allowed.as_ref()));
    let with = |hash: u64, (id, bias): &(u32, f32)| mix(hash ^ u64::from(*id) << 32 ^ u64::from(bias.to_bits()));
    let words = allowed.map_or_else(Vec::new, AllowedTokens::words);
    let hash = words.into_iter().fold(values, |hash, word| mix(hash ^ u64::from(word)));
    let mut hash = biases.iter().fold(hash, with);
    // Not all are banned.
    for _ in 0..10_000 {
        hash = mix(hash);
        let id = 1 + (hash % (VOCABULARY - 1)) as u32;
        if allowed.is_none_or(|allowed| allowed.contains(id))
            && !biases.iter().any(|(of, bias)| *of == id && *bias <= -LogitBias::MAX)
        {
            return id;
        }
    }
    1
}

/// Two values of -1 to 1, with 24 bits each.
fn split(hash: u64) -> Values {
    let value = |bits: u64| (bits & 0xff_ffff) as f32 / (1 << 23) as f32 - 1.0;
    [value(hash), value(hash >> 32)]
}

fn bits(value: Values) -> u64 {
    u64::from(value[0].to_bits()) << 32 | u64::from(value[1].to_bits())
}

fn normed(residual: Values) -> Values {
    split(mix(bits(residual)))
}

/// Two experts, the one with the larger weight first.
fn route(block: BlockIndex, normed: Values, count: u16) -> ExpertRoute {
    let hash = mix(bits(normed) ^ u64::from(block.0) << 50);
    let first = hash % u64::from(count);
    let second = (first + 1 + (hash >> 32) % (u64::from(count) - 1)) % u64::from(count);
    let weight = 0.5 + (hash >> 40 & 0xffff) as f32 / (1 << 18) as f32;
    ExpertRoute { experts: vec![(ExpertId(first as u16), weight), (ExpertId(second as u16), 1.0 - weight)] }
}

/// The residual stream plus the weighted sum in router order, as the engines' kernel takes it: with `fma`, from zero.
fn combine(residual: Values, route: &ExpertRoute, outputs: &[Values]) -> Values {
    let pairs = || route.experts.iter().zip(outputs);
    let sum = |index: usize| pairs().fold(0.0f32, |sum, ((_, weight), output)| weight.mul_add(output[index], sum));
    [residual[0] + sum(0), residual[1] + sum(1)]
}

fn values(flat: &[f32]) -> Vec<Values> {
    flat.as_chunks::<WIDTH>().0.to_vec()
}

fn flat(batch: &[Values]) -> Vec<f32> {
    batch.iter().flatten().copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The simulator sees an executor that sums otherwise than one device does.
    #[test]
    fn another_order_or_grouping_of_experts_gives_other_bits() {
        let (mut reordered, mut grouped) = (0, 0);
        for seed in 0..1_000 {
            let (residual, outputs) = (split(mix(seed)), [split(mix(seed + 5_000)), split(mix(seed + 9_000))]);
            let route = route(BlockIndex(1), normed(residual), 8);
            let whole = combine(residual, &route, &outputs);
            let backwards = ExpertRoute { experts: route.experts.iter().rev().copied().collect() };
            reordered += usize::from(combine(residual, &backwards, &[outputs[1], outputs[0]]) != whole);
            let alone = |rank: usize| {
                let one = ExpertRoute { experts: vec![route.experts[rank]] };
                combine([0.0; WIDTH], &one, &outputs[rank..=rank])
            };
            let by_holder = [0, 1].map(|index| residual[index] + (alone(0)[index] + alone(1)[index]));
            grouped += usize::from(by_holder != whole);
        }
        assert!(reordered > 300, "another order is seen in only {reordered} of 1000 tokens");
        assert!(grouped > 200, "a sum for each holder is seen in only {grouped} of 1000 tokens");
    }
}
