// The recurrence of a head over the rows of a run, as in `scan.wgsl`: one thread per head, without barriers. A thread takes
// the columns one after another, so that a column's state fits into its registers or its stack.
#include recurrence

// A column of state.
var<private> s: array<f32, $STATE>;

// First value of a column: of `head`'s state in a slot.
fn column_at(slot: u32, head: u32, column: u32) -> u32 {
    return slot * params.slot + params.tail + head * $STATEu * $WIDTHu + column;
}

fn load(slot: u32, head: u32, column: u32) {
    let at = column_at(slot, head, column);
    for (var i = 0u; i < $STATEu; i++) { s[i] = state[at + i * $WIDTHu]; }
}

fn clear() {
    for (var i = 0u; i < $STATEu; i++) { s[i] = 0.0; }
}

fn keep(slot: u32, head: u32, column: u32) {
    let at = column_at(slot, head, column);
    for (var i = 0u; i < $STATEu; i++) { state[at + i * $WIDTHu] = s[i]; }
}

// One row of one column: its output before norm and gate.
fn advance(row: u32, head: u32, value: f32) -> f32 {
    let writes = shared_at(row, head) + params.writes;
    let reads = shared_at(row, head) + params.reads;
    let step = step_of(numbers_of(row, head), head);
    var written = 0.0;
    var asked = 0.0;
#if RULE == Delta
    for (var i = 0u; i < $STATEu; i++) {
        written = fma(x[writes + i], x[writes + i], written);
        asked = fma(x[reads + i], x[reads + i], asked);
    }
#endif
    let scales = scales_of(written, asked);
    var out = 0.0;
#if RULE == Delta
    var seen = 0.0;
    for (var i = 0u; i < $STATEu; i++) {
        s[i] *= step.x;
        seen = fma(s[i], x[writes + i] * scales.x, seen);
    }
    let change = step.y * (value - seen);
#else
    for (var i = 0u; i < $STATEu; i++) { s[i] *= step.x; }
    let change = step.y * value;
#endif
    for (var i = 0u; i < $STATEu; i++) {
        s[i] = fma(x[writes + i] * scales.x, change, s[i]);
        out = fma(s[i], x[reads + i], out);
    }
    return out * scales.y;
}

@compute @workgroup_size($THREADS)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let head = id.x % params.heads;
    let first = id.x / params.heads;
    if (first >= params.n) { return; }
    let run = rows[first].w;
    let count = run_rows(run);
    if (count == 0u) { return; }
    let source = first_slot(run);
    for (var column = 0u; column < $WIDTHu; column++) {
        clear();
        if (source != 0u) { load(source - 1u, head, column); }
        for (var row = first; row < first + count; row++) {
            let at = head * $WIDTHu + column;
            let value = x[row * params.stride + params.values + at];
            let out = advance(row, head, value);
            let to = row * params.heads * $WIDTHu + at;
#if RULE == Delta
            y[to] = out;
#else
            y[to] = gated(fma(last[head], value, out), x[row * params.stride + params.gate + at]);
#endif
            let copy = copy_slot(rows[row].w);
            if (copy != 0u) { keep(copy - 1u, head, column); }
        }
        keep(live_slot(run), head, column);
    }
#if RULE == Delta
    for (var row = first; row < first + count; row++) {
        let to = (row * params.heads + head) * $WIDTHu;
        let gates = row * params.stride + params.gate + head * $WIDTHu;
        var sum = 0.0;
        for (var i = 0u; i < $WIDTHu; i++) { sum = fma(y[to + i], y[to + i], sum); }
        let scale = 1.0 / sqrt(sum / f32($WIDTHu) + params.epsilon);
        for (var i = 0u; i < $WIDTHu; i++) { y[to + i] = gated((y[to + i] * scale) * last[i], x[gates + i]); }
    }
#endif
}
