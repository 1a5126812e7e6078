// Choice of the best `used` experts by any rule, largest first, ties to the lowest id. A score becomes a probability by
// softmax, or SIGMOID: by itself. BIASED: probabilities have a bias that counts for the choice only.
// If the experts form groups, only those of the best groups take part, judged by the sum of their two best experts.
// PerThread: one thread per row, one round per expert. Workgroup: one workgroup per row, all ranks at once.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> scores: array<f32>;
@group(0) @binding(2) var<storage, read_write> chosen: array<u32>;
@group(0) @binding(3) var<storage, read_write> gates: array<f32>;
#if BIASED
@group(0) @binding(4) var<storage, read> bias: array<f32>;
#endif

// A score that is not finite ranks after all others, and its expert has no id.
const LOWEST: f32 = -3.0e38;
const NO_EXPERT: u32 = 0xffffffffu;
// Smallest sum to divide by: the smallest normal half float, as llama.cpp has it.
const SMALLEST_SUM: f32 = 6.103515625e-5;

// Tests the bits, because WGSL may assume that NaN does not occur.
fn finite_or_lowest(value: f32) -> f32 {
    return select(value, LOWEST, (bitcast<u32>(value) & 0x7f800000u) == 0x7f800000u);
}

// What decides: the probability and its bias.
fn merit(probability: f32, expert: u32) -> f32 {
#if BIASED
    return finite_or_lowest(select(probability + bias[expert], LOWEST, probability < 0.0));
#else
    return select(probability, LOWEST, probability < 0.0);
#endif
}

// The probability of a score, given the largest score and the sum of all exponentials; below zero if it has none.
fn probability(score: f32, top: f32, sum: f32) -> f32 {
    if (score == LOWEST) { return -1.0; }
#if SIGMOID
    return 1.0 / (1.0 + exp(min(-score, 80.0)));
#else
    return exp(score - top) / sum;
#endif
}

const MAX_GROUPS = $GROUPSu;

// Whether a group is among the best ones; ties go to the lowest id.
#if STRATEGY == Workgroup
var<workgroup> group_scores: array<f32, $GROUPS>;

