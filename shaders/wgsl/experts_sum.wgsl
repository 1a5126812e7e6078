// Decode: the last products of a token's chosen experts, and their weighted sum added to y, in one dispatch: the bits of
// `fused.wgsl` for each expert and `combine.wgsl` after it. A team of 32 threads takes one expert at a time, and all
// teams of a workgroup the same $PAIRS rows. Group z is a token. An expert without a slot counts as zero.
// BIAS: each product has the bias of its expert.
#include fused_bindings
@group(0) @binding(6) var<storage, read> gates: array<f32>;

#if PACKED
#include units
#else
#if WIDE
#include wide_q4_k
#else
#include weights
#if FORMAT == Q6_K
#include wide_q6_k
#else
#if FORMAT == MXFP4
#include wide_mxfp4
#else
#include sixteen
#endif
#endif
#endif
#endif

#if PACKED
// Two of them share an expert, each with half of the rows.
const TEAM = 16u;
#else
const TEAM = 32u;
#endif
// Threads that share an expert.
const ALL = 32u;
var<workgroup> outputs: array<f32, $OUTPUTS>;
var<workgroup> factors: array<f32, $MAX_USED>;
#include fused_parts
#if PACKED
#include staged_packed
#endif

@compute @workgroup_size($THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32,
        @builtin(num_workgroups) groups: vec3<u32>) {
    let lane = local % TEAM;
    let team = local / ALL;
    // The first of this thread's rows.
    let own = ((local / TEAM) % (ALL / TEAM)) * $EACHu;
    let first_row = $PAIRSu * (group.x + group.y * groups.x);
    let result = group.z * params.y_stride + min(first_row + min(local, $PAIRSu - 1u), params.rows - 1u);
    let before = select(0.0, y[result], params.add != 0u);
    for (var first = 0u; first < params.used; first += $THREADSu / ALL) {
        let k = first + team;
        let pair = group.z * params.used + min(k, params.used - 1u);
        let slot = slot_of(pair);
        let here = k < params.used && slot < params.slot_count;
        let at = pair * params.x_stride;
#repeat p $EACH
        let base_$p = params.base_0 + min(first_row + own + $pu, params.rows - 1u) * params.row_bytes
            + select(0u, slot, here) * params.expert_bytes;
        var sum_$p = 0.0;
#end
#if PACKED
        let steps = (params.units + TEAM - 1u) / TEAM;
#repeat p $EACH
        var w_$p = fetch(base_$p, min(lane, params.units - 1u));
#end
        for (var c = 0u; c < steps; c++) {
            let place = team * $PLACES_OF_CHUNKu;
#if TOGETHER
#repeat j $LOADS
            if (2u * (c * $OCTETSu + $ju * ALL) < params.x_stride) {
                _ = stage(at, c * $OCTETSu + $ju * ALL + local % ALL, place, vec4<f32>(0.0));
            }
#end
#else
            stage_block(at, c * $BLOCKSu + local % ALL, place);
#endif
            workgroupBarrier();
            if (here && c * TEAM + lane < params.units) {
                let v = values(place + lane);
                let less = shared_of(v);
#repeat p $EACH
                sum_$p = product(w_$p, base_$p, c * TEAM + lane, v, less, sum_$p);
#end
            }
            if (c + 1u < steps) {
#repeat p $EACH
                w_$p = fetch(base_$p, min((c + 1u) * TEAM + lane, params.units - 1u));
#end
            }
            workgroupBarrier();
        }
#else
        if (here) {
            for (var i = lane; i < params.units; i += TEAM) {
#repeat p $EACH
                let w_$p = fetch(base_$p, i);
#end
#repeat k $QUADS
                let q_$k = quad(i, $ku);
                let x_$k = input(at, q_$k);
#end
                let v = Values(
#repeat k $QUADS
                    prepared(q_$k, x_$k),
#end
                );
#if SUMS
                let s = sums_of(
#repeat k $QUADS
                    across(x_$k),
#end
                );
#else
                let s = vec2<f32>(0.0);
#endif
#repeat p $EACH
                sum_$p = product(w_$p, base_$p, i, v, s, sum_$p);
#end
            }
        }
#endif
#if SHARES
#repeat p $EACH
        sums[$pu * $THREADSu + local] = sum_$p;
#end
        workgroupBarrier();
        for (var step = TEAM / 2u; step >= $SHUFFLEu; step = step >> 1u) {
            if (lane < step) {
#repeat p $EACH
                sums[$pu * $THREADSu + local] += sums[$pu * $THREADSu + local + step];
#end
            }
            workgroupBarrier();
        }
#repeat p $EACH
        sum_$p = sums[$pu * $THREADSu + local];
#end
        workgroupBarrier();
#endif
#if SHUFFLES
#repeat s $SHUFFLES
#repeat p $EACH
        sum_$p += subgroupShuffleDown(sum_$p, $SHUFFLEu >> ($su + 1u));
#end
#end
#endif
        if (lane == 0u && k < params.used) {
            factors[k] = select(0.0, gates[pair], here);
#if BIAS
            let bias_at = (params.slot_first + select(0u, slot, here)) * params.bias_stride + params.bias_0;
#repeat p $EACH
            outputs[$PAIRSu * k + own + $pu] = sum_$p
                + select(0.0, bias[bias_at + min(first_row + own + $pu, params.rows - 1u)], here);
#end
#else
#repeat p $EACH
            outputs[$PAIRSu * k + own + $pu] = sum_$p;
#end
#endif
        }
    }
    workgroupBarrier();
    if (local >= $PAIRSu || first_row + local >= params.rows) { return; }
    var sum = 0.0;
    for (var k = 0u; k < params.used; k++) { sum = fma(factors[k], outputs[$PAIRSu * k + local], sum); }
    y[result] = fma(sum, params.scale, before);
}
