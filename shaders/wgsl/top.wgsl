// The best `count` logits of a row, best first, ties to the lowest id: take the best entry of the best segment, then
// look for that segment's next one. Sampling takes 128 of them for every token.
// PerThread: one thread per row. Workgroup: one workgroup per row; each thread tracks its own segments, and all threads
// search for the next entry in the segment that gave its best.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> logits: array<f32>;
@group(0) @binding(2) var<storage, read_write> best: array<vec2<u32>>;
// Per candidate: id, bits of the logit.
@group(0) @binding(3) var<storage, read_write> candidates: array<vec2<u32>>;
// The best token of the last row: the input of the next decode step, if that was submitted before this one is read
// back.
@group(0) @binding(4) var<storage, read_write> token: array<u32>;

// Best of segments local, local + step, … as (bits of the value, id); the id is all ones if none is left.
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

// `a` is better than `b`: larger, or equal with a lower id. An entry without an id is no candidate.
fn is_better(a: vec2<u32>, b: vec2<u32>) -> bool {
    let x = bitcast<f32>(a.x);
    let y = bitcast<f32>(b.x);
    return a.y != 0xffffffffu && (b.y == 0xffffffffu || x > y || (x == y && a.y < b.y));
}

// The best of the segment's logits local, local + step, … that come after (last, last_id).
fn next_in(row: u32, segment: u32, local: u32, step: u32, last: f32, last_id: u32) -> vec2<u32> {
    var result = vec2<u32>(bitcast<u32>(-3.0e38), 0xffffffffu);
    let first = segment * 128u;
    for (var i = first + local; i < min(first + 128u, params.vocabulary); i += step) {
        let v = logits[row * params.vocabulary + i];
        let after = v < last || (v == last && i > last_id);
        if (after && (result.y == 0xffffffffu || v > bitcast<f32>(result.x))) {
            result = vec2<u32>(bitcast<u32>(v), i);
        }
    }
    return result;
}

#if STRATEGY == Workgroup
const HEADS = $THREADSu / 16u;
var<workgroup> offers: array<vec2<u32>, $THREADS>;
// The best of each 16 offers.
var<workgroup> heads: array<vec2<u32>, HEADS>;

// The best offer of all threads.
fn best_offer(local: u32, offer: vec2<u32>) -> vec2<u32> {
    offers[local] = offer;
    workgroupBarrier();
    if (local < HEADS) {
        var head = offers[local * 16u];
        for (var i = 1u; i < 16u; i++) {
            let other = offers[local * 16u + i];
            if (is_better(other, head)) { head = other; }
        }
        heads[local] = head;
    }
    workgroupBarrier();
    var result = heads[0];
    for (var i = 1u; i < HEADS; i++) {
        if (is_better(heads[i], result)) { result = heads[i]; }
    }
    return result;
}

@compute @workgroup_size($THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let row = group.x;
    let base = row * params.segments;
    var own = best_of(base, local, $THREADSu);
    for (var k = 0u; k < params.count; k++) {
        let winner = best_offer(local, own);
        if (local == 0u) {
            candidates[(params.first + row) * params.count + k] = vec2<u32>(winner.y, winner.x);
            if (k == 0u && row + 1u == params.n) { token[0] = winner.y; }
        }
        let segment = winner.y / 128u;
        let found = next_in(row, segment, local, $THREADSu, bitcast<f32>(winner.x), winner.y);
        let next = best_offer(local, found);
        // No other thread reads this segment's entry.
        if (segment % $THREADSu == local && segment < params.segments) {
            best[base + segment] = next;
            own = best_of(base, local, $THREADSu);
        }
    }
}
#else
@compute @workgroup_size($THREADS)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let row = id.x;
    if (row >= params.n) { return; }
    let base = row * params.segments;
    for (var k = 0u; k < params.count; k++) {
        let winner = best_of(base, 0u, 1u);
        candidates[(params.first + row) * params.count + k] = vec2<u32>(winner.y, winner.x);
        if (k == 0u && row + 1u == params.n) { token[0] = winner.y; }
        let segment = winner.y / 128u;
        if (segment < params.segments && k + 1u < params.count) {
            best[base + segment] = next_in(row, segment, 0u, 1u, bitcast<f32>(winner.x), winner.y);
        }
    }
}
#endif
