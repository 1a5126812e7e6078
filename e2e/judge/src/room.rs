//! Devices that share a model by a plan, with separate engines on one adapter.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail, ensure};
use futures::StreamExt;
use futures::channel::mpsc::{self, UnboundedReceiver};
use futures::lock::Mutex;
use potluck_engine::{Engine, Gpu, Settings};
use potluck_gguf::{join, parse};
use potluck_model::{ModelSpec, UnitMap};
use potluck_plan::{
    Arithmetic, BatchToken, BlockRange, Computed, ConversationId, ExpertHolder, ExpertId, ExpertOutputs, ExpertRoute,
    Input, KernelClass, KvCacheType, LmHeadRequest, ModelId, ModelShape, Outcome, PeerId, Plan, PlanEpoch, Position,
    RemoteExperts, Stage, StageId, Task, Then, Ticket, WireType, Work,
};

/// How a model is split over devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// One device.
    One,
    /// Three stages on three devices.
    ThreeStages,
    /// One stage, with all experts of every block on two other devices.
    ExpertsElsewhere,
}

/// How a room computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// How products are computed.
    pub arithmetic: Arithmetic,
    /// Element type of the keys and values.
    pub kv_cache: KvCacheType,
    /// Positions of the KV cache.
    pub context: u32,
    /// Tokens whose logits come back at a time.
    pub logits_read: u32,
}

impl Setup {
    /// Exact products, and keys and values in 32-bit floats.
    pub fn exact(context: u32) -> Self {
        Self { arithmetic: Arithmetic::Exact, kv_cache: KvCacheType::F32, context, logits_read: 1 }
    }
}

/// Devices with engines, and their plan.
pub struct Room {
    plan: Plan,
    engines: BTreeMap<PeerId, Device>,
    hidden: usize,
    conversations: Cell<u32>,
}

struct Device {
    engine: Engine,
    results: Mutex<UnboundedReceiver<Computed>>,
    tickets: Cell<u64>,
}

impl Room {
    /// Loads a model from the bytes of its file, with a cache of `context` positions. It computes exactly.
    ///
    /// # Errors
    /// An error of the file or an engine.
    pub async fn open(gpu: &Gpu, file: &[u8], split: Split, context: u32) -> Result<Self> {
        Self::open_with(gpu, file, split, &Setup::exact(context)).await
    }

    /// The same for any setup.
    ///
    /// # Errors
    /// An error of the file or an engine.
    pub async fn open_with(gpu: &Gpu, file: &[u8], split: Split, setup: &Setup) -> Result<Self> {
        let model = join([parse(file)?])?;
        let (spec, units) = ModelSpec::from_gguf(&model)?;
        let shape = spec.shape(&units, ModelId([0; 32]), setup.kv_cache);
        let plan = plan(&shape, split, setup);
        plan.validate(&shape)?;
        let mut engines = BTreeMap::new();
        for peer in plan.peers() {
            let held: BTreeSet<_> = plan.units_for(peer, &shape).into_iter().collect();
            let device = Device::open(gpu, spec.clone(), units.clone(), setup).await?;
            device.engine.reserve(&held)?;
            drive(&device.engine, device.engine.load_from(file)).await?;
            drive(&device.engine, device.engine.prepare()).await?;
            engines.insert(peer, device);
        }
        Ok(Self { plan, engines, hidden: spec.hidden as usize, conversations: Cell::new(0) })
    }

    /// Starts a conversation with an empty KV cache.
    pub fn conversation(&self) -> ConversationId {
        self.conversations.set(self.conversations.get() + 1);
        ConversationId(self.conversations.get())
    }

    /// Frees a conversation's KV cache on all devices.
    pub fn forget(&self, conversation: ConversationId) {
        self.engines.values().for_each(|device| device.engine.forget(conversation));
    }

    /// Runs tokens through all stages, starting at position `base`.
    ///
    /// # Errors
    /// An error of an engine.
    pub async fn forward(
        &self,
        conversation: ConversationId,
        base: usize,
        tokens: &[u32],
        class: KernelClass,
        head: LmHeadRequest,
    ) -> Result<Outcome> {
        self.stages(conversation, base, tokens, class, Then::LmHead(head)).await
    }

