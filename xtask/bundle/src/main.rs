//! Builds the page's folder from compiled WebAssembly and the manifest in `index.html`.
//!
//! Trunk would do much of this, but compiling Trunk took longer than compiling the page; `trunk build` calls this program, too
//! (`Trunk.toml`). It is a crate of its own so that `cargo xtask` itself stays quick to compile.
#![forbid(unsafe_code)]

mod c_functions;
mod html;
mod manifest;
mod page;
mod trusted;

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let result = match arguments.as_slice() {
        [index, compiled, out] => page::build(index, compiled, out),
        [program, out] => page::module(program, out),
        _ => {
            eprintln!(
                "usage: potluck-bundle INDEX.HTML COMPILED_WASM_FOLDER OUTPUT_FOLDER\n       \
                 potluck-bundle PROGRAM.WASM OUTPUT_FOLDER    one program as a JavaScript module"
            );
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
