//! Runs a whole model on the CPU from dequantized weights. The GPU's results are compared with it, and routing is studied
//! with it, so it stays slow and simple.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use potluck_model::{
    Activation, AttentionSpec, FeedForwardSpec, LatentSpec, ModelSpec, QkNorm, RopeFactors, RopePairs, RopeSpec,
    TensorRole, UnitMap,
};
use potluck_plan::{BlockIndex, ExpertId, KvCacheType, WeightUnit};
use potluck_shaders::reference as kernels;
use potluck_shaders::{Format, Pairs};

mod recurrent;
mod router;

pub use router::Routers;

/// Reads the bytes of a tensor, given its unit and its index in the unit.
pub type Source<'a> = dyn Fn(WeightUnit, usize) -> Vec<u8> + 'a;

/// A model with its weights as 32-bit floats, and the KV cache of one conversation.
pub struct Reference {
    spec: ModelSpec,
    kv_type: KvCacheType,
    /// The context that an engine would reserve, which decides between short and long rotary factors.
    context: u32,
    tensors: Arc<BTreeMap<(WeightUnit, TensorRole), Vec<f32>>>,
    keys: Vec<Vec<Vec<f32>>>,
    values: Vec<Vec<Vec<f32>>>,
    /// Recurrent states by block.
    states: Vec<Vec<f64>>,
    /// The newest token's inputs of all blocks, empty if blocks have none.
    block_inputs: Vec<f32>,
    routing: Routing,
}

/// What the routers said of the last token, for each block with experts; the likeliest expert comes first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Routing {
    /// The experts that were used.
    pub chosen: Vec<Vec<ExpertId>>,
    /// The experts that a block's router would have chosen early: `early[n]` on the residual stream `n + 1` blocks before,
    /// which is the embedding for the first blocks.
    pub early: Vec<Vec<Vec<ExpertId>>>,
}

/// Chosen experts with their gate weights, largest first.
type Choice = Vec<(u32, f32)>;

/// How many blocks ahead [`Routing::early`] asks routers.
pub const EARLIEST: usize = 4;

impl Reference {
    /// Dequantizes every unit. Keys and values are stored exactly.
    pub fn new(spec: &ModelSpec, units: &UnitMap, source: &Source<'_>) -> Self {
        Self::with_kv_cache(spec, units, source, KvCacheType::F32)
    }

    /// As [`Reference::new`], with keys and values stored in a KV cache type.
    pub fn with_kv_cache(spec: &ModelSpec, units: &UnitMap, source: &Source<'_>, kv_type: KvCacheType) -> Self {
        let mut tensors = BTreeMap::new();
        for unit in units.units() {
            for (index, tensor) in units.tensors(unit).iter().enumerate() {
                let format = Format::of(tensor.kind).expect("the reference runs models of supported types only");
                tensors.insert((unit, tensor.role), kernels::dequantize(format, &source(unit, index)));
            }
        }
        Self::of_tensors(spec.clone(), kv_type, spec.context, Arc::new(tensors))
    }

    fn of_tensors(
        spec: ModelSpec,
        kv_type: KvCacheType,
        context: u32,
        tensors: Arc<BTreeMap<(WeightUnit, TensorRole), Vec<f32>>>,
    ) -> Self {
        let none = vec![Vec::new(); spec.blocks.len()];
        let (keys, values, states) = (none.clone(), none, vec![Vec::new(); spec.blocks.len()]);
        let (block_inputs, routing) = (Vec::new(), Routing::default());
        Self { spec, kv_type, context, tensors, keys, values, states, block_inputs, routing }
    }

    /// Another conversation with the same weights, which lie in memory once.
    pub fn fork(&self) -> Self {
        Self::of_tensors(self.spec.clone(), self.kv_type, self.context, self.tensors.clone())
    }

    /// Forgets the conversation.
    pub fn restart(&mut self) {
        self.keys.iter_mut().chain(&mut self.values).for_each(Vec::clear);
        self.states.iter_mut().for_each(Vec::clear);
    }

