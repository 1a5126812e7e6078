//! The part of the engine that computes answers. It must not use `crate::lab`.

mod check;
pub mod clock;
pub mod conversations;
pub mod core;
pub mod encode;
mod encode_ahead;
pub mod engine;
mod engine_load;
mod engine_pool;
pub mod error;
pub mod events;
pub mod expert_io;
pub mod gpu;
mod head_tables;
mod in_use;
mod keep_alive;
mod keep_alive_loop;
mod kv_copy;
pub mod kv_pages;
pub mod kv_sizes;
pub mod layout;
pub mod layout_plan;
mod matrix_units;
pub mod memory;
pub mod model;
mod notify;
mod pieces;
pub mod pipelines;
mod placement;
#[cfg(any(target_arch = "wasm32", test))]
mod poll_kick;
#[cfg(not(target_arch = "wasm32"))]
mod polling;
pub mod pool;
mod prepare;
pub mod profile;
pub mod queue;
mod readbacks;
pub mod recorder;
pub mod recording;
mod result_kind;
mod result_layout;
pub(crate) mod sampled_tokens;
pub mod settings;
pub mod sizes;
pub mod slots;
pub mod staging;
pub mod staging_part;
#[cfg(any(target_arch = "wasm32", test))]
mod step_times;
mod subgroups;
pub mod submit;
mod tensors;
pub mod tuning_table;
pub mod turns;
pub mod upload_samples;
#[cfg(not(target_arch = "wasm32"))]
mod upload_wait;
mod uploads;
mod usage;
pub mod weights;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use std::path::Path;

    /// All Rust files below a folder.
    fn sources(folder: &Path) -> Vec<std::path::PathBuf> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries
            .flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] })
            .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
            .collect()
    }

    #[test]
    fn the_runtime_never_uses_the_lab() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/runtime");
        let forbidden = ["crate::", "lab::"].concat();
        for path in sources(&root) {
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(!text.contains(&forbidden), "{} uses the lab", path.display());
        }
    }
}
