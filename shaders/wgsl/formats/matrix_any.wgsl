// Weights of any format for `matrix.wgsl`: 16 columns of a step, dequantized as they come.
const PARTS = $STEPu / 16u;

struct Quads { q0: vec4<f16>, q1: vec4<f16>, q2: vec4<f16>, q3: vec4<f16> }
struct Fetched { q: Quads }

fn fetched(row: u32, step: u32, part: u32) -> Fetched {
    // Beyond the row's end any finite weights do: the vectors are zero there.
    let w = fetch16(row, min(step * PARTS + part, params.chunks - 1u));
    return Fetched(Quads(vec4<f16>(w.a), vec4<f16>(w.b), vec4<f16>(w.c), vec4<f16>(w.d)));
}

fn dequantized(w: Fetched, step: u32) -> Quads { return w.q; }

// Where quad q lies from the first.
fn place(q: u32) -> u32 { return q; }
