//! The part of the engine that computes answers. It must not use `crate::lab`.

mod check;
pub mod clock;
mod continuation;
pub mod core;
pub mod encode;
mod encode_ahead;
pub mod engine;
pub mod error;
pub mod expert_io;
pub mod gpu;
mod in_use;
mod keep_alive;
mod kv_copy;
pub mod kv_pages;
pub mod layout;
mod matrix_units;
pub mod memory;
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
mod readback;
pub mod recorder;
mod result_layout;
mod run;
pub(crate) mod sampled_tokens;
pub mod settings;
pub mod sizes;
pub mod slots;
pub mod staging;
pub mod staging_part;
mod subgroups;
pub mod submit;
mod tensors;
pub mod tuning_table;
pub mod turns;
#[cfg(not(target_arch = "wasm32"))]
mod upload_wait;
mod usage;

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