    /// Replaces keys and values with those of another model of the same sizes, as far as both have positions.
    pub fn copy_kv_cache(&mut self, of: &Self) {
        let rows = |to: &mut Vec<Vec<f32>>, from: &[Vec<f32>]| {
            let both = to.len().min(from.len());
            to[..both].clone_from_slice(&from[..both]);
        };
        self.keys.iter_mut().zip(&of.keys).for_each(|(to, from)| rows(to, from));
        self.values.iter_mut().zip(&of.values).for_each(|(to, from)| rows(to, from));
    }

    /// What the routers said of the token appended last, unless it was skipped.
    pub fn routing(&self) -> &Routing {
        &self.routing
    }

    /// For an engine that reserves another context than the model's longest.
    pub fn with_context(self, context: u32) -> Self {
        Self { context, ..self }
    }

    fn tensor(&self, unit: WeightUnit, role: TensorRole) -> &[f32] {
        &self.tensors[&(unit, role)]
    }

    /// Appends a token whose logits nobody needs, and skips what only they depend on.
    pub fn skip(&mut self, token: u32) {
        self.blocks(token, false);
    }

    /// Appends a token whose logits nobody needs, but its routing.
    pub fn route(&mut self, token: u32) {
        self.blocks(token, true);
    }

    /// Appends a token and returns its logits.
    pub fn next(&mut self, token: u32) -> Vec<f32> {
        let x = self.blocks(token, true);
        let role = if self.spec.tied_lm_head { TensorRole::TokenEmbedding } else { TensorRole::Output };
        let gain = self.tensor(WeightUnit::LmHead, TensorRole::OutputNorm);
        let normed = kernels::norm(&x, gain, self.spec.norm_epsilon);
        let logits = kernels::matvec(self.tensor(WeightUnit::LmHead, role), &normed);
        let scales = self.spec.scales;
        let scaled = |logit| f64::from(logit) * f64::from(scales.logits);
        logits.into_iter().map(|logit| kernels::soft_cap(scaled(logit), f64::from(scales.logit_cap)) as f32).collect()
    }

    /// The output of the last block. If `wanted` is false, only its keys and values are valid.
    fn blocks(&mut self, token: u32, wanted: bool) -> Vec<f32> {
        let hidden = self.spec.hidden as usize;
        let table = self.tensor(WeightUnit::Embedding, TensorRole::TokenEmbedding);
        let scale = self.spec.scales.embedding;
        let mut x: Vec<f32> = table[token as usize * hidden..][..hidden].iter().map(|v| v * scale).collect();
        self.block_inputs = self.inputs_of_blocks(token, &x);
        self.routing = Routing { chosen: Vec::new(), early: vec![Vec::new(); EARLIEST] };
        let mut before = VecDeque::from(vec![x.clone(); EARLIEST]);
        for block in 0..self.spec.blocks.len() {
            let recurrent = self.spec.recurrent(block).cloned();
            let query = match &recurrent {
                Some(recurrent) => self.recur(block, recurrent, &mut x),
                None => self.remember(block, &x),
            };
            if wanted || block + 1 < self.spec.blocks.len() {
                if recurrent.is_none() {
                    self.attend(block, &query, &mut x);
                }
                let early = before.iter().filter_map(|x| self.choose(block, x));
                let early: Vec<_> = early.map(|(_, chosen)| ids(&chosen)).collect();
                self.routing.early.iter_mut().zip(early).for_each(|(ahead, chosen)| ahead.push(chosen));
                let chosen = self.feed_forward(block, &mut x);
                self.routing.chosen.extend(chosen.map(|chosen| ids(&chosen)));
                before.pop_back();
                before.push_front(x.clone());
            }
        }
        x
    }

