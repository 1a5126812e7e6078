//! Functions that libraries offer to C programs. A program of WebAssembly exports them, and so keeps all that they call, whether or
//! not the page uses the library: llguidance alone added a third of a megabyte to each program.

use anyhow::{Context, Result};
use walrus::{Module, ModuleConfig};

/// How the names of such functions begin.
const PREFIXES: [&str; 1] = ["llg_"];

/// The program without these exports. wasm-bindgen then leaves out what nobody calls any more.
///
/// # Errors
/// It is no WebAssembly.
pub fn without(program: &[u8]) -> Result<Module> {
    // As wasm-bindgen reads it. Panics name their file and line without the names of functions, a third of what people download.
    let mut module = ModuleConfig::new()
        .strict_validate(false)
        .generate_dwarf(false)
        .generate_name_section(false)
        .generate_producers_section(true)
        .parse(program)
        .context("it is no WebAssembly")?;
    let is_for_c = |name: &str| PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    let exports: Vec<_> =
        module.exports.iter().filter(|export| is_for_c(&export.name)).map(|export| export.id()).collect();
    for export in exports {
        module.exports.delete(export);
    }
    Ok(module)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use walrus::{FunctionBuilder, Module};

    use super::*;

    #[test]
    fn only_what_is_for_c_is_left_out() {
        let mut module = Module::default();
        for name in ["main", "llg_free_matcher", "__wbindgen_malloc"] {
            let builder = FunctionBuilder::new(&mut module.types, &[], &[]);
            let function = builder.finish(Vec::new(), &mut module.funcs);
            module.exports.add(name, function);
        }
        let left = without(&module.emit_wasm()).unwrap();
        let names: Vec<_> = left.exports.iter().map(|export| export.name.clone()).collect();
        assert_eq!(names, ["main", "__wbindgen_malloc"]);
        assert!(without(b"hello").is_err());
    }
}
