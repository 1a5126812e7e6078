//! Measures how fast this device streams weights through the decode kernels, for planners.

use std::rc::Rc;

#[cfg(not(target_arch = "wasm32"))]
use potluck_plan::Task;
use potluck_shaders::{Format, Job, Kernel, Operand, params};

use crate::lab::bench::kernels::Part;
use crate::lab::microbench::Microbench;
#[cfg(not(target_arch = "wasm32"))]
use crate::runtime::clock;
use crate::runtime::engine::Engine;
use crate::runtime::error::EngineError;
use crate::runtime::sizes::{halved_row_bytes, packed_row_bytes};
#[cfg(not(target_arch = "wasm32"))]
use crate::runtime::submit::{Run, Submitter};

/// Values per row of the measured matrix.
const COLS: u32 = 4096;

/// The time of one dispatch of a piece of work.
#[cfg(not(target_arch = "wasm32"))]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DispatchTime {
    /// The kernel variant.
    pub kernel: Kernel,
    /// Workgroups in x, y and z.
    pub groups: [u32; 3],
    /// Milliseconds per run when repeated on the same data.
    pub millis: f64,
}

impl Engine {
    /// Gigabytes of weights per second that the decode kernel reads, for the format that most of the held weights use.
    ///
    /// # Errors
    /// The device is gone.
    pub async fn bandwidth(&self) -> Result<f64, EngineError> {
        let format = self.inner.core.borrow().model.main_format();
        let rows = (16 << 20) / format.row_bytes(COLS).unwrap_or(COLS * 4);
        self.decode_rate(format, rows, COLS).await
    }

    /// Gigabytes of weights per second of a matrix kernel on `n` vectors.
    ///
    /// # Errors
    /// The device is gone.
    pub async fn matrix_rate(&self, kernel: Kernel, format: Format, n: u32) -> Result<f64, EngineError> {
        let rows = (16 << 20) / format.row_bytes(COLS).unwrap_or(COLS * 4);
        self.shape_rate(kernel, format, rows, COLS, n).await
    }

    /// Gigabytes of weights per second of the kernel that a decode step uses for a matrix of this shape.
    ///
    /// # Errors
    /// The device is gone.
    pub async fn decode_rate(&self, format: Format, rows: u32, cols: u32) -> Result<f64, EngineError> {
        let (fused, plain) = {
            let core = self.inner.core.borrow();
            (core.model.profile.fused(format, Job::Added, 1), core.model.profile.decode(format, Operand::Plain, 1))
        };
        let fused = fused.map(|kernel| self.inner.core.borrow().model.profile.tuned_variant(kernel, rows, cols));
        let Some(kernel) = fused else { return self.shape_rate(plain, format, rows, cols, 1).await };
        self.fused_rate(kernel, format, rows, cols).await
    }

    /// Gigabytes of weights per second of a fused kernel that adds its products ([`Job::Added`]) on one vector.
    ///
    /// # Errors
    /// The device is gone.
    pub async fn fused_rate(&self, kernel: Kernel, format: Format, rows: u32, cols: u32) -> Result<f64, EngineError> {
        let row_bytes = format.row_bytes(cols).unwrap_or(cols * 4);
        let bytes = u64::from(rows) * u64::from(row_bytes);
        let params = params::Fused {
            rows,
            row_bytes,
            cols,
            units: cols.div_ceil(kernel.unit_values()),
            n: 1,
            x_stride: cols / 4,
            y_stride: rows,
            end_0: rows,
            end_1: rows,
            ..Default::default()
        };
        let sizes = [bytes, u64::from(cols) * 4, u64::from(rows) * 4];
        let groups = [rows.div_ceil(kernel.matrix_rows()), 1];
        let microbench = self.microbench(kernel, &sizes, bytemuck::bytes_of(&params), groups);
        self.rate(&microbench, bytes).await
    }

    async fn shape_rate(
        &self,
        kernel: Kernel,
        format: Format,
        rows: u32,
        cols: u32,
        n: u32,
    ) -> Result<f64, EngineError> {
        let row_bytes = format.row_bytes(cols).unwrap_or(cols * 4);
        let bytes = u64::from(rows) * u64::from(row_bytes);
        let params =
            params::MatVec { rows, row_bytes, cols, chunks: cols / 16, n, y_stride: rows, ..Default::default() };
        let (x_stride, x_bytes) = match kernel {
            Kernel::Packed { .. } => {
                ((packed_row_bytes(u64::from(cols)) / 16) as u32, packed_row_bytes(u64::from(cols)))
            }
            Kernel::Matrix { .. } => {
                ((halved_row_bytes(u64::from(cols)) / 8) as u32, halved_row_bytes(u64::from(cols)))
            }
            _ => (cols / 4, u64::from(cols) * 4),
        };
        let params = params::MatVec { x_stride, ..params };
        let sizes = [bytes, u64::from(n) * x_bytes, u64::from(n) * u64::from(rows) * 4];
        let groups = [rows.div_ceil(kernel.matrix_rows()), n.div_ceil(kernel.vectors())];
        let microbench = self.microbench(kernel, &sizes, bytemuck::bytes_of(&params), groups);
        self.rate(&microbench, bytes).await
    }

    /// Gigaflop/s of a matrix kernel on a matrix of `rows` × `cols` and `n` vectors.
    ///
    /// # Errors
    /// The device is gone.
    pub async fn product_rate(
        &self,
        kernel: Kernel,
        format: Format,
        rows: u32,
        cols: u32,
        n: u32,
    ) -> Result<f64, EngineError> {
        let bytes = f64::from(rows) * f64::from(format.row_bytes(cols).unwrap_or(cols * 4));
        let flops = 2.0 * f64::from(rows) * f64::from(cols) * f64::from(n);
        Ok(self.shape_rate(kernel, format, rows, cols, n).await? / bytes * flops)
    }

