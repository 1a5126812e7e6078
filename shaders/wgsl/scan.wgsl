// The recurrence of a head over the rows of a run. Each of the head's values has a column of state of its own:
// RULE Delta: gated delta net (arXiv 2412.06464, equation 10), then RMSNorm · gain · silu(gate).
//   S = fade · S;  S += k (beta · (v − Sᵀ k))ᵀ;  o = Sᵀ q / √width
// RULE Space: state space (Mamba 2, arXiv 2405.21060), then silu(gate).
//   S = fade · S + (time · x) Bᵀ;  o = S C + skip · x
// Workgroup: one workgroup per head, one thread per value. PerThread: one thread per head, without barriers. Both add in
// the same order. Rows come one after another, so a result does not depend on the batch.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> rows: array<vec4<u32>>;
@group(0) @binding(2) var<storage, read> x: array<f32>;
@group(0) @binding(3) var<storage, read> time_bias: array<f32>;
@group(0) @binding(4) var<storage, read> decay: array<f32>;
// Delta: the gain of a head's norm. Space: the factor of a head's input.
@group(0) @binding(5) var<storage, read> last: array<f32>;
@group(0) @binding(6) var<storage, read_write> state: array<f32>;
@group(0) @binding(7) var<storage, read_write> y: array<f32>;
#include runs

// A column of state.
var<private> s: array<f32, $STATE>;

#if STRATEGY == Workgroup
// What is written by (k, B) and read by (q, C) for this row.
var<workgroup> writes: array<f32, $STATE>;
var<workgroup> reads: array<f32, $STATE>;
#if RULE == Delta
var<workgroup> outputs: array<f32, $WIDTH>;
#endif
fn write_of(i: u32, at: u32) -> f32 { return writes[i]; }
fn read_of(i: u32, at: u32) -> f32 { return reads[i]; }
#else
fn write_of(i: u32, at: u32) -> f32 { return x[at + params.writes + i]; }
fn read_of(i: u32, at: u32) -> f32 { return x[at + params.reads + i]; }
#endif

fn sigmoid(v: f32) -> f32 { return 1.0 / (1.0 + exp(clamp(-v, -80.0, 80.0))); }

// log(1 + exp(v)).
fn softplus(v: f32) -> f32 { return max(v, 0.0) + log(1.0 + exp(-abs(v))); }

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

// What a head does with a row, besides its columns.
struct Step { fade: f32, amount: f32, write_scale: f32, read_scale: f32 }

fn step_of(row: u32, head: u32, at: u32) -> Step {
    let base = row * params.stride;
    var step: Step;
#if RULE == Delta
    // Where beta and alpha of a head lie: one after another, or by key head.
    var beta = params.beta + head;
    var alpha = params.beta + params.heads + head;
    if (params.grouped == 1u) {
        let each = params.heads / params.shared_heads;
        beta = params.beta + head / each * 2u * each + head % each;
        alpha = beta + each;
    }
    step.fade = exp(decay[head] * softplus(x[base + alpha] + time_bias[head]));
    step.amount = sigmoid(x[base + beta]);
    var written = 0.0;
    var asked = 0.0;
    for (var i = 0u; i < $STATEu; i++) {
        written = fma(write_of(i, at), write_of(i, at), written);
        asked = fma(read_of(i, at), read_of(i, at), asked);
    }
    step.write_scale = 1.0 / sqrt(written + params.epsilon);
    step.read_scale = 1.0 / (sqrt(asked + params.epsilon) * sqrt(f32($STATEu)));
#else
    step.amount = softplus(x[base + params.beta + head] + time_bias[head]);
    step.fade = exp(decay[head] * step.amount);
    step.write_scale = 1.0;
    step.read_scale = 1.0;
#endif
    return step;
}

// One row of one column: its output before norm and gate.
fn advance(step: Step, value: f32, at: u32) -> f32 {
    var out = 0.0;
#if RULE == Delta
    var seen = 0.0;
    for (var i = 0u; i < $STATEu; i++) {
        s[i] *= step.fade;
        seen = fma(s[i], write_of(i, at) * step.write_scale, seen);
    }
    let change = step.amount * (value - seen);
#else
    for (var i = 0u; i < $STATEu; i++) { s[i] *= step.fade; }
    let change = step.amount * value;
#endif
    for (var i = 0u; i < $STATEu; i++) {
        s[i] = fma(write_of(i, at) * step.write_scale, change, s[i]);
        out = fma(s[i], read_of(i, at), out);
    }
    return out * step.read_scale;
}

// The head (or group) whose keys and queries a head uses, as an offset in a row.
fn shared_at(row: u32, head: u32) -> u32 {
    var shared_head = head % params.shared_heads;
    if (params.grouped == 1u) { shared_head = head / (params.heads / params.shared_heads); }
    return row * params.stride + shared_head * $STATEu;
}

fn gated(v: f32, row: u32, head: u32, column: u32) -> f32 {
    let gate = x[row * params.stride + params.gate + head * $WIDTHu + column];
    return v * (gate * sigmoid(gate));
}

#if STRATEGY == Workgroup
@compute @workgroup_size($THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let head = group.x;
    let first = group.z;
    let run = rows[first].w;
    let count = run_rows(run);
    if (count == 0u) { return; }
    let source = first_slot(run);
    let column = lane;
    clear();
    if (source != 0u) { load(source - 1u, head, column); }
    for (var row = first; row < first + count; row++) {
        let at = shared_at(row, head);
        for (var i = lane; i < $STATEu; i += $THREADSu) {
            writes[i] = x[at + params.writes + i];
            reads[i] = x[at + params.reads + i];
        }
        workgroupBarrier();
        let value = x[row * params.stride + params.values + head * $WIDTHu + column];
        var out = advance(step_of(row, head, at), value, at);
        let to = (row * params.heads + head) * $WIDTHu + column;
#if RULE == Delta
        outputs[lane] = out;
        workgroupBarrier();
        var sum = 0.0;
        for (var i = 0u; i < $WIDTHu; i++) { sum = fma(outputs[i], outputs[i], sum); }
        out = (out * (1.0 / sqrt(sum / f32($WIDTHu) + params.epsilon))) * last[column];
#else
        out = fma(last[head], value, out);
        workgroupBarrier();
#endif
        y[to] = gated(out, row, head, column);
        let copy = copy_slot(rows[row].w);
        if (copy != 0u) { keep(copy - 1u, head, column); }
    }
    keep(live_slot(run), head, column);
}
#else
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
            let at = shared_at(row, head);
            let value = x[row * params.stride + params.values + head * $WIDTHu + column];
            let out = advance(step_of(row, head, at), value, at);
            let to = (row * params.heads + head) * $WIDTHu + column;
#if RULE == Delta
            y[to] = out;
#else
            y[to] = gated(fma(last[head], value, out), row, head, column);
#endif
            let copy = copy_slot(rows[row].w);
            if (copy != 0u) { keep(copy - 1u, head, column); }
        }
        keep(live_slot(run), head, column);
    }
#if RULE == Delta
    for (var row = first; row < first + count; row++) {
        let to = (row * params.heads + head) * $WIDTHu;
        var sum = 0.0;
        for (var i = 0u; i < $WIDTHu; i++) { sum = fma(y[to + i], y[to + i], sum); }
        let scale = 1.0 / sqrt(sum / f32($WIDTHu) + params.epsilon);
        for (var i = 0u; i < $WIDTHu; i++) { y[to + i] = gated((y[to + i] * scale) * last[i], row, head, i); }
    }
#endif
}
#endif