    /// Stores the next position's keys and values and returns its queries.
    fn remember(&mut self, block: usize, x: &[f32]) -> Vec<f32> {
        let unit = WeightUnit::TokenMixer(BlockIndex(block as u16));
        let a = self.spec.attention(block).clone();
        if let Some(latent) = a.latent {
            return self.remember_latent(block, &a, latent, x);
        }
        let epsilon = self.spec.norm_epsilon;
        let normed = self.before(unit, TensorRole::AttentionNorm, a.norms.before, x);
        let project = |matrix, bias| {
            let y = kernels::matvec(self.tensor(unit, matrix), &normed);
            if a.qkv_bias { plus(y, self.tensor(unit, bias)) } else { y }
        };
        let mut query = project(TensorRole::Query, TensorRole::QueryBias);
        let gates = if a.output_gate { split_gates(&mut query, a.head_dim as usize) } else { Vec::new() };
        let of_value = if a.values_are_keys { TensorRole::Key } else { TensorRole::Value };
        let (mut key, mut value) = match a.kv_of {
            None => (project(TensorRole::Key, TensorRole::KeyBias), project(of_value, TensorRole::ValueBias)),
            Some(_) => (Vec::new(), Vec::new()),
        };
        let dim = a.head_dim as usize;
        if a.value_norm {
            let ones = vec![1.0; dim];
            value = value.chunks_exact(dim).flat_map(|head| kernels::norm(head, &ones, epsilon)).collect();
        }
        // A block that stores the keys of others has stored this position's.
        let known = self.keys[self.spec.kv_owner(block)].len();
        let position = (if a.kv_of.is_some() { known - 1 } else { known }) as u32;
        let (frequencies, factors) = (a.rope.frequencies(), self.factors(unit, &a.rope));
        let pairs = match a.rope.pairs {
            RopePairs::Adjacent => Pairs::Adjacent,
            RopePairs::Halves => Pairs::Halves,
        };
        for (heads, gain) in [(&mut query, TensorRole::QueryNorm), (&mut key, TensorRole::KeyNorm)] {
            if a.qk_norm == QkNorm::Row {
                *heads = kernels::norm(heads, self.tensor(unit, gain), epsilon);
            }
            for head in heads.chunks_exact_mut(dim) {
                if a.qk_norm == QkNorm::Unit {
                    head.copy_from_slice(&kernels::norm(head, &vec![1.0; dim], epsilon));
                }
                if a.qk_norm == QkNorm::Head {
                    head.copy_from_slice(&kernels::norm(head, self.tensor(unit, gain), epsilon));
                }
                kernels::rotate_by(head, position, &frequencies, a.rope.magnitude, pairs, factors);
            }
        }
        if let Some(temperature) = a.rope.temperature {
            let steps = ((position + temperature.shift) / temperature.step) as f32;
            let warmth = 1.0 + temperature.scale * (steps + 1.0).ln();
            query.iter_mut().for_each(|v| *v *= warmth);
        }
        let stored = |heads: &[f32]| -> Vec<f32> {
            let head = |head| kernels::load(self.kv_type, &kernels::store(self.kv_type, head), dim);
            heads.chunks_exact(dim).flat_map(head).collect()
        };
        if a.kv_of.is_none() {
            let (key, value) = (stored(&key), stored(&value));
            self.keys[block].push(key);
            self.values[block].push(value);
        }
        query.extend(gates);
        query
    }

