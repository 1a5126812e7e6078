//! LlamaWeb (llamaweb.txt): weight formats, models and memory as far as they follow from the code, and what was measured here.

use anyhow::{Context, Result};
use potluck_engine::{Settings, fixed_overhead};
use potluck_gguf::TensorType;
use potluck_gguf::synthetic::{Mixture, Shape, Synthetic};
use potluck_model::{Architecture, ModelSpec};
use potluck_plan::{Bytes, KvCacheType, ModelId, WeightUnit};
use potluck_shaders::Format;

use super::records::{self, Records};
use crate::table::Table;

/// What cannot be remade, and why.
const NOT_HERE: &str = "\
Not remade:

- Table 1, available models: a count over Hugging Face in May 2026. Performance and memory are measured below, against wllama, which is
  LlamaWeb in a browser; not against WebLLM and Transformers.js, whose models are no GGUF files.
- Table 2: needs a GPU and Llama-3.2-1B. `potluck-node run MODEL.gguf --bench --workloads 512/128 --depths 0,2048` prints the share of each class
  of kernels on the device at hand; the paper's Apple M3 is not here.
- Tables 4 and 5, figures 4, 8, 9 and 10: 16 devices of eight vendors. One kind of device was measured here, and software adapters.
- Figure 3: absolute sizes are not in the text, and depend on browser and system. The plan above is what the engine reserves on the GPU.
- Figures 5 and 6: native backends and web frameworks on four GPUs that are not here; the same comparison on one GPU is below.
- Figure 7: the four formats on clusters of devices. `e2e/peers/peers.mjs` runs each file of a folder.
";

/// All tables, in Markdown.
///
/// # Errors
/// A record cannot be read, or the shape of Llama-3.2-1B is refused.
pub fn report(records: &Records) -> Result<String> {
    let tables = [
        formats(),
        models(),
        memory()?,
        records.beside("memory", "Figure 3 and table 1 (WebLLM +49%, Transformers.js +41% of LlamaWeb's memory)")?,
        records.beside(
            "browser-peers",
            "Figures 6 and 7 (LlamaWeb decodes 54% faster than WebLLM, 69% than Transformers.js; prefill: 49 and 79% of theirs)",
        )?,
        records.beside("native-peer", "Figure 5 (CUDA and Vulkan up to 10 times as fast in prefill, 2.5 in decode)")?,
        records.beside("software-adapter", "Figure 4's low cluster (4 to 17 tok/s): without a GPU")?,
        records.beside("load", "3.1, weights from OPFS to the GPU (no figure there)")?,
    ];
    let tables: Vec<String> = tables.iter().map(Table::to_string).collect();
    Ok(format!("{}\n{}\n{NOT_HERE}", tables.join("\n"), records::how_to_measure()))
}

/// Table 1's last row (appendix B).
fn formats() -> Table {
    let title = "Table 1, weight formats for inference in WebGPU";
    let mut table = Table::new(title, &["LlamaWeb", "WebLLM", "Transformers.js", "here", "which"]);
    let names = Format::ALL.map(Format::name).join(", ");
    table.row([23, 6, 7, Format::ALL.len()].map(|count| count.to_string()).into_iter().chain([names]));
    table
}

/// A row of table 3 with its architecture as GGUF files name it.
struct Model {
    name: &'static str,
    architecture: &'static str,
    format: TensorType,
    gigabytes: &'static str,
}

/// Table 3. Q4_K_M mixes Q4_K and Q6_K.
const MODELS: [Model; 10] = [
    Model { name: "LFM2.5-350M", architecture: "lfm2", format: TensorType::Q4_K, gigabytes: "0.23" },
    Model { name: "Bonsai-1.7B", architecture: "qwen3", format: TensorType::Q1_0, gigabytes: "0.25" },
    Model { name: "Gemma3-270M", architecture: "gemma3", format: TensorType::Q4_K, gigabytes: "0.25" },
    Model { name: "Qwen3-0.6B", architecture: "qwen3", format: TensorType::Q4_K, gigabytes: "0.40" },
    Model { name: "Granite4-1B", architecture: "granitehybrid", format: TensorType::Q4_K, gigabytes: "0.90" },
    Model { name: "Qwen3.5-2B", architecture: "qwen35", format: TensorType::Q4_K, gigabytes: "1.28" },
    Model { name: "SmolLM3-3B", architecture: "smollm3", format: TensorType::Q4_K, gigabytes: "1.92" },
    Model { name: "Ministral3-3B", architecture: "mistral3", format: TensorType::Q4_K, gigabytes: "2.15" },
    Model { name: "Gemma4-E2B", architecture: "gemma4", format: TensorType::Q4_K, gigabytes: "3.11" },
    Model { name: "Llama3.2-1B", architecture: "llama", format: TensorType::Q4_K, gigabytes: "0.81" },
];

