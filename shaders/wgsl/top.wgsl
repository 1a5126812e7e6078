// The best `count` logits of a row, best first, ties to the lowest id. Sampling takes 128 of them for every token.
// PerThread: one thread per row takes the best entry of the best segment, then looks for that segment's next one.
// Workgroup: one workgroup per row. At least `count` logits are as large as the best of the segment that comes in place
// `count`, so that is a threshold: the few logits that reach it are collected and ranked all at once. If they are too many for
// workgroup memory, all threads together do what PerThread does.
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

// Segments whose best is kept in workgroup memory, and logits that can be ranked.
const KEPT = 1024u;
const FOUND = 1024u;
var<workgroup> segment_keys: array<u32, KEPT>;
var<workgroup> keys: array<u32, FOUND>;
var<workgroup> ids: array<u32, FOUND>;
// How many segments reach the trial of each bit, and how many logits were found.
var<workgroup> counts: array<atomic<u32>, 33>;
var<workgroup> found: u32;

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

// An integer in the order of the values: 0 for what is no number, and the same for both zeros.
fn key_of(bits: u32) -> u32 {
    if ((bits & 0x7fffffffu) > 0x7f800000u) { return 0u; }
    let value = select(bits, 0u, bits == 0x80000000u);
    return select(value | 0x80000000u, ~value, (value & 0x80000000u) != 0u);
}

fn segment_key(base: u32, s: u32) -> u32 {
    if (s < KEPT) { return segment_keys[s]; }
    let entry = best[base + s];
    return select(key_of(entry.x), 0u, entry.y == 0xffffffffu);
}

// A key that the best of at least `count` segments reach, its upper bits as large as possible; 0 if there are not as many. More
// bits would take a barrier each and leave out few logits.
fn threshold(base: u32, local: u32) -> u32 {
    for (var s = local; s < min(params.segments, KEPT); s += $THREADSu) {
        let entry = best[base + s];
        segment_keys[s] = select(key_of(entry.x), 0u, entry.y == 0xffffffffu);
    }
    if (local < 33u) { atomicStore(&counts[local], 0u); }
    workgroupBarrier();
    var reached = 0u;
    for (var bit = 32u; bit > 12u; bit--) {
        let trial = reached | (1u << (bit - 1u));
        var count = 0u;
        for (var s = local; s < params.segments; s += $THREADSu) {
            if (segment_key(base, s) >= trial) { count++; }
        }
        if (count > 0u) { atomicAdd(&counts[bit - 1u], count); }
        workgroupBarrier();
        reached = select(reached, trial, atomicLoad(&counts[bit - 1u]) >= params.count);
    }
    return reached;
}

// Collects the logits that reach a key and returns their number. Each half of the threads reads a segment at a time.
fn collect(row: u32, base: u32, local: u32, least: u32) -> u32 {
    for (var s = local / 128u; s < params.segments; s += $THREADSu / 128u) {
        if (segment_key(base, s) < least) { continue; }
        let id = s * 128u + local % 128u;
        if (id >= params.vocabulary) { continue; }
        let key = key_of(bitcast<u32>(logits[row * params.vocabulary + id]));
        if (key < least) { continue; }
        let at = atomicAdd(&counts[32], 1u);
        if (at < FOUND) {
            keys[at] = key;
            ids[at] = id;
        }
    }
    workgroupBarrier();
    if (local == 0u) { found = atomicLoad(&counts[32]); }
    return workgroupUniformLoad(&found);
}

// Writes candidate `k` of a row.
fn put(row: u32, k: u32, id: u32, bits: u32) {
    candidates[(params.first + row) * params.count + k] = vec2<u32>(id, bits);
    if (k == 0u && row + 1u == params.n) { token[0] = id; }
}

@compute @workgroup_size($THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let row = group.x;
    let base = row * params.segments;
    if (params.count > 1u) {
        let least = max(threshold(base, local), 1u);
        let all = collect(row, base, local, least);
        if (all <= FOUND) {
            // A logit's place is the number of those that come before it.
            for (var j = local; j < all; j += $THREADSu) {
                let key = keys[j];
                let id = ids[j];
                var place = 0u;
                for (var i = 0u; i < all; i++) {
                    let other = keys[i];
                    place += select(0u, 1u, other > key || (other == key && ids[i] < id));
                }
                if (place < params.count) {
                    put(row, place, id, bitcast<u32>(logits[row * params.vocabulary + id]));
                }
            }
            for (var k = all + local; k < params.count; k += $THREADSu) {
                put(row, k, 0xffffffffu, bitcast<u32>(-3.0e38));
            }
            return;
        }
    }
    var own = best_of(base, local, $THREADSu);
    for (var k = 0u; k < params.count; k++) {
        let winner = best_offer(local, own);
        if (local == 0u) { put(row, k, winner.y, winner.x); }
        let segment = winner.y / 128u;
        let later = next_in(row, segment, local, $THREADSu, bitcast<f32>(winner.x), winner.y);
        let next = best_offer(local, later);
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
