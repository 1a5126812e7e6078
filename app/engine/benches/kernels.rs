//! Measures the matrix kernels on this machine's adapter: `cargo bench -p potluck-engine`.
//!
//! For each format (or those named as arguments), prints GB/s of weights: one vector and four vectors at a time
//! (decode), the kernel of a decode step with the steps fused into it, and 64 vectors (prefill). Set `POTLUCK_TIER` to
//! `software` or `full` to measure the other kernels, and `POTLUCK_NO_SUBGROUPS` to measure those that need no
//! subgroups.
//!
//! `cargo bench -p potluck-engine --bench kernels -- --fused Q4_K Q6_K` prints instead how fast every variant of the decode
//! product is on the matrices of Llama-3.1-8B and Qwen3-30B-A3B, with vectors of floats and quantized ones.

use futures::executor::block_on;
use potluck_engine::{Engine, Gpu, GpuOptions, Settings, Tier};
use potluck_model::{Architecture, ModelSpec, Scales, UnitMap};
use potluck_shaders::{Dots, Format, Job, Kernel, Operand, Tile, VectorStrategy};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tier = match std::env::var("POTLUCK_TIER").as_deref() {
        Ok("software") => Some(Tier::Software),
        Ok("full") => Some(Tier::Full),
        _ => None,
    };
    let gpu = block_on(Gpu::open(GpuOptions { tier, ..GpuOptions::default() }))?;
    let tier = gpu.capabilities().tier;
    let spec = ModelSpec {
        architecture: Architecture::Llama,
        name: "none".into(),
        hidden: 4,
        vocabulary: 1,
        context: 1,
        norm_epsilon: 1e-5,
        tied_lm_head: true,
        block_inputs: None,
        scales: Scales::default(),
        blocks: Vec::new(),
    };
    let engine = Engine::new(&gpu, spec, UnitMap::default(), Settings::default(), Box::new(|_| {}))?;
    println!("{} ({tier:?}) streams {:.1} GB/s", gpu.capabilities().name, block_on(engine.streaming_rate())?);
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let is_wanted = |format: &Format| wanted.is_empty() || wanted.iter().any(|name| name == format.name());
    if std::env::args().any(|argument| argument == "--fused") {
        return Format::ALL.into_iter().filter(is_wanted).try_for_each(|format| variants(&gpu, &engine, format));
    }
    println!("{:8} {:>14} {:>14} {:>14} {:>22}", "", "1 vector", "4 vectors", "decode step", "64 vectors");
    let lanes = gpu.capabilities().lanes.filter(|_| std::env::var_os("POTLUCK_NO_SUBGROUPS").is_none());
    let strategy = match (tier, lanes) {
        (Tier::Software, Some(_)) => VectorStrategy::Broadcast,
        (Tier::Software, None) => VectorStrategy::PerThread,
        _ => VectorStrategy::Workgroup,
    };
    for format in Format::ALL.into_iter().filter(is_wanted) {
        let decode = |rows| Kernel::MatVec { format, strategy, rows, operand: Operand::Plain };
        let tile = match (strategy, lanes) {
            (VectorStrategy::Workgroup, _) => Tile::V64R64,
            (_, Some(lanes)) => Tile::broadcast(format, lanes, false),
            (_, None) => Tile::per_thread(format),
        };
        let prefill = Kernel::MatMul { format, operand: Operand::Plain, tile };
        let one = block_on(engine.matrix_rate(decode(1), format, 1))?;
        let four = block_on(engine.matrix_rate(decode(4), format, 4))?;
        let rows = (16 << 20) / format.row_bytes(4096).unwrap_or(4 * 4096);
        let step = block_on(engine.decode_rate(format, rows, 4096))?;
        let many = block_on(engine.matrix_rate(prefill, format, 64))?;
        let values = f64::from(format.block_values()) / f64::from(format.block_bytes());
        let flops = many * values * 64.0 * 2.0;
        let name = format.name();
        println!("{name:8} {one:>9.2} GB/s {four:>9.2} GB/s {step:>9.2} GB/s {many:>9.2} GB/s {flops:>7.1} GFLOP/s");
    }
    Ok(())
}

/// Matrices of Llama-3.1-8B and, the last three, of Qwen3-30B-A3B: rows and columns.
const SHAPES: [(u32, u32); 7] =
    [(128_256, 4096), (28_672, 4096), (4096, 14_336), (6144, 4096), (4096, 4096), (12_288, 2048), (16_384, 768)];

/// How fast every variant of a format's decode product is.
fn variants(gpu: &Gpu, engine: &Engine, format: Format) -> Result<(), Box<dyn std::error::Error>> {
    println!("{} GB/s", format.name());
    let exact = Kernel::fused(format, 1, Job::Added);
    let packed = format.packing().map(|_| Kernel::fused_packed(format, 1, Job::Added, Dots::Packed));
    for (rows, cols) in SHAPES.into_iter().filter(|(_, cols)| format.row_bytes(*cols).is_some()) {
        for portable in std::iter::once(exact).chain(packed) {
            let how = if portable.quantizes() { "packed" } else { "exact" };
            print!("{:16} {how:6}", format!("{rows} × {cols}"));
            for kernel in portable.variants(gpu.capabilities().subgroup) {
                let Kernel::Fused { variant, .. } = kernel else { continue };
                print!(" {variant} {:5.0}", block_on(engine.fused_rate(kernel, format, rows, cols))?);
            }
            println!();
        }
    }
    Ok(())
}