    /// The time of each dispatch of a forward pass, each repeated by itself. The pass leaves the conversation's KV
    /// cache unusable.
    ///
    /// # Errors
    /// The task is not a forward pass, it cannot be encoded, or the device is gone.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn dispatch_times(&self, task: &Task) -> Result<Vec<DispatchTime>, EngineError> {
        const REPEAT: usize = 20;
        let Task::Forward { batch: rows, class, input, blocks, then, biases } = task else {
            return Err(EngineError::NoRows);
        };
        let mut core = self.inner.core.borrow_mut();
        let all = core.forward(rows, *class, input, *blocks, (*then, biases))?;
        let reach = rows.iter().map(|row| row.position.0 + 1).max().unwrap_or(0);
        let run = |index: usize, repeat: usize| {
            let program = Rc::new(all.only(index, repeat));
            let runs = [Run { before: Vec::new(), program, reach, after: Vec::new() }];
            let (gpu, uniforms) = (&core.model.gpu, core.recording().arena());
            let started = clock::now();
            Submitter::new(&gpu.device, &gpu.queue, uniforms, u64::MAX).submit(&runs);
            let polled = gpu.device.poll(wgpu::PollType::wait_indefinitely());
            polled.map(|_| clock::now() - started).map_err(|_| EngineError::Lost)
        };
        let mut times = Vec::new();
        for (index, step) in all.steps.iter().enumerate() {
            let Some(groups) = step.size(reach) else { continue };
            let once = run(index, 1)?.min(run(index, 1)?);
            let millis = (run(index, 1 + REPEAT)? - once).max(0.0) / REPEAT as f64;
            times.push(DispatchTime { kernel: step.kernel, groups, millis });
        }
        Ok(times)
    }

    /// Gigabytes per second that this device reads when it does nothing else: the reference for kernel rates, on
    /// more bytes than caches hold if the loaded weights have them.
    ///
    /// # Errors
    /// The device is gone.
    pub async fn streaming_rate(&self) -> Result<f64, EngineError> {
        /// Without as many weights, this many bytes are read. More might not fit.
        const AT_LEAST: u64 = 64 << 20;
        const AT_MOST: u64 = 1 << 30;
        /// Workgroups: more than any GPU runs at once.
        const GROUPS: u32 = 4096;
        let kernel = Kernel::Stream;
        let tile = u64::from(kernel.threads()) * 4 * 16;
        let (limit, weights) = {
            let core = self.inner.core.borrow();
            // Software adapters share the processor's caches and take long for a gigabyte.
            let most = if core.model.profile.is_tunable() { AT_MOST } else { AT_LEAST };
            let weights = core.model.memory.largest_weights().map_or(0, |slab| slab.buffer.size()).min(most);
            (core.model.gpu.capabilities().limits.max_storage_buffer_binding_size, weights)
        };
        let bytes = limit.min(weights.max(AT_LEAST)) / tile * tile;
        let sums = u64::from(GROUPS * kernel.threads()) * 4;
        let params = params::Stream { tiles: (bytes / tile) as u32 };
        let params = bytemuck::bytes_of(&params);
        let microbench =
            self.inner.core.borrow_mut().microbench_on_weights(kernel, bytes, &[sums], params, [GROUPS, 1]);
        self.warm_rate(&microbench, bytes).await
    }

    /// Operations per second, in billions, that this device computes at most on its registers: two for each `fma`, or eight
    /// for each `dot4I8Packed`. The reference for [`Engine::product_rate`].
    ///
    /// # Errors
    /// The device is gone.
    pub async fn peak_rate(&self, dots: bool) -> Result<f64, EngineError> {
        const ROUNDS: u32 = 256;
        /// Steps of a round: eight chains, four times each.
        const STEPS: u64 = 32;
        let kernel = Kernel::Peak { dots };
        // A software adapter would take seconds for what fills a GPU.
        let groups = if self.inner.core.borrow().model.profile.is_tunable() { 8192 } else { 64 };
        let threads = u64::from(groups * kernel.threads());
        let operations = threads * u64::from(ROUNDS) * STEPS * if dots { 8 } else { 2 };
        let params = params::Peak { rounds: ROUNDS };
        let microbench = self.microbench(kernel, &[threads * 4], bytemuck::bytes_of(&params), [groups, 1]);
        self.warm_rate(&microbench, operations).await
    }

    fn microbench(&self, kernel: Kernel, sizes: &[u64], params: &[u8], groups: [u32; 2]) -> Microbench {
        self.inner.core.borrow_mut().microbench(kernel, sizes, params, groups)
    }

    /// Gigabytes per second of a kernel that reads `bytes`: the median of several measurements at a warm clock.
    async fn rate(&self, microbench: &Microbench, bytes: u64) -> Result<f64, EngineError> {
        let program = self.inner.core.borrow_mut().microbench_program(microbench);
        let part = Part::whole(Rc::new(program));
        // The first measurement brings the clock up.
        self.clock(&part).await?;
        let (_, millis) = self.clock(&part).await?;
        Ok(bytes as f64 / millis.max(1e-6) / 1e6)
    }

    /// The same after [`Engine::warm_up`].
    async fn warm_rate(&self, microbench: &Microbench, bytes: u64) -> Result<f64, EngineError> {
        let program = self.inner.core.borrow_mut().microbench_program(microbench);
        self.warm_up(&Part::whole(Rc::new(program)), f64::INFINITY).await?;
        self.rate(microbench, bytes).await
    }
}