fn is_kept(group: u32) -> bool {
    let score = group_scores[group];
#else
fn is_kept(group: u32, group_scores: ptr<function, array<f32, $GROUPS>>) -> bool {
    let score = (*group_scores)[group];
#endif
    var before = 0u;
    for (var i = 0u; i < min(params.groups, MAX_GROUPS); i++) {
#if STRATEGY == Workgroup
        let other = group_scores[i];
#else
        let other = (*group_scores)[i];
#endif
        before += select(0u, 1u, other > score || (other == score && i < group));
    }
    return before < params.used_groups;
}

#if STRATEGY == Workgroup
var<workgroup> values: array<f32, $EXPERTS>;
var<workgroup> merits: array<f32, $EXPERTS>;
var<workgroup> best: array<f32, $EXPERTS>;

@compute @workgroup_size($THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let base = group.x * params.experts;
    let out = group.x * params.used;
    let step = $THREADSu;
    for (var e = local; e < params.experts; e += step) { values[e] = finite_or_lowest(scores[base + e]); }
    workgroupBarrier();
    var top = LOWEST;
    var sum = 0.0;
#if SIGMOID
#else
    for (var e = 0u; e < params.experts; e++) { top = max(top, values[e]); }
    for (var e = 0u; e < params.experts; e++) {
        sum += select(exp(values[e] - top), 0.0, values[e] == LOWEST);
    }
#endif
    workgroupBarrier();
    for (var e = local; e < params.experts; e += step) {
        let p = probability(values[e], top, sum);
        values[e] = p;
        merits[e] = merit(p, e);
    }
    workgroupBarrier();
    if (params.groups > 1u) {
        let size = params.experts / params.groups;
        if (local < params.groups) {
            var pair = vec2<f32>(LOWEST);
            for (var e = local * size; e < (local + 1u) * size; e++) {
                let v = merits[e];
                pair = select(select(pair, vec2<f32>(pair.x, v), v > pair.y), vec2<f32>(v, pair.x), v > pair.x);
            }
            group_scores[local] = max(pair.x, LOWEST / 2.0) + max(pair.y, LOWEST / 2.0);
        }
        workgroupBarrier();
        for (var e = local; e < params.experts; e += step) {
            if (!is_kept(e / size)) { merits[e] = LOWEST; }
        }
        workgroupBarrier();
    }
    // An expert's rank is the number of experts that come before it.
    for (var e = local; e < params.experts; e += step) {
        let value = merits[e];
        var place = 0u;
        for (var i = 0u; i < params.experts; i++) {
            let other = merits[i];
            place += select(0u, 1u, other > value || (other == value && i < e));
        }
        if (place < params.used) {
            best[place] = select(values[e], 0.0, value == LOWEST);
            chosen[out + place] = select(e, NO_EXPERT, value == LOWEST);
        }
    }
    workgroupBarrier();
    var factor = params.scale;
    if (params.normalize != 0u) {
        var total = 0.0;
        for (var k = 0u; k < params.used; k++) { total += best[k]; }
        factor = params.scale / max(total, SMALLEST_SUM);
    }
    for (var k = local; k < params.used; k += step) { gates[out + k] = best[k] * factor; }
}
#else
// Comes after (last, last_id) in the order of choice: smaller, or equal with a higher id.
fn after(value: f32, id: u32, last: f32, last_id: u32) -> bool {
    return value < last || (value == last && id > last_id);
}

@compute @workgroup_size($THREADS)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let row = id.x;
    if (row >= params.n) { return; }
    let base = row * params.experts;
    let out = row * params.used;
    var top = LOWEST;
    var sum = 0.0;
#if SIGMOID
#else
    for (var e = 0u; e < params.experts; e++) { top = max(top, finite_or_lowest(scores[base + e])); }
    for (var e = 0u; e < params.experts; e++) {
        let score = finite_or_lowest(scores[base + e]);
        sum += select(exp(score - top), 0.0, score == LOWEST);
    }
#endif
    // One bit for each group that takes part.
    var kept = 0xffffffffu;
    var size = params.experts;
    if (params.groups > 1u) {
        size = params.experts / params.groups;
        var group_scores: array<f32, $GROUPS>;
        for (var g = 0u; g < min(params.groups, MAX_GROUPS); g++) {
            var pair = vec2<f32>(LOWEST);
            for (var e = g * size; e < (g + 1u) * size; e++) {
                let v = merit(probability(finite_or_lowest(scores[base + e]), top, sum), e);
                pair = select(select(pair, vec2<f32>(pair.x, v), v > pair.y), vec2<f32>(v, pair.x), v > pair.x);
            }
            group_scores[g] = max(pair.x, LOWEST / 2.0) + max(pair.y, LOWEST / 2.0);
        }
        kept = 0u;
        for (var g = 0u; g < min(params.groups, MAX_GROUPS); g++) {
            kept |= select(0u, 1u << g, is_kept(g, &group_scores));
        }
    }
    var last = 3.0e38;
    var last_id = 0u;
    var total = 0.0;
    for (var k = 0u; k < params.used; k++) {
        var value = LOWEST;
        var expert = NO_EXPERT;
        var gate = 0.0;
        for (var e = 0u; e < params.experts; e++) {
            let p = probability(finite_or_lowest(scores[base + e]), top, sum);
            let v = merit(p, e);
            let here = ((kept >> (e / size)) & 1u) == 1u;
            if (here && v > value && after(v, e, last, last_id)) {
                value = v;
                expert = e;
                gate = p;
            }
        }
        last = value;
        last_id = expert;
        total += gate;
        chosen[out + k] = expert;
        gates[out + k] = gate;
    }
    var factor = params.scale;
    if (params.normalize != 0u) { factor = params.scale / max(total, SMALLEST_SUM); }
    for (var k = 0u; k < params.used; k++) { gates[out + k] = gates[out + k] * factor; }
}
#endif
