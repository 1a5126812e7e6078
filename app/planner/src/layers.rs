//! The model as a chain of layers: embedding, blocks, LM head. Bytes and costs of each, with sums over ranges in
//! constant time.

use potluck_plan::{BlockIndex, BlockRange, Bytes, KV_PAGE_TOKENS, ModelShape, Plan, Stage, WeightUnit, WireType};

/// One layer (dynamic-partitioning.txt 4.3.1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Layer {
    /// Weight bytes.
    pub weights: Bytes,
    /// Bytes of GPU memory: weights and KV cache, as the engine lays them out.
    pub memory: Bytes,
    /// Bytes of its largest buffer that must fit one binding: its keys, or its values. Matrices are split.
    pub buffer: Bytes,
    /// Cost of decoding one token: bytes of weights that it reads.
    pub decode: f64,
    /// Cost of one token of a prefill chunk.
    pub prefill: f64,
    /// Bytes per token that enter it over a link.
    pub input: Bytes,
    /// Bytes per token that leave it over a link.
    pub output: Bytes,
}

/// Layers `start..end` of a model's [`Layers`]: 0 is the embedding, the last one is the LM head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerRange {
    /// First layer.
    pub start: usize,
    /// One past the last layer.
    pub end: usize,
}

/// All layers of a model with prefix sums (dynamic-partitioning.txt 6.3.1).
#[derive(Clone, Debug, PartialEq)]
pub struct Layers {
    layers: Vec<Layer>,
    weights: Vec<u64>,
    memory: Vec<u64>,
    decode: Vec<f64>,
    prefill: Vec<f64>,
    tied: Bytes,
}

/// Bytes of a frame besides its numbers.
pub(crate) const FRAME: u64 = 48;
/// Bytes of the logits result that the last stage returns for a greedy token.
const LOGITS_RESULT: u64 = 16;

impl Layers {
    /// Layers from a model's sizes: memory is weights plus KV cache, decode reads every active weight once.
    pub fn from_shape(shape: &ModelShape, context: u32, wire: WireType) -> Self {
        let hidden = Bytes(wire.bytes(u64::from(shape.hidden)));
        let token = Bytes(4);
        let embedding = Layer {
            weights: shape.embedding,
            memory: shape.embedding,
            buffer: Bytes::ZERO,
            decode: 0.0,
            prefill: 0.0,
            input: token,
            output: hidden,
        };
        let positions = u64::from(context).next_multiple_of(u64::from(KV_PAGE_TOKENS));
        let blocks = shape.blocks.iter().map(|block| {
            let kv_cache = Bytes(block.kv_cache_per_position.0.saturating_mul(u64::from(context)));
            let active = block.active_weights().0 as f64;
            Layer {
                weights: block.weights(),
                memory: [block.weights(), kv_cache, block.state].into_iter().sum(),
                buffer: Bytes(
                    block.kv_cache_per_position.0.saturating_mul(positions) / u64::from(block.kv_buffers.max(1)),
                )
                .max(block.state),
                decode: active,
                prefill: active,
                input: hidden,
                output: hidden,
            }
        });
        let cost = shape.lm_head.0 as f64;
        let head = Layer {
            weights: shape.lm_head,
            memory: shape.lm_head,
            buffer: Bytes::ZERO,
            decode: cost,
            // Only the last token of a prompt passes the LM head.
            prefill: 0.0,
            input: hidden,
            output: Bytes(LOGITS_RESULT),
        };
        let tied = if shape.tied_lm_head { shape.lm_head } else { Bytes::ZERO };
        Self::new(std::iter::once(embedding).chain(blocks).chain([head]).collect(), tied)
    }

    /// These layers; `tied` bytes count once where one device has both the embedding and the LM head.
    pub fn new(layers: Vec<Layer>, tied: Bytes) -> Self {
        Self {
            weights: prefix(&layers, |layer| layer.weights.0, u64::saturating_add),
            memory: prefix(&layers, |layer| layer.memory.0, u64::saturating_add),
            decode: prefix(&layers, |layer| layer.decode, |a, b| a + b),
            prefill: prefix(&layers, |layer| layer.prefill, |a, b| a + b),
            layers,
            tied,
        }
    }

    /// The same layers with a measured decode cost of the LM head: a large matrix runs at another rate than a block.
    #[must_use]
    pub fn with_lm_head(self, cost: f64) -> Self {
        let Self { mut layers, tied, .. } = self;
        if let Some(head) = layers.last_mut() {
            head.decode = cost;
        }
        Self::new(layers, tied)
    }

