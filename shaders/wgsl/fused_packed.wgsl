// Decode in the arithmetic `packed`: `fused.wgsl` with vectors of signed bytes and sums of integers. A workgroup quantizes a
// vector, multiplied by the gain, on the way into its memory: 2048 values at a time, while the ones before are in use. A team of
// 16 threads shares $PAIRS results; each thread reads 64 weights at a time, one step ahead. $ROWS vectors at once are quantized 1024
// values at a time, before they are used.
// A result is a thread's sum in the order of its units, and one tree over the team, so all variants have the same bits. The
// jobs are those of `fused.wgsl`.
#include fused_bindings

#include units
#if GATED
#include activation
#endif

const TEAM = 16u;
// Octets of a vector whose squares are summed apart.
const CHUNK = 256u;
#include fused_parts
#include staged_packed

@compute @workgroup_size($THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32,
        @builtin(num_workgroups) groups: vec3<u32>) {
#include fused_begin
    let steps = (params.units + TEAM - 1u) / TEAM;
#repeat p $PAIRS
#repeat h $HALVES
    var w_$p_$h = fetch(base_$p_$h, min(lane, params.units - 1u));
#end
#end
#if TOGETHER
#repeat j $LOADS
    var square_of_first_$j = stage(at_0, $ju * $THREADSu + local, 0u, vec4<f32>(0.0));
#if NORM
    square_0_$j = square_of_first_$j;
#endif
#end
#else
#if NORM
    for (var c = 0u; 2u * c < params.x_stride; c += CHUNK) {
#repeat j $LOADS
#repeat r $ROWS
        {
            let e = c + $ju * $THREADSu + local;
            let v = input(at_$r, 2u * e);
            let w = input(at_$r, 2u * e + 1u);
            square_$r_$j = fma(w, w, fma(v, v, square_$r_$j));
        }
#end
#end
    }
#endif
#if ALONE
    for (var b = local; b < $BLOCKSu; b += $THREADSu) { stage_block(at_0, b, 0u); }
#endif
#endif
#if ALONE
    workgroupBarrier();
#endif
    for (var c = 0u; c < chunks; c++) {
#if ALONE
        let here = (c & 1u) * $PLACES_OF_CHUNKu;
        if (c + 1u < chunks) {
            let there = $PLACES_OF_CHUNKu - here;
#if TOGETHER
#repeat j $LOADS
#if NORM
            square_0_$j = stage(at_0, (c + 1u) * $OCTETSu + $ju * $THREADSu + local, there, square_0_$j);
#else
            square_of_first_$j = stage(at_0, (c + 1u) * $OCTETSu + $ju * $THREADSu + local, there, square_of_first_$j);
#endif
#end
#else
            for (var b = local; b < $BLOCKSu; b += $THREADSu) { stage_block(at_0, (c + 1u) * $BLOCKSu + b, there); }
#endif
        }
#else
        const here = 0u;
        for (var i = local; i < $ROWSu * $BLOCKSu; i += $THREADSu) {
            let r = i / $BLOCKSu;
            let at = (params.x_first + min(first + r, params.n - 1u)) * params.x_stride;
            stage_block(at, c * $BLOCKSu + i % $BLOCKSu, r * $PLACES_OF_CHUNKu);
        }
        workgroupBarrier();
#endif
#repeat u $UNITS
        if (c * $UNITSu + $uu < steps) {
            let unit = (c * $UNITSu + $uu) * TEAM + lane;
#repeat p $PAIRS
#repeat h $HALVES
            let now_$p_$h = w_$p_$h;
#end
#end
            if (c * $UNITSu + $uu + 1u < steps) {
#repeat p $PAIRS
#repeat h $HALVES
                w_$p_$h = fetch(base_$p_$h, min(unit + TEAM, params.units - 1u));
#end
#end
            }
#repeat r $ROWS
            {
                // Units past the end of a row meet zeros.
                let v = values($ru * $PLACES_OF_CHUNKu + here + $uu * TEAM + lane);
                let less = shared_of(v);
#repeat p $PAIRS
#repeat h $HALVES
                sum_$r_$p_$h = product(now_$p_$h, base_$p_$h, unit, v, less, sum_$r_$p_$h);
#end
#end
            }
#end
        }
#end
        workgroupBarrier();
    }
#if NORM
#repeat r $ROWS
#repeat j $LOADS
    slots_of_squares[$ru * CHUNK + $ju * $THREADSu + local] = across(square_$r_$j);
#end
#end
#endif
#include fused_end
