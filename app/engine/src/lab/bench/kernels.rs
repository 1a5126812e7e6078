//! Time by kernel class: takes the dispatches of one piece of work and repeats each class until it runs long enough to
//! measure.

use std::collections::BTreeSet;
use std::rc::Rc;

use potluck_plan::{BatchToken, BlockRange, Input, KernelClass, Then};

use crate::lab::microbench::map;
use crate::runtime::clock;
use crate::runtime::engine::Engine;
use crate::runtime::error::EngineError;
use crate::runtime::gpu::Gpu;
use crate::runtime::layout::PARAMS_STRIDE;
use crate::runtime::recorder::{Program, Step};
use crate::runtime::submit::PASSING;

/// Repeat a class until it takes this many milliseconds, because browsers round timestamps to 0.1 ms.
const LONG_ENOUGH: f64 = 5.0;
/// Maximum repeats, for classes that take almost no time.
const MAX_REPEATS: u32 = 4096;

/// The median of this many measurements counts. A class that takes longer than [`SLOW`] milliseconds is measured once.
const TRIES: usize = 3;
const SLOW: f64 = 500.0;

/// How the times were measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clocked {
    /// GPU timestamps at pass boundaries.
    Timestamps,
    /// Wall time of a submit and its readback, minus that of an empty submit.
    WallTime,
}

/// Time of one kernel class in one piece of work.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelTime {
    /// The class: `matvec`, `attention`, `matmul experts`.
    pub class: String,
    /// The class's variants in use.
    pub kernels: Vec<String>,
    /// Number of dispatches.
    pub dispatches: u32,
    /// Bytes of weights and KV cache read, counted again for each group of batch rows that reads them again.
    pub bytes: u64,
    /// Milliseconds of all dispatches together.
    pub millis: f64,
}

/// All kernel classes of a piece of work, in the order of their first dispatch.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelTimes {
    /// How the times were measured.
    pub clocked: Clocked,
    /// The classes.
    pub classes: Vec<KernelTime>,
}

/// The dispatches of one class in a program.
pub(crate) struct Part {
    class: String,
    program: Rc<Program>,
    /// Which steps, and the arena offset of the program's uniforms, in steps.
    steps: Vec<usize>,
    base: u32,
    reach: u32,
}

impl Part {
    /// A whole program, provided it is not cached and does not depend on the context.
    pub(crate) fn whole(program: Rc<Program>) -> Part {
        Part { class: String::new(), steps: (0..program.steps.len()).collect(), program, base: 0, reach: 0 }
    }

    fn steps(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().map(|&index| &self.program.steps[index])
    }

    fn bytes(&self) -> u64 {
        self.steps().map(|step| step.cost(self.reach)).sum()
    }

    /// Splits the steps so that no pass costs more than `max`, unless a single dispatch does.
    fn passes(&self, max: u64) -> Vec<&[usize]> {
        let mut passes = Vec::new();
        let (mut first, mut cost) = (0, 0);
        for (at, step) in self.steps().enumerate() {
            let more = step.cost(self.reach);
            if at > first && cost + more > max {
                passes.push(&self.steps[first..at]);
                (first, cost) = (at, 0);
            }
            cost += more;
        }
        passes.push(&self.steps[first..]);
        passes
    }

    fn encode(&self, pass: &mut wgpu::ComputePass<'_>, steps: &[usize]) {
        for &index in steps {
            let step = &self.program.steps[index];
            if let Some([x, y, z]) = step.size(self.reach) {
                pass.set_pipeline(&step.pipeline);
                pass.set_bind_group(0, &step.group, &[(self.base + index as u32) * PARAMS_STRIDE as u32]);
                pass.dispatch_workgroups(x, y, z);
            }
        }
    }
}

/// The parts of a program by class, in the order of their first dispatch.
fn by_class(program: &Rc<Program>, base: u32, reach: u32) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for (index, step) in program.steps.iter().enumerate().filter(|(_, step)| step.size(reach).is_some()) {
        let class = class_of(&step.kernel.name());
        match parts.iter_mut().find(|part| part.class == class) {
            Some(part) => part.steps.push(index),
            None => parts.push(Part { class, program: program.clone(), steps: vec![index], base, reach }),
        }
    }
    parts
}

