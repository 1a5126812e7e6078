// RMSNorm of one row by a workgroup: row `read_row` of `x` into row `written_row` of `y`.
#include row_sum

fn norm_row(read_row: u32, written_row: u32, factor: f32, lane: u32) {
    let source = read_row * params.width;
    let last = params.width - 1u;
    // The first quads of each thread are all on their way at once, and stay.
#repeat j 4
    let at_$j = lane + $ju * $THREADSu;
    let v_$j = x[source + min(at_$j, last)];
    let g_$j = gain[min(at_$j, last)];
#end
    var acc = vec4<f32>(0.0);
#repeat j 4
    acc = select(acc, fma(v_$j, v_$j, acc), at_$j < params.width);
#end
    for (var i = lane + 4u * $THREADSu; i < params.width; i += $THREADSu) {
        let v = x[source + i];
        acc = fma(v, v, acc);
    }
    let sum = row_sum((acc.x + acc.y) + (acc.z + acc.w), lane);
    let scale = factor * (1.0 / sqrt(sum / f32(4u * params.width) + params.epsilon));
#repeat j 4
    if (at_$j < params.width) { y[written_row * params.width + at_$j] = (v_$j * scale) * g_$j; }
#end
    for (var i = lane + 4u * $THREADSu; i < params.width; i += $THREADSu) {
        y[written_row * params.width + i] = (x[source + i] * scale) * gain[i];
    }
}
