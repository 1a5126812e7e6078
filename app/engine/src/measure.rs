//! How fast this device streams weights through the decode kernels, for planners.

use potluck_shaders::{Format, Job, Kernel, Operand, params};

use crate::clock;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::probe::Probe;

/// Values a row of the measured matrix.
const COLS: u32 = 4096;
/// A measurement is repeated until it takes this many milliseconds.
const LONG_ENOUGH: f64 = 20.0;

impl Engine {
    /// Gigabytes of weights a second that the decode kernel gets through, for the type most held weights have.
    pub async fn bandwidth(&self) -> Result<f64, EngineError> {
        let format = self.inner.core.borrow().main_format();
        let rows = (16 << 20) / format.row_bytes(COLS).unwrap_or(COLS * 4);
        self.decode_rate(format, rows, COLS).await
    }

    /// Gigabytes a second of a matrix kernel on `n` vectors.
    pub async fn matrix_rate(&self, kernel: Kernel, format: Format, n: u32) -> Result<f64, EngineError> {
        let rows = (16 << 20) / format.row_bytes(COLS).unwrap_or(COLS * 4);
        self.shape_rate(kernel, format, (rows, COLS), n).await
    }

    /// Gigabytes of weights a second of the kernel that a decode step uses for a matrix of this shape.
    pub async fn decode_rate(&self, format: Format, rows: u32, cols: u32) -> Result<f64, EngineError> {
        let (fused, plain) = {
            let core = self.inner.core.borrow();
            (core.profile.fused(format, Job::Added, 1), core.profile.decode(format, Operand::Plain, 1))
        };
        let Some(kernel) = fused else { return self.shape_rate(plain, format, (rows, cols), 1).await };
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
        let probe = Probe {
            kernel,
            bindings: vec![vec![0; bytes as usize], vec![0; (cols * 4) as usize], vec![0; (rows * 4) as usize]],
            params: bytemuck::bytes_of(&params).to_vec(),
            x: rows.div_ceil(kernel.matrix_rows()),
            y: 1,
            z: 1,
            output: 2,
        };
        self.rate(&probe, bytes).await
    }

    async fn shape_rate(
        &self,
        kernel: Kernel,
        format: Format,
        (rows, cols): (u32, u32),
        n: u32,
    ) -> Result<f64, EngineError> {
        let row_bytes = format.row_bytes(cols).unwrap_or(cols * 4);
        let bytes = u64::from(rows) * u64::from(row_bytes);
        let params = params::MatVec {
            rows,
            row_bytes,
            cols,
            chunks: cols / 16,
            n,
            x_stride: cols / 4,
            y_stride: rows,
            ..Default::default()
        };
        let vectors = if let Kernel::MatVec { rows, .. } = kernel { u32::from(rows) } else { potluck_shaders::TILE };
        let probe = Probe {
            kernel,
            bindings: vec![vec![0; bytes as usize], vec![0; (n * cols * 4) as usize], vec![0; (n * rows * 4) as usize]],
            params: bytemuck::bytes_of(&params).to_vec(),
            x: rows.div_ceil(kernel.matrix_rows()),
            y: 1,
            z: n.div_ceil(vectors),
            output: 2,
        };
        self.rate(&probe, bytes).await
    }

    /// Gigabytes a second that this device reads when it does nothing else: what a share of its rate is compared with.
    pub async fn streaming_rate(&self) -> Result<f64, EngineError> {
        const GROUPS: u32 = 1024;
        let kernel = Kernel::Stream;
        let limit = self.inner.core.borrow().gpu.capabilities().limits.max_storage_buffer_binding_size;
        let bytes = limit.min(64 << 20) / 16 * 16;
        let probe = Probe {
            kernel,
            bindings: vec![vec![0; bytes as usize], vec![0; (GROUPS * kernel.threads() * 4) as usize]],
            params: bytemuck::bytes_of(&params::Stream { quads: (bytes / 16) as u32 }).to_vec(),
            x: GROUPS,
            y: 1,
            z: 1,
            output: 1,
        };
        self.rate(&probe, bytes).await
    }

    /// Gigabytes a second of a probe that gets through `bytes`.
    async fn rate(&self, probe: &Probe, bytes: u64) -> Result<f64, EngineError> {
        // The first run pays for the pipeline and the upload.
        self.timed(probe, 1).await?;
        let mut repeat = 1;
        loop {
            let (once, more) = (self.timed(probe, 0).await?, self.timed(probe, repeat).await?);
            let spent = more - once;
            if spent >= LONG_ENOUGH || repeat >= 1024 {
                return Ok(bytes as f64 * f64::from(repeat) / spent.max(1e-3) / 1e6);
            }
            repeat = (f64::from(repeat) * (1.5 * LONG_ENOUGH / spent.max(0.1)).clamp(2.0, 16.0)) as u32;
        }
    }

    async fn timed(&self, probe: &Probe, repeat: u32) -> Result<f64, EngineError> {
        let started = clock::now();
        let launched = self.inner.core.borrow_mut().launch_probes(std::slice::from_ref(probe), repeat);
        launched.outputs().await?;
        Ok(clock::now() - started)
    }
}