    /// Adds the attention output of the newest position to the hidden vector.
    fn attend(&self, block: usize, query: &[f32], x: &mut [f32]) {
        let unit = WeightUnit::TokenMixer(BlockIndex(block as u16));
        let a = self.spec.attention(block);
        let dim = a.head_dim as usize;
        let seen = a.window.map_or(usize::MAX, |window| window as usize);
        let owner = self.spec.kv_owner(block);
        let known = self.keys[owner].len();
        let first = if a.chunked { (known - 1) / seen * seen } else { known.saturating_sub(seen) };
        let (query, gates) = query.split_at((a.heads * a.head_dim) as usize);
        let mut attended = Vec::with_capacity(query.len());
        for (head, query) in query.chunks_exact(dim).enumerate() {
            let kv = head / (a.heads / a.kv_heads) as usize;
            let of = |cache: &'_ [Vec<f32>]| -> Vec<Vec<f32>> {
                cache[first..].iter().map(|row| row[kv * dim..(kv + 1) * dim].to_vec()).collect()
            };
            let (keys, values) = (of(&self.keys[owner]), of(&self.values[owner]));
            let keys: Vec<&[f32]> = keys.iter().map(Vec::as_slice).collect();
            let values: Vec<&[f32]> = values.iter().map(Vec::as_slice).collect();
            let sink = a.sinks.then(|| self.tensor(unit, TensorRole::Sinks)[head]);
            let how = kernels::Scores { scale: f64::from(a.scale), cap: f64::from(a.score_cap), sink };
            attended.extend(kernels::attention_with(query, &keys, &values, how));
        }
        if let Some(latent) = a.latent {
            let up = self.tensor(unit, TensorRole::ValueUp).chunks_exact((latent.value * latent.rank) as usize);
            let heads = attended.chunks_exact(dim).map(|head| &head[..latent.rank as usize]);
            attended = up.zip(heads).flat_map(|(matrix, head)| kernels::matvec(matrix, head)).collect();
        }
        attended.iter_mut().zip(gates).for_each(|(v, gate)| *v *= kernels::sigmoid(f64::from(*gate)) as f32);
        let mut out = kernels::matvec(self.tensor(unit, TensorRole::AttentionOutput), &attended);
        if a.output_bias {
            out = plus(out, self.tensor(unit, TensorRole::AttentionOutputBias));
        }
        self.add(unit, a.norms.after.then_some(TensorRole::AttentionPostNorm), &out, x);
    }

    /// The input of a half of a block: normalized, or as it is.
    fn before(&self, unit: WeightUnit, gain: TensorRole, normalizes: bool, x: &[f32]) -> Vec<f32> {
        if normalizes { kernels::norm(x, self.tensor(unit, gain), self.spec.norm_epsilon) } else { x.to_vec() }
    }

    /// Adds the output of a half of a block to the hidden vector.
    fn add(&self, unit: WeightUnit, norm: Option<TensorRole>, out: &[f32], x: &mut [f32]) {
        let normed = norm.map(|gain| kernels::norm(out, self.tensor(unit, gain), self.spec.norm_epsilon));
        let scale = self.spec.scales.residual;
        x.iter_mut().zip(normed.as_deref().unwrap_or(out)).for_each(|(x, y)| *x += scale * y);
    }

    /// A block's rotary factors; empty if it has none.
    fn factors(&self, unit: WeightUnit, rope: &RopeSpec) -> &[f32] {
        let role = match rope.factors {
            RopeFactors::None => return &[],
            _ if rope.dims == 0 => return &[],
            RopeFactors::ByContext { original } if self.context > original => TensorRole::RopeFactorsLong,
            RopeFactors::Fixed | RopeFactors::ByContext { .. } => TensorRole::RopeFactors,
        };
        self.tensor(unit, role)
    }

    fn network(&self, unit: WeightUnit, activation: Activation, biases: bool, normed: &[f32]) -> Vec<f32> {
        let product = |matrix, bias, x: &[f32]| {
            let y = kernels::matvec(self.tensor(unit, matrix), x);
            if biases { plus(y, self.tensor(unit, bias)) } else { y }
        };
        let gate = product(TensorRole::Gate, TensorRole::GateBias, normed);
        let up = product(TensorRole::Up, TensorRole::UpBias, normed);
        let inner = match activation {
            Activation::SwiGlu => kernels::swiglu(&gate, &up),
            Activation::GeGlu => kernels::geglu(&gate, &up),
            Activation::ClampedSwiGlu => kernels::clamped_swiglu(&gate, &up),
        };
        product(TensorRole::Down, TensorRole::DownBias, &inner)
    }

    /// The input of a block's experts and the router's choice; `None` if the block has no experts.
    fn choose(&self, block: usize, x: &[f32]) -> Option<(Vec<f32>, Choice)> {
        let FeedForwardSpec::Experts(experts) = &self.spec.blocks[block].feed_forward else { return None };
        let unit = WeightUnit::Router(BlockIndex(block as u16));
        Some(router::choose(experts, self.spec.norm_epsilon, |role| self.tensor(unit, role), x))
    }

    /// Adds the feed-forward output to the hidden vector and returns the experts that were chosen, if there are any.
    fn feed_forward(&self, block: usize, x: &mut [f32]) -> Option<Choice> {
        let index = BlockIndex(block as u16);
        match &self.spec.blocks[block].feed_forward {
            FeedForwardSpec::Dense(dense) => {
                let unit = WeightUnit::Dense(index);
                let normed = self.before(unit, TensorRole::FeedForwardNorm, dense.norms.before, x);
                let out = self.network(unit, dense.activation, false, &normed);
                self.add(unit, dense.norms.after.then_some(TensorRole::FeedForwardPostNorm), &out, x);
                self.add_block_input(block, unit, x);
                self.end_block(unit, x);
                None
            }
            FeedForwardSpec::Experts(experts) => {
                let (normed, chosen) = self.choose(block, x)?;
                let network = |unit, biases| self.network(unit, experts.activation, biases, &normed);
                if let Some(shared) = experts.shared.filter(|_| !experts.apart) {
                    let unit = WeightUnit::SharedExpert(index);
                    let mut out = network(unit, false);
                    if shared.gated {
                        let score = kernels::dot(self.tensor(unit, TensorRole::SharedRouter), &normed);
                        let gate = (1.0 / (1.0 + (-score).exp())) as f32;
                        out.iter_mut().for_each(|v| *v *= gate);
                    }
                    self.add(unit, None, &out, x);
                }
                let expert = |&(id, weight): &(u32, f32)| {
                    let unit = WeightUnit::Expert(index, ExpertId(id as u16));
                    if experts.weigh_input {
                        let input: Vec<f32> = normed.iter().map(|v| v * weight).collect();
                        self.network(unit, experts.activation, experts.biases, &input)
                    } else {
                        network(unit, experts.biases)
                    }
                };
                let parts: Vec<Vec<f32>> = chosen.iter().map(expert).collect();
                let parts: Vec<&[f32]> = parts.iter().map(Vec::as_slice).collect();
                let weight = |gate: f32| if experts.weigh_input { 1.0 } else { gate };
                let gates: Vec<f32> = chosen.iter().map(|(_, gate)| weight(*gate)).collect();
                let sum = kernels::combine(&parts, &gates);
                let unit = WeightUnit::Router(index);
                if experts.apart {
                    let sum = self.beside(index, experts.activation, &sum, x);
                    self.add(unit, Some(TensorRole::FeedForwardPostNorm), &sum, x);
                } else {
                    self.add(unit, None, &sum, x)
                }
                self.end_block(unit, x);
                Some(chosen)
            }
        }
    }
}