    /// The hidden vectors of tokens after all blocks.
    ///
    /// # Errors
    /// An error of an engine.
    pub async fn hidden(
        &self,
        conversation: ConversationId,
        base: usize,
        tokens: &[u32],
        class: KernelClass,
    ) -> Result<Vec<f32>> {
        vectors(self.stages(conversation, base, tokens, class, Then::Hidden).await?)
    }

    /// The LM head alone, of hidden vectors after all blocks.
    ///
    /// # Errors
    /// An error of the engine.
    pub async fn head(
        &self,
        rows: Vec<BatchToken>,
        class: KernelClass,
        hidden: Vec<f32>,
        head: LmHeadRequest,
    ) -> Result<Outcome> {
        let stage = self.plan.stages.last().context("a plan has a stage")?;
        let blocks = BlockRange::new(stage.blocks.end, stage.blocks.end);
        let (input, then) = (Input::Hidden(hidden), Then::LmHead(head));
        self.engines[&stage.peer]
            .run(Task::Forward { batch: rows, class, input, blocks, then, biases: Vec::new() })
            .await
    }

    /// Runs tokens through all stages; `last` follows the last block.
    async fn stages(
        &self,
        conversation: ConversationId,
        base: usize,
        tokens: &[u32],
        class: KernelClass,
        last: Then,
    ) -> Result<Outcome> {
        let position = |i: usize| Position((base + i) as u32);
        let rows: Vec<BatchToken> =
            (0..tokens.len()).map(|i| BatchToken { conversation, position: position(i) }).collect();
        let mut input = Input::Tokens(tokens.to_vec());
        let (last_stage, before) = self.plan.stages.split_last().context("a plan has a stage")?;
        for stage in before {
            input = Input::Hidden(vectors(self.stage(stage, &rows, class, input, Then::Hidden).await?)?);
        }
        self.stage(last_stage, &rows, class, input, last).await
    }

    async fn stage(
        &self,
        stage: &Stage,
        rows: &[BatchToken],
        class: KernelClass,
        mut input: Input,
        then: Then,
    ) -> Result<Outcome> {
        let device = &self.engines[&stage.peer];
        let mut cursor = stage.blocks.start;
        for remote in &stage.remote {
            let blocks = BlockRange::new(cursor, remote.block.0);
            let task = Task::Forward {
                batch: rows.to_vec(),
                class,
                input,
                blocks,
                then: Then::Route(remote.block),
                biases: Vec::new(),
            };
            let Outcome::Routed { residual, normed, routes } = device.run(task).await? else {
                bail!("a routed block did not come back routed");
            };
            let outputs = self.experts(remote, class, &normed, &routes).await?;
            input = Input::Experts(ExpertOutputs { block: remote.block, residual, routes, outputs });
            cursor = remote.block.0 + 1;
        }
        let blocks = BlockRange::new(cursor, stage.blocks.end);
        device.run(Task::Forward { batch: rows.to_vec(), class, input, blocks, then, biases: Vec::new() }).await
    }

    /// One vector for each token and expert, in router order, each from the expert's first holder.
    async fn experts(
        &self,
        remote: &RemoteExperts,
        class: KernelClass,
        normed: &[f32],
        routes: &[ExpertRoute],
    ) -> Result<Vec<f32>> {
        let pairs = || {
            routes.iter().enumerate().flat_map(|(token, route)| route.experts.iter().map(move |(id, _)| (token, *id)))
        };
        let mut outputs = vec![0.0; pairs().count() * self.hidden];
        let first = |expert: ExpertId| remote.holders[usize::from(expert.0)].first();
        for holder in remote.holders.iter().filter_map(|holders| holders.first()).collect::<BTreeSet<_>>() {
            let ExpertHolder::Peer(peer) = holder else { bail!("every expert is elsewhere here") };
            let (mut experts, mut vectors, mut its) = (Vec::new(), Vec::new(), Vec::new());
            for (pair, (token, expert)) in pairs().enumerate().filter(|(_, (_, expert))| first(*expert) == Some(holder))
            {
                if its.last().is_none_or(|(_, last)| *last != token) {
                    experts.push(Vec::new());
                    vectors.extend(&normed[token * self.hidden..(token + 1) * self.hidden]);
                }
                experts.last_mut().into_iter().for_each(|row: &mut Vec<ExpertId>| row.push(expert));
                its.push((pair, token));
            }
            if its.is_empty() {
                continue;
            }
            let task = Task::Experts { block: remote.block, class, normed: vectors, experts, sum: None };
            let Outcome::ExpertOutputs(computed) = self.engines[peer].run(task).await? else {
                bail!("no outputs came back")
            };
            ensure!(computed.len() == its.len() * self.hidden, "{} values of {} experts", computed.len(), its.len());
            for ((pair, _), vector) in its.iter().zip(computed.chunks(self.hidden)) {
                outputs[pair * self.hidden..(pair + 1) * self.hidden].copy_from_slice(vector);
            }
        }
        Ok(outputs)
    }
}

