//! Prints every variant as JSON (name, WGSL, storage bindings), for compiling them in a browser with subgroups.

use potluck_shaders::{Access, Kernel};

fn main() {
    let variants: Vec<serde_json::Value> = Kernel::all(&[16, 20, 24, 32, 64, 128])
        .into_iter()
        .map(|kernel| {
            let bindings: Vec<&str> = kernel
                .bindings()
                .into_iter()
                .map(|access| if access == Access::Read { "read-only-storage" } else { "storage" })
                .collect();
            serde_json::json!({ "name": kernel.name(), "source": kernel.browser_source(), "bindings": bindings })
        })
        .collect();
    println!("{}", serde_json::Value::from(variants));
}