impl Reference {
    /// Stores the next position's compressed key, which is its value too, and returns the queries in its space.
    fn remember_latent(&mut self, block: usize, a: &AttentionSpec, latent: LatentSpec, x: &[f32]) -> Vec<f32> {
        let unit = WeightUnit::TokenMixer(BlockIndex(block as u16));
        let product = |role, x: &[f32]| kernels::matvec(self.tensor(unit, role), x);
        let normed = self.before(unit, TensorRole::AttentionNorm, true, x);
        let position = self.keys[block].len() as u32;
        let (rank, key) = (latent.rank as usize, latent.key as usize);
        let frequencies = a.rope.frequencies();
        let turn = |part: &mut [f32]| {
            kernels::rotate_by(part, position, &frequencies, a.rope.magnitude, Pairs::Adjacent, &[]);
        };
        let queries = match latent.query_rank {
            None => product(TensorRole::Query, &normed),
            Some(_) => {
                let compressed = product(TensorRole::QueryDown, &normed);
                product(TensorRole::Query, &self.before(unit, TensorRole::QueryDownNorm, true, &compressed))
            }
        };
        let up = self.tensor(unit, TensorRole::KeyUp).chunks_exact(rank * key);
        let query = queries.chunks_exact(key + a.rope.dims as usize).zip(up).flat_map(|(head, up)| {
            let mut query = kernels::matvec(up, &head[..key]);
            query.extend(&head[key..]);
            turn(&mut query[rank..]);
            query
        });
        let query: Vec<f32> = query.collect();
        let mut cached = self.before(unit, TensorRole::LatentNorm, true, &product(TensorRole::Latent, &normed));
        cached.extend(product(TensorRole::LatentRotated, &normed));
        turn(&mut cached[rank..]);
        let cached = kernels::load(self.kv_type, &kernels::store(self.kv_type, &cached), cached.len());
        self.keys[block].push(cached.clone());
        self.values[block].push(cached);
        query
    }

