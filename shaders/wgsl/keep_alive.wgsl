// Keeps a waiting GPU from lowering its clock. One workgroup uses little power, and nobody reads the result. The number
// of rounds comes from a buffer and each round needs the one before, so no compiler can drop any.
@group(0) @binding(0) var<storage, read_write> words: array<u32>;

@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) lane: u32) {
    let rounds = words[0];
    var value = words[1] + lane;
    for (var round = 0u; round < rounds; round++) { value = value * 1664525u + 1013904223u; }
    words[2u + lane] = value;
}
