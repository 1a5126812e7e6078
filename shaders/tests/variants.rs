//! Every variant compiles in naga, and declares exactly what its Rust side says.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use naga::{AddressSpace, StorageAccess};
use potluck_shaders::{Access, Kernel};

fn all() -> Vec<Kernel> {
    [Kernel::all(&[16, 20, 24, 32, 64, 80, 128, 144]), Kernel::all_native()].concat()
}

#[test]
fn every_variant_is_valid() {
    let native = naga::valid::Capabilities::SHADER_FLOAT16 | naga::valid::Capabilities::COOPERATIVE_MATRIX;
    for kernel in all() {
        let source = kernel.source();
        let module = naga::front::wgsl::parse_str(&source)
            .unwrap_or_else(|error| panic!("{}: {}", kernel.name(), error.emit_to_string(&source)));
        let mut validator = naga::valid::Validator::new(
            naga::valid::ValidationFlags::all(),
            naga::valid::Capabilities::SHADER_FLOAT16_IN_FLOAT32
                | naga::valid::Capabilities::SUBGROUP
                | if kernel.is_native() { native } else { naga::valid::Capabilities::empty() },
        );
        if let Err(error) = validator.validate(&module) {
            panic!("{}: {}", kernel.name(), error.emit_to_string(&source));
        }
    }
}

#[test]
fn bindings_and_workgroup_are_what_the_key_says() {
    for kernel in all() {
        let module = naga::front::wgsl::parse_str(&kernel.source()).unwrap();
        let mut bindings: Vec<(u32, Access)> = module
            .global_variables
            .iter()
            .filter_map(|(_, variable)| match variable.space {
                AddressSpace::Storage { access } => {
                    let access = if access.contains(StorageAccess::STORE) { Access::Write } else { Access::Read };
                    variable.binding.as_ref().map(|binding| (binding.binding, access))
                }
                _ => None,
            })
            .collect();
        bindings.sort();
        let expected: Vec<(u32, Access)> = (1..).zip(kernel.bindings()).collect();
        assert_eq!(bindings, expected, "{}", kernel.name());
        assert!(bindings.len() <= 8, "{}: more storage buffers than every device has", kernel.name());
        let entry = &module.entry_points[0];
        assert_eq!((entry.name.as_str(), entry.workgroup_size), (Kernel::ENTRY, [kernel.threads(), 1, 1]));
    }
}

#[test]
fn names_tell_variants_apart() {
    let mut names: Vec<String> = all().into_iter().map(Kernel::name).collect();
    names.sort();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn workgroup_memory_stays_under_the_portable_limit() {
    for kernel in all() {
        let module = naga::front::wgsl::parse_str(&kernel.source()).unwrap();
        let bytes: u32 = module
            .global_variables
            .iter()
            .filter(|(_, variable)| variable.space == AddressSpace::WorkGroup)
            .map(|(_, variable)| module.types[variable.ty].inner.size(module.to_ctx()))
            .sum();
        let limit = match kernel {
            Kernel::Matrix { tile, .. } => tile.memory(),
            _ => 16384,
        };
        assert!(bytes <= limit, "{}: {bytes} bytes", kernel.name());
    }
}
