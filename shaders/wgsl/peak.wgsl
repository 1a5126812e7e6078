// What a device computes at most: every thread runs eight chains on its registers, of `fma` or (DOTS) of sums of four
// products of bytes. Each step needs the one before, so that no compiler can leave one out.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> sums: array<u32>;

@compute @workgroup_size($THREADS)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
#if DOTS
    let b = params.rounds | 0x01010100u;
#repeat i 8
    var s_$i = bitcast<i32>(id.x * 2654435761u + $iu);
#end
#else
    let b = f32(params.rounds) * 1e-4;
#repeat i 8
    var s_$i = f32(id.x) + $i.0;
#end
#endif
    for (var round = 0u; round < params.rounds; round++) {
#repeat u 4
#repeat i 8
#if DOTS
        s_$i += dot4I8Packed(bitcast<u32>(s_$i), b);
#else
        s_$i = fma(s_$i, b, s_$i);
#endif
#end
#end
    }
    sums[id.x] = bitcast<u32>(s_0) ^ bitcast<u32>(s_1) ^ bitcast<u32>(s_2) ^ bitcast<u32>(s_3)
        ^ bitcast<u32>(s_4) ^ bitcast<u32>(s_5) ^ bitcast<u32>(s_6) ^ bitcast<u32>(s_7);
}