    /// Cost of decoding one token in a stage of a plan, embedding and LM head included where they are its own.
    pub fn stage_decode(&self, plan: &Plan, stage: &Stage) -> f64 {
        self.decode(self.range(stage.blocks, plan.embeds(stage.id), plan.has_lm_head(stage.id)))
    }

    /// Cost of one token of a prefill chunk in a stage of a plan.
    pub fn stage_prefill(&self, plan: &Plan, stage: &Stage) -> f64 {
        self.prefill(self.range(stage.blocks, plan.embeds(stage.id), plan.has_lm_head(stage.id)))
    }

    /// Cost of decoding one token in these blocks, without embedding and LM head.
    pub fn decode_cost(&self, blocks: BlockRange) -> f64 {
        self.decode(self.range(blocks, false, false))
    }

    /// Cost of one token of a prefill chunk in these blocks.
    pub fn prefill_cost(&self, blocks: BlockRange) -> f64 {
        self.prefill(self.range(blocks, false, false))
    }

    /// Number of layers, embedding and LM head included.
    pub fn count(&self) -> usize {
        self.layers.len()
    }

    /// The layers in order.
    pub fn iter(&self) -> impl Iterator<Item = &Layer> {
        self.layers.iter()
    }

    pub(crate) fn all(&self) -> LayerRange {
        LayerRange { start: 0, end: self.count() }
    }

    /// The layers of a stage.
    pub(crate) fn range(&self, blocks: BlockRange, embeds: bool, has_lm_head: bool) -> LayerRange {
        LayerRange {
            start: if embeds { 0 } else { usize::from(blocks.start) + 1 },
            end: usize::from(blocks.end) + 1 + usize::from(has_lm_head),
        }
    }

    /// The blocks among the layers.
    pub(crate) fn blocks(&self, range: LayerRange) -> BlockRange {
        let last = self.count().saturating_sub(2);
        let index = |layer: usize| layer.saturating_sub(1).min(last) as u16;
        BlockRange::new(index(range.start), index(range.end))
    }

    /// Bytes that a device saves if it has both ends of a model with a tied LM head.
    pub(crate) fn tied(&self, range: LayerRange) -> Bytes {
        if range == self.all() { self.tied } else { Bytes::ZERO }
    }

    /// Bytes that a device saves which has the embedding and the LM head, in one range or in several.
    pub(crate) fn tied_of(&self, has_layer: impl Fn(usize) -> bool) -> Bytes {
        let all = self.all();
        if has_layer(all.start) && has_layer(all.end - 1) { self.tied } else { Bytes::ZERO }
    }

    pub(crate) fn weights(&self, range: LayerRange) -> Bytes {
        Bytes(self.weights[range.end] - self.weights[range.start]).saturating_sub(self.tied(range))
    }

    pub(crate) fn memory(&self, range: LayerRange) -> Bytes {
        Bytes(self.memory[range.end] - self.memory[range.start]).saturating_sub(self.tied(range))
    }

    pub(crate) fn decode(&self, range: LayerRange) -> f64 {
        self.decode[range.end] - self.decode[range.start]
    }

    pub(crate) fn prefill(&self, range: LayerRange) -> f64 {
        self.prefill[range.end] - self.prefill[range.start]
    }

    /// Bytes of the message with `tokens` tokens to layer `at`; one past the last layer is the result for the
    /// coordinator.
    pub(crate) fn message(&self, at: usize, tokens: u32) -> Bytes {
        let token = match self.layers.get(at) {
            Some(layer) => layer.input,
            None => self.layers.last().map_or(Bytes::ZERO, |layer| layer.output),
        };
        Bytes(token.0.saturating_mul(u64::from(tokens)).saturating_add(FRAME))
    }
}

/// The layer of a weight unit.
pub(crate) fn layer_of(unit: WeightUnit, count: usize) -> usize {
    match unit {
        WeightUnit::Embedding => 0,
        WeightUnit::LmHead => count - 1,
        other => other.block().map_or(0, |BlockIndex(block)| usize::from(block) + 1),
    }
}

/// Prefix sums, one more than there are items.
pub(crate) fn prefix<A, T: Copy + Default>(items: &[A], value: impl Fn(&A) -> T, add: impl Fn(T, T) -> T) -> Vec<T> {
    let mut sum = T::default();
    let sums = items.iter().map(|item| {
        sum = add(sum, value(item));
        sum
    });
    std::iter::once(T::default()).chain(sums).collect()
}
