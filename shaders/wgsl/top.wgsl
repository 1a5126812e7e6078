// The best `count` logits of a row, best first, ties to the lowest id: take the best segment's best, then look for that
// segment's next. Lone: one thread a row. Coop: one workgroup a row, each thread keeps watch over its own segments.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> logits: array<f32>;
@group(0) @binding(2) var<storage, read_write> best: array<vec2<u32>>;
// Of each candidate: id, bits of the logit.
@group(0) @binding(3) var<storage, read_write> candidates: array<vec2<u32>>;
// The best of the last row: the token of the row after it, if that is started before anyone reads this one.
@group(0) @binding(4) var<storage, read_write> token: array<u32>;

// Best of segments local, local + step, …: (bits of the value, id); id all ones if none is left.
fn best_of(base: u32, local: u32, step: u32) -> vec2<u32> {
    var result = vec2<u32>(bitcast<u32>(-3.0e38), 0xffffffffu);
    for (var s = local; s < params.segments; s += step) {
        let entry = best[base + s];
        if (entry.y != 0xffffffffu && (result.y == 0xffffffffu || bitcast<f32>(entry.x) > bitcast<f32>(result.x))) {
            result = entry;
        }
    }
    return result;
}

// The best of a segment that comes after (last, last_id).
fn next_in(row: u32, segment: u32, last: f32, last_id: u32) -> vec2<u32> {
    var result = vec2<u32>(bitcast<u32>(-3.0e38), 0xffffffffu);
    let first = segment * 128u;
    for (var i = first; i < min(first + 128u, params.vocabulary); i++) {
        let v = logits[row * params.vocabulary + i];
        let after = v < last || (v == last && i > last_id);
        if (after && (result.y == 0xffffffffu || v > bitcast<f32>(result.x))) {
            result = vec2<u32>(bitcast<u32>(v), i);
        }
    }
    return result;
}

#if STRATEGY == Coop
var<workgroup> offers: array<vec2<u32>, $THREADS>;

@compute @workgroup_size($THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let row = group.x;
    let step = $THREADSu;
#else
@compute @workgroup_size($THREADS)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let row = id.x;
    let local = 0u;
    let step = 1u;
    if (row >= params.n) { return; }
#endif
    let base = row * params.segments;
    var own = best_of(base, local, step);
    for (var k = 0u; k < params.count; k++) {
        var winner = own;
#if STRATEGY == Coop
        offers[local] = own;
        workgroupBarrier();
        for (var i = 0u; i < $THREADSu; i++) {
            let offer = offers[i];
            let a = bitcast<f32>(offer.x);
            let b = bitcast<f32>(winner.x);
            if (offer.y != 0xffffffffu && (winner.y == 0xffffffffu || a > b || (a == b && offer.y < winner.y))) {
                winner = offer;
            }
        }
        workgroupBarrier();
#endif
        if (winner.y == own.y) {
            candidates[(params.first + row) * params.count + k] = vec2<u32>(winner.y, winner.x);
            if (k == 0u && row + 1u == params.n) { token[0] = winner.y; }
            if (winner.y != 0xffffffffu && k + 1u < params.count) {
                let segment = winner.y / 128u;
                best[base + segment] = next_in(row, segment, bitcast<f32>(winner.x), winner.y);
                own = best_of(base, local, step);
            }
        }
    }
}
