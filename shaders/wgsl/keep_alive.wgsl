// Keeps a GPU that waits from lowering its clock: one workgroup, so that it takes little power, and nothing that anyone reads.
// The number of rounds comes from a buffer and each needs the one before, so that a compiler leaves none out.
@group(0) @binding(0) var<storage, read_write> words: array<u32>;

@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) lane: u32) {
    let rounds = words[0];
    var value = words[1] + lane;
    for (var round = 0u; round < rounds; round++) { value = value * 1664525u + 1013904223u; }
    words[2u + lane] = value;
}