impl Device {
    async fn open(gpu: &Gpu, spec: ModelSpec, units: UnitMap, setup: &Setup) -> Result<Self> {
        let (sink, results) = mpsc::unbounded();
        let Setup { arithmetic, kv_cache, context, logits_read } = *setup;
        let settings = Settings { context, arithmetic, kv_cache, logits_read, ..Settings::default() };
        // Ignore the error: a result that nobody awaits any more may be dropped.
        let on_result = Box::new(move |computed| drop(sink.unbounded_send(computed)));
        let engine = Engine::new(gpu, spec, units, settings, on_result)?;
        Ok(Self { engine, results: Mutex::new(results), tickets: Cell::new(0) })
    }

    async fn run(&self, task: Task) -> Result<Outcome> {
        let ticket = Ticket(self.tickets.get());
        self.tickets.set(ticket.0 + 1);
        self.engine.submit(Work { ticket, task })?;
        let mut results = self.results.lock().await;
        let computed = drive(&self.engine, results.next()).await.context("the engine is gone")?;
        ensure!(computed.ticket == ticket, "a result of other work came back");
        match computed.outcome {
            Outcome::Failed(sentence) => bail!(sentence),
            Outcome::DeviceLost => bail!("the GPU device was lost"),
            outcome => Ok(outcome),
        }
    }
}

/// Drives a future of the engine. Natively nothing else polls the device.
#[cfg(not(target_arch = "wasm32"))]
async fn drive<T>(engine: &Engine, future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|context| {
        engine.poll();
        let poll = future.as_mut().poll(context);
        if poll.is_pending() {
            std::thread::yield_now();
            context.waker().wake_by_ref();
        }
        poll
    })
    .await
}

/// Drives a future of the engine; the browser polls the device.
#[cfg(target_arch = "wasm32")]
async fn drive<T>(_: &Engine, future: impl Future<Output = T>) -> T {
    future.await
}

fn vectors(outcome: Outcome) -> Result<Vec<f32>> {
    match outcome {
        Outcome::Hidden(hidden) => Ok(hidden),
        other => bail!("no hidden vectors came back: {other:?}"),
    }
}

fn plan(shape: &ModelShape, split: Split, setup: &Setup) -> Plan {
    let peer = |id: u8| PeerId([id; 16]);
    let blocks = shape.all_blocks().end;
    let stages = match split {
        Split::One => vec![Stage::new(StageId(0), peer(0), BlockRange::new(0, blocks))],
        Split::ThreeStages => {
            let cuts = [0, 1, blocks - 1, blocks];
            let stage = |i: usize| Stage::new(StageId(i as u16), peer(i as u8), BlockRange::new(cuts[i], cuts[i + 1]));
            (0..3).map(stage).collect()
        }
        Split::ExpertsElsewhere => {
            let mut stage = Stage::new(StageId(0), peer(0), BlockRange::new(0, blocks));
            let holder = |expert: usize| vec![ExpertHolder::Peer(peer(1 + (expert % 2) as u8))];
            let remote =
                |block| RemoteExperts { block, holders: (0..shape.block_experts(block).len()).map(holder).collect() };
            let routed = shape.all_blocks().iter().filter(|&block| !shape.block_experts(block).is_empty());
            stage.remote = routed.map(remote).collect();
            vec![stage]
        }
    };
    Plan {
        epoch: PlanEpoch(1),
        model: ModelId([0; 32]),
        stages,
        pools: Vec::new(),
        wire: WireType::F32,
        expert_wire: WireType::F32,
        arithmetic: setup.arithmetic,
        context: setup.context,
        kv_cache: setup.kv_cache,
    }
}
