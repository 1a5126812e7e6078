// The largest logit of each 128 and its id, ties to the lowest id. PerThread: one thread per segment. Workgroup: 32 threads per
// segment read neighbouring logits.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> logits: array<f32>;
// Per segment: bits of the value, id.
@group(0) @binding(2) var<storage, read_write> best: array<vec2<u32>>;

#if STRATEGY == Workgroup
var<workgroup> offers: array<vec2<u32>, $THREADS>;

// An integer in the order of the values: 0 for what is no number, and the same for both zeros.
fn key_of(bits: u32) -> u32 {
    if ((bits & 0x7fffffffu) > 0x7f800000u) { return 0u; }
    let value = select(bits, 0u, bits == 0x80000000u);
    return select(value | 0x80000000u, ~value, (value & 0x80000000u) != 0u);
}

@compute @workgroup_size($THREADS)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let index = ((group.x + group.y * groups.x) * $THREADSu + local) / 32u;
    let lane = local % 32u;
    let row = index / params.segments;
    let first = (index % params.segments) * 128u;
    let base = row * params.vocabulary;
    // Key and id of this thread's best logit.
    var own = vec2<u32>(0u, first + lane);
    if (row < params.n) {
        for (var i = first + lane; i < min(first + 128u, params.vocabulary); i += 32u) {
            let key = key_of(bitcast<u32>(logits[base + i]));
            if (key > own.x) { own = vec2<u32>(key, i); }
        }
    }
    offers[local] = own;
    workgroupBarrier();
    for (var step = 16u; step > 0u; step /= 2u) {
        if (lane < step) {
            let other = offers[local + step];
            if (other.x > own.x || (other.x == own.x && other.y < own.y)) {
                own = other;
                offers[local] = own;
            }
        }
        workgroupBarrier();
    }
    if (lane == 0u && row < params.n) {
        best[index] = vec2<u32>(bitcast<u32>(logits[base + own.y]), own.y);
    }
}
#else
@compute @workgroup_size($THREADS)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let index = id.x + id.y * groups.x * $THREADSu;
    let row = index / params.segments;
    let first = (index % params.segments) * 128u;
    if (row >= params.n) { return; }
    let base = row * params.vocabulary;
    var value = logits[base + first];
    var at = first;
    for (var i = first + 1u; i < min(first + 128u, params.vocabulary); i++) {
        let v = logits[base + i];
        if (v > value) {
            value = v;
            at = i;
        }
    }
    best[index] = vec2<u32>(bitcast<u32>(value), at);
}
#endif
