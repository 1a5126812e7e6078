// The sum of a number of each thread of a workgroup, in a tree: a thread that adds one after another waits for each.
var<workgroup> row_parts: array<f32, $THREADS>;

// All threads of the workgroup must call it, at most once.
fn row_sum(value: f32, lane: u32) -> f32 {
    row_parts[lane] = value;
    workgroupBarrier();
    for (var step = $THREADSu / 2u; step > 0u; step = step >> 1u) {
        if (lane < step) { row_parts[lane] += row_parts[lane + step]; }
        workgroupBarrier();
    }
    return row_parts[0];
}