/// Gives `matvec` for "matvec Q4_K workgroup ×4", `matvec experts` for "matvec Q4_K workgroup ×1 expert", and
/// `attention` for "flash attention F32 64".
fn class_of(kernel: &str) -> String {
    let kernel = kernel.strip_prefix("flash ").unwrap_or(kernel);
    let first = kernel.split(' ').next().unwrap_or(kernel);
    if kernel.contains(" expert") { format!("{first} experts") } else { first.to_owned() }
}

impl Engine {
    /// Runs the kernels of a forward pass class by class. The results are meaningless: repeats overwrite them, and
    /// kernels that add to a vector add many times.
    pub(super) async fn kernel_times(
        &self,
        rows: &[BatchToken],
        class: KernelClass,
        tokens: Vec<u32>,
        then: Then,
    ) -> Result<KernelTimes, EngineError> {
        let reach = rows.iter().map(|row| row.position.0 + 1).max().unwrap_or(0);
        let (program, base) = {
            let mut core = self.inner.core.borrow_mut();
            let blocks = BlockRange::new(0, core.model.spec.blocks.len() as u16);
            let program = core.forward(rows, class, &Input::Tokens(tokens), blocks, (then, &[]))?;
            if program.home.is_none() && program.steps.len() > PASSING as usize {
                return Err(EngineError::Gpu("this work has too many dispatches to be timed".to_owned()));
            }
            let base = program.home.unwrap_or(0);
            (program, base)
        };
        let mut times = KernelTimes { clocked: Clocked::WallTime, classes: Vec::new() };
        for part in by_class(&program, base, reach) {
            let (clocked, millis) = self.clock(&part).await?;
            times.clocked = clocked;
            let kernels: BTreeSet<String> = part.steps().map(|step| step.kernel.name()).collect();
            times.classes.push(KernelTime {
                kernels: kernels.into_iter().collect(),
                dispatches: part.steps.len() as u32,
                bytes: part.bytes(),
                millis,
                class: part.class,
            });
        }
        Ok(times)
    }

    /// Milliseconds for the dispatches of a part: the median of several measurements.
    pub(crate) async fn clock(&self, part: &Part) -> Result<(Clocked, f64), EngineError> {
        // The first run includes one-time costs.
        self.repeat(part, 1).await?;
        let mut repeat = 1;
        loop {
            let (clocked, spent) = self.repeat(part, repeat).await?;
            if spent >= LONG_ENOUGH || repeat >= MAX_REPEATS {
                let mut all = vec![spent];
                while all.len() < TRIES && spent < SLOW {
                    all.push(self.repeat(part, repeat).await?.1);
                }
                all.sort_by(f64::total_cmp);
                return Ok((clocked, all[all.len() / 2] / f64::from(repeat)));
            }
            let factor = (1.3 * LONG_ENOUGH / spent.max(0.01)).clamp(2.0, 64.0);
            repeat = ((f64::from(repeat) * factor) as u32).min(MAX_REPEATS);
        }
    }

    /// Runs a part until it gets no faster. A GPU that waited, for weights or a compiler, has lowered its clock (an H200 to a
    /// sixth) and raises it again only under load. Software adapters have no such clock. Ends when other work waits,
    /// or at `until`.
    pub(crate) async fn warm_up(&self, part: &Part, until: f64) -> Result<(), EngineError> {
        /// Milliseconds in which a clock has begun to rise.
        const AT_LEAST: f64 = 150.0;
        /// Milliseconds after which it is taken as warm.
        const AT_MOST: f64 = 1000.0;
        if !self.inner.core.borrow().model.profile.is_tunable() {
            return Ok(());
        }
        let started = clock::now();
        let mut best = f64::INFINITY;
        let mut is_rising = true;
        while (is_rising || clock::now() - started < AT_LEAST)
            && clock::now() < until.min(started + AT_MOST)
            && self.inner.core.borrow().is_idle()
        {
            let (_, millis) = self.clock(part).await?;
            is_rising = millis < 0.98 * best;
            best = best.min(millis);
        }
        Ok(())
    }