/// Table 3: which of its models can run here.
fn models() -> Table {
    let title = "Table 3: its models, and whether their architecture and format are supported here (the files themselves were not run \
                 for this table)";
    let mut table = Table::new(title, &["model", "weights", "file there, GB", "architecture", "supported here"]);
    for Model { name, architecture, format, gigabytes } in MODELS {
        let is_known = Architecture::ALL.iter().any(|known| known.name() == architecture);
        let supported = if is_known && Format::of(format).is_some() { "yes" } else { "no" };
        table.row([name, &format.to_string(), gigabytes, architecture, supported].map(str::to_owned));
    }
    table
}

/// The static memory plan (3.1) of Llama-3.2-1B in the formats of table 3.
fn memory() -> Result<Table> {
    const POSITIONS: u32 = 4096;
    let title = format!(
        "Llama-3.2-1B in the formats of table 3: the file there, and the engine's plan here, GB ({POSITIONS} positions of F16)"
    );
    let head = ["weights", "file there", "weights here", "KV cache", "everything else", "together"];
    let mut table = Table::new(&title, &head);
    // Its embedding is its LM head, as in the published file.
    let shape = || Synthetic { tied: true, ..Shape::Llama3_2_1B.synthetic() };
    let uniform = |kind| Synthetic { mixture: Mixture::Uniform, ..shape() }.with_type(kind);
    for (name, file, model) in [
        ("q2_k", "0.58", uniform(TensorType::Q2_K)),
        ("q4_k_m", "0.81", shape()),
        ("q8_0", "1.32", uniform(TensorType::Q8_0)),
        ("f16", "2.48", uniform(TensorType::F16)),
    ] {
        let header = potluck_gguf::join([model.header()?])?;
        let (spec, units) = ModelSpec::from_gguf(&header).context("the shape of Llama-3.2-1B")?;
        let kv_cache = KvCacheType::F16;
        let shape = spec.shape(&units, ModelId([0; 32]), kv_cache);
        // On one device the embedding is there once, though both ends of the model need it.
        let once = |unit: &WeightUnit| !(spec.tied_lm_head && *unit == WeightUnit::Embedding);
        let weights: u64 = units.units().filter(once).map(|unit| units.bytes(unit).0).sum();
        let kv: u64 = shape.blocks.iter().map(|block| block.kv_cache_per_position.0 * u64::from(POSITIONS)).sum();
        let settings = Settings { budget: Bytes(u64::MAX), context: POSITIONS, kv_cache, ..Settings::default() };
        let rest = fixed_overhead(&spec, &settings).0;
        let sizes = [weights, kv, rest, weights + kv + rest].map(|bytes| format!("{:.2}", bytes as f64 / 1e9));
        table.row([name, file].map(str::to_owned).into_iter().chain(sizes));
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn every_format_of_the_paper_is_a_row_with_real_sizes() {
        let tables = report(&Records::here()).unwrap();
        let row = |start: &str| tables.lines().find(|line| line.starts_with(start)).unwrap().to_owned();
        assert!(row("| 23 | 6 | 7 |").contains("IQ2_XXS"));
        for name in ["Bonsai-1.7B", "Gemma4-E2B"] {
            assert!(row(&format!("| {name}")).ends_with("| yes |"), "{}", row(&format!("| {name}")));
        }
        let f16 = row("| f16 | 2.48 |");
        let weights: f64 = f16.split('|').nth(3).unwrap().trim().parse().unwrap();
        assert!((weights - 2.47).abs() < 0.05, "{f16}");
        assert!(tables.contains("e2e/peers/peers.mjs"), "the command that measures again");
    }
}