    /// A token's inputs of all blocks; empty if blocks have none.
    fn inputs_of_blocks(&self, token: u32, hidden: &[f32]) -> Vec<f32> {
        let Some(width) = self.spec.block_inputs.map(|width| width as usize) else { return Vec::new() };
        let (unit, all) = (WeightUnit::Embedding, width * self.spec.blocks.len());
        let row = &self.tensor(unit, TensorRole::BlockEmbedding)[token as usize * all..][..all];
        let scale = 1.0 / (hidden.len() as f32).sqrt();
        let mut added = kernels::matvec(self.tensor(unit, TensorRole::BlockProjection), hidden);
        added.iter_mut().for_each(|v| *v *= scale);
        let gain = self.tensor(unit, TensorRole::BlockProjectionNorm);
        let normed = added.chunks_exact(width).flat_map(|part| kernels::norm(part, gain, self.spec.norm_epsilon));
        let factor = (width as f32).sqrt();
        row.iter().zip(normed).map(|(v, added)| (v * factor + added) * std::f32::consts::FRAC_1_SQRT_2).collect()
    }

    /// A block's input, gated by the hidden vector and added to it.
    fn add_block_input(&self, block: usize, unit: WeightUnit, x: &mut [f32]) {
        let Some(width) = self.spec.block_inputs.map(|width| width as usize) else { return };
        let gate = kernels::matvec(self.tensor(unit, TensorRole::InputGate), x);
        let gated = kernels::geglu(&gate, &self.block_inputs[block * width..][..width]);
        let out = kernels::matvec(self.tensor(unit, TensorRole::InputProjection), &gated);
        self.add(unit, Some(TensorRole::InputPostNorm), &out, x);
    }

    /// The learned factor at the end of a block.
    fn end_block(&self, unit: WeightUnit, x: &mut [f32]) {
        if self.spec.scales.of_blocks {
            let factor = self.tensor(unit, TensorRole::BlockScale)[0];
            x.iter_mut().for_each(|v| *v *= factor);
        }
    }

    /// The sum of experts and of the network beside them, each after its norm.
    fn beside(&self, block: BlockIndex, activation: Activation, experts: &[f32], x: &[f32]) -> Vec<f32> {
        let (router, shared) = (WeightUnit::Router(block), WeightUnit::SharedExpert(block));
        let normed = self.before(shared, TensorRole::FeedForwardNorm, true, x);
        let out = self.network(shared, activation, false, &normed);
        let out = self.before(shared, TensorRole::FeedForwardPostNorm, true, &out);
        plus(self.before(router, TensorRole::ExpertsPostNorm, true, experts), &out)
    }
}

/// Takes the gate behind each query head out of the queries.
fn split_gates(query: &mut Vec<f32>, dim: usize) -> Vec<f32> {
    let both = std::mem::take(query);
    let mut gates = Vec::new();
    for head in both.chunks_exact(2 * dim) {
        query.extend(&head[..dim]);
        gates.extend(&head[dim..]);
    }
    gates
}

fn ids(chosen: &[(u32, f32)]) -> Vec<ExpertId> {
    chosen.iter().map(|(id, _)| ExpertId(*id as u16)).collect()
}

fn plus(mut values: Vec<f32>, bias: &[f32]) -> Vec<f32> {
    values.iter_mut().zip(bias).for_each(|(value, bias)| *value += bias);
    values
}
