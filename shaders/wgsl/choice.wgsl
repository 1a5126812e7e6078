// The choice of a row's experts by a workgroup.

// Four scores each; below all others past the last one.
var<workgroup> values: array<vec4<f32>, $EXPERT_QUADS>;
var<workgroup> best: array<f32, $EXPERTS>;
var<workgroup> terms: array<f32, $EXPERTS>;
var<workgroup> counts: array<u32, $THREADS>;
#if FACTORS
var<workgroup> best_ids: array<u32, $EXPERTS>;
#endif

// Tests the bits, because WGSL may assume that NaN does not occur.
fn finite_or_lowest(value: f32) -> f32 {
    return select(value, LOWEST, (bitcast<u32>(value) & 0x7f800000u) == 0x7f800000u);
}

fn score_or_less(base: u32, e: u32) -> f32 {
    return select(-3.4e38, finite_or_lowest(scores[base + min(e, params.experts - 1u)]), e < params.experts);
}

fn choose_experts(row: u32, local: u32) {
    let base = row * params.experts;
    let out = row * params.used;
    let quads = (params.experts + 3u) / 4u;
    for (var q = local; q < quads; q += $THREADSu) {
        let e = 4u * q;
        values[q] = vec4<f32>(score_or_less(base, e), score_or_less(base, e + 1u), score_or_less(base, e + 2u),
                              score_or_less(base, e + 3u));
    }
    workgroupBarrier();
    // An expert's rank is the number of experts that come before it; two threads count them.
    for (var done = 0u; done < params.experts; done += $THREADSu / 2u) {
        let e = done + local / 2u;
        let at = min(e, params.experts - 1u);
        let value = vec4<f32>(values[at / 4u][at % 4u]);
        var before = vec4<u32>(0u);
        for (var q = local % 2u; q < quads; q += 2u) {
            let other = values[q];
            let ids = vec4<u32>(4u * q) + vec4<u32>(0u, 1u, 2u, 3u);
            let first = (other > value) | ((other == value) & (ids < vec4<u32>(e)));
            before += select(vec4<u32>(0u), vec4<u32>(1u), first);
        }
        counts[local] = (before.x + before.y) + (before.z + before.w);
        workgroupBarrier();
        let place = counts[local] + counts[local | 1u];
        if (local % 2u == 0u && e < params.experts && place < params.used) {
            best[place] = value.x;
#if FACTORS
            best_ids[place] = e;
#endif
            chosen[out + place] = select(e, NO_EXPERT, value.x == LOWEST);
        }
        workgroupBarrier();
    }
    let top = best[0];
    var sum = 0.0;
    if (params.normalize != 0u) {
        for (var i = 0u; i < params.used; i++) { sum += exp(best[i] - top); }
    } else {
        for (var i = local; i < params.experts; i += $THREADSu) { terms[i] = exp(scores[base + i] - top); }
        workgroupBarrier();
        for (var i = 0u; i < params.experts; i++) { sum += terms[i]; }
    }
    for (var k = local; k < params.used; k += $THREADSu) {
        var gate = exp(best[k] - top) / sum;
#if FACTORS
        if (params.scaled != 0u) { gate = gate * factors[best_ids[k]]; }
#endif
        gates[out + k] = gate;
    }
}