    /// Milliseconds for `repeat` runs of a part.
    pub(crate) async fn repeat(&self, part: &Part, repeat: u32) -> Result<(Clocked, f64), EngineError> {
        // A browser lets others run while it waits for the time stamps.
        #[cfg(not(target_arch = "wasm32"))]
        self.give_way().await;
        let timed = self.launch_timed(part, repeat);
        let gpu = timed.gpu.clone();
        let started = timed.started;
        let stamps = timed.stamps().await?;
        let wall = clock::now() - started;
        // A driver that has the feature but no clock returns zeros.
        if let Some(ticks) = stamps.filter(|ticks| *ticks > 0) {
            return Ok((Clocked::Timestamps, ticks as f64 * f64::from(gpu.queue.get_timestamp_period()) / 1e6));
        }
        let empty = self.launch_timed(part, 0);
        let started = empty.started;
        empty.stamps().await?;
        Ok((Clocked::WallTime, (wall - (clock::now() - started)).max(0.0)))
    }

    fn launch_timed(&self, part: &Part, repeat: u32) -> Timed {
        let core = self.inner.core.borrow();
        let gpu = core.model.gpu.clone();
        if part.program.home.is_none() {
            gpu.queue.write_buffer(core.recording().arena(), 0, &part.program.uniforms);
        }
        let passes = part.passes(core.model.profile.max_submit_bytes());
        let stamps = 2 * passes.len() as u32;
        let has_clock = gpu.device.features().contains(wgpu::Features::TIMESTAMP_QUERY);
        let set = has_clock.then(|| {
            gpu.device.create_query_set(&wgpu::QuerySetDescriptor {
                label: Some("bench"),
                ty: wgpu::QueryType::Timestamp,
                count: stamps,
            })
        });
        let buffer = |usage| {
            gpu.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("bench"),
                size: u64::from(stamps) * 8,
                usage,
                mapped_at_creation: false,
            })
        };
        let resolved = buffer(wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC);
        let read = buffer(wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
        let started = clock::now();
        for (number, pass) in (0u32..).zip(&passes) {
            let mut encoder =
                gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("bench") });
            let timestamp_writes = set.as_ref().map(|query_set| wgpu::ComputePassTimestampWrites {
                query_set,
                beginning_of_pass_write_index: Some(2 * number),
                end_of_pass_write_index: Some(2 * number + 1),
            });
            {
                let description = wgpu::ComputePassDescriptor { label: Some("bench"), timestamp_writes };
                let mut commands = encoder.begin_compute_pass(&description);
                (0..repeat).for_each(|_| part.encode(&mut commands, pass));
            }
            if number + 1 == passes.len() as u32 {
                if let Some(set) = &set {
                    encoder.resolve_query_set(set, 0..stamps, &resolved, 0);
                }
                encoder.copy_buffer_to_buffer(&resolved, 0, &read, 0, u64::from(stamps) * 8);
            }
            gpu.queue.submit([encoder.finish()]);
        }
        Timed { gpu, has_clock, read, started }
    }
}

/// Submitted passes.
struct Timed {
    gpu: Gpu,
    has_clock: bool,
    read: wgpu::Buffer,
    started: f64,
}

impl Timed {
    /// Waits for the passes and returns the sum of the ticks inside them, if there is a clock.
    async fn stamps(self) -> Result<Option<u64>, EngineError> {
        map(&self.gpu, &self.read).await?;
        if !self.has_clock {
            return Ok(None);
        }
        let view = self.read.get_mapped_range(..).map_err(|error| EngineError::Gpu(error.to_string()))?;
        let stamps: Vec<u64> =
            view.chunks_exact(8).map(|bytes| bytes.try_into().map_or(0, u64::from_le_bytes)).collect();
        Ok(Some(stamps.chunks_exact(2).map(|pair| pair[1].saturating_sub(pair[0])).sum()))
    }
}

#[cfg(test)]
mod tests {
    use super::class_of;

    #[test]
    fn a_class_is_a_kernel_without_its_variant() {
        assert_eq!(class_of("matvec Q4_K workgroup ×4 bias"), "matvec");
        assert_eq!(class_of("matmul Q6_K expert"), "matmul experts");
        assert_eq!(class_of("swiglu"), "swiglu");
    }
}
