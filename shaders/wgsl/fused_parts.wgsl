// What all fused decode kernels have: memory for sums, places of results, inputs.
#if NORM
var<workgroup> slots_of_squares: array<f32, $SQUARES>;
#endif
#if SHARES
var<workgroup> sums: array<f32, $PARTIALS>;
#if NORM
var<workgroup> squares: array<f32, $VECTOR_PARTIALS>;
#endif
#endif

// Byte offset of a matrix row, where its result goes, and its bias.
struct Line { base: u32, y: u32, bias: u32 }

fn line(row: u32) -> Line {
    var at = Line(params.base_0, params.y_0, params.bias_0);
    var first = 0u;
    if (row >= params.end_1) {
        at = Line(params.base_2, params.y_2, params.bias_2);
        first = params.end_1;
    } else if (row >= params.end_0) {
        at = Line(params.base_1, params.y_1, params.bias_1);
        first = params.end_0;
    }
    let r = row - first;
    return Line(at.base + r * params.row_bytes, at.y + r, at.bias + r);
}

#if EXPERT
fn slot_of(pair: u32) -> u32 {
    let expert = chosen[pair];
    var slot = 0xffffffffu;
    if (expert < params.experts) { slot = slots[expert]; }
    return slot - params.slot_first;
}
#endif

// Quad q of the vector that starts at quad `at`; zeros past its end.
fn input(at: u32, q: u32) -> vec4<f32> {
    return select(vec4<f32>(0.0), x[at + min(q, params.x_stride - 1u)], q < params.x_stride);
}
#if NORM
fn gain_at(q: u32) -> vec4<f32> { return gain[min(q, params.x_stride - 1u)]; }
#endif
