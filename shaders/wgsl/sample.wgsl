// Samples a token from its candidates, best first: one workgroup, a thread per candidate. All arithmetic is on integers and the
// same as that of the sampler (app/plan/src/sampling/numbers.rs), step by step; change both together.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
// Per candidate: id, bits of the logit. The sampled token goes behind the last one.
@group(0) @binding(1) var<storage, read_write> candidates: array<vec2<u32>>;
// Of the batch row: position, and what else its kernels need.
@group(0) @binding(2) var<storage, read> rows: array<vec4<u32>>;
// The parameters, then the newest tokens: that of a position at the position modulo RING.
@group(0) @binding(3) var<storage, read_write> state: array<u32>;
// The input of the next decode step.
@group(0) @binding(4) var<storage, read_write> token: array<u32>;

const MOST = $THREADSu;
const WORDS = 16u;
const RING = 128u;
const SEED = 0u;
const KEEP = 2u;
const TOP_P = 3u;
const MIN_P = 4u;
const WINDOW = 5u;
const DIVIDE = 6u;
const MULTIPLY = 8u;
const TEMPERATURE = 10u;
const LOG2_E = 12u;

var<workgroup> recent: array<u32, RING>;
var<workgroup> values: array<i32, MOST>;
var<workgroup> sorted: array<vec2<u32>, MOST>;
var<workgroup> sums: array<u32, MOST>;

// The product of two words: low, high.
fn product(a: u32, b: u32) -> vec2<u32> {
    let low = (a & 0xffffu) * (b & 0xffffu);
    let one = (a >> 16u) * (b & 0xffffu) + (low >> 16u);
    let other = (a & 0xffffu) * (b >> 16u) + (one & 0xffffu);
    return vec2<u32>(a * b, (a >> 16u) * (b >> 16u) + (one >> 16u) + (other >> 16u));
}

fn shifted(a: vec2<u32>, by: u32) -> vec2<u32> {
    return vec2<u32>((a.x >> by) | (a.y << (32u - by)), a.y >> by);
}

fn scrambled(a: vec2<u32>, by: u32, factor: vec2<u32>) -> vec2<u32> {
    let z = a ^ shifted(a, by);
    let low = product(z.x, factor.x);
    return vec2<u32>(low.x, low.y + z.x * factor.y + z.y * factor.x);
}

// The upper word of SplitMix64's hash of seed and position.
fn random(position: u32) -> u32 {
    let seed = vec2<u32>(state[SEED] ^ position, state[SEED + 1u]);
    let low = seed.x + 0x7f4a7c15u;
    var z = vec2<u32>(low, seed.y + 0x9e3779b9u + select(0u, 1u, low < seed.x));
    z = scrambled(z, 30u, vec2<u32>(0x1ce4e5b9u, 0xbf58476du));
    z = scrambled(z, 27u, vec2<u32>(0x133111ebu, 0x94d049bbu));
    return z.y ^ (z.y >> 31u);
}

// A value times the factor at `at` times two to `scale`, rounded down; the largest number if it does not fit.
fn times(value: u32, at: u32, scale: i32) -> u32 {
    let all = product(value, state[at]);
    let shift = i32(state[at + 1u]) - scale;
    if (shift >= 64) { return 0u; }
    if (shift < 0) { return select(0xffffffffu, 0u, value == 0u); }
    let by = u32(shift);
    if (by >= 32u) { return all.y >> (by - 32u); }
    if ((all.y >> by) != 0u) { return 0xffffffffu; }
    if (by == 0u) { return all.x; }
    return (all.x >> by) | (all.y << (32u - by));
}

fn exponent(bits: u32) -> i32 {
    return clamp(i32((bits >> 23u) & 0xffu), 1, 254);
}

// A number in fixed point, rounded towards zero; the largest or smallest if it does not fit.
fn fixed(bits: u32, fraction: i32) -> i32 {
    let stored = (bits >> 23u) & 0xffu;
    var mantissa = bits & 0x007fffffu;
    if (stored == 0xffu) {
        mantissa = 0x00ffffffu;
    } else if (stored != 0u) {
        mantissa |= 0x00800000u;
    }
    let shift = exponent(bits) - 150 + fraction;
    var size = 0u;
    if (shift >= 8) {
        size = 0x7fffffffu;
    } else if (shift >= 0) {
        size = mantissa << u32(shift);
    } else if (shift >= -23) {
        size = mantissa >> u32(-shift);
    }
    return select(i32(size), -i32(size), (bits & 0x80000000u) != 0u);
}

fn penalized(value: i32) -> i32 {
    let size = i32(min(times(u32(abs(value)), select(MULTIPLY, DIVIDE, value > 0), 0), 0x7fffffffu));
    return select(-size, size, value > 0);
}

// Two to the negative `distance`, which has 24 fraction bits, with 24 fraction bits, rounded.
fn weight(distance: u32) -> u32 {
    let whole = distance >> 24u;
    if (whole > 24u) { return 0u; }
    let y = product(distance << 8u, 0xb17217f8u).y;
    var sum = 0x80000000u;
    for (var k = 10u; k > 0u; k--) {
        sum = 0x80000000u - product(y, sum).y / k;
    }
    let shift = 7u + whole;
    return (sum + (1u << (shift - 1u))) >> shift;
}

// Sums up to each thread's value, in `sums`.
fn sum(local: u32, value: u32) {
    workgroupBarrier();
    sums[local] = value;
    workgroupBarrier();
    for (var step = 1u; step < MOST; step *= 2u) {
        var before = 0u;
        if (local >= step) { before = sums[local - step]; }
        workgroupBarrier();
        sums[local] += before;
        workgroupBarrier();
    }
}

@compute @workgroup_size($THREADS)
fn main(@builtin(local_invocation_index) local: u32) {
    let here = local < params.count;
    let position = rows[0].x + 1u;
    let window = min(state[WINDOW], min(position, RING));
    if (local < window) { recent[local] = state[WORDS + (position - 1u - local) % RING]; }
    workgroupBarrier();

    // Both zeros are the same number.
    let fraction = min(20, 156 - exponent(candidates[0].y));
    var id = 0xffffffffu;
    var value = -0x7fffffff;
    if (here) {
        let entry = candidates[local];
        id = entry.x;
        value = fixed(entry.y, fraction);
    }
    var repeated = false;
    for (var i = 0u; i < window; i++) {
        repeated = repeated || recent[i] == id;
    }
    if (repeated) { value = penalized(value); }
    values[local] = value;
    workgroupBarrier();

    // Without penalties they are in order.
    var place = local;
    if (window > 0u) {
        place = 0u;
        for (var i = 0u; i < params.count; i++) {
            let other = values[i];
            place += select(0u, 1u, other > value || (other == value && i < local));
        }
    }
    if (here) { sorted[place] = vec2<u32>(bitcast<u32>(value), id); }
    workgroupBarrier();

    let distance = sorted[0].x - sorted[local].x;
    let powers = times(distance, LOG2_E, 24 - fraction);
    var stays = here && local < state[KEEP];
    let likely = select(0u, weight(powers), stays);
    sum(local, likely);
    let enough = product(state[TOP_P], sums[MOST - 1u]);
    let least = enough.y + select(0u, 1u, enough.x != 0u);
    stays = stays && (state[TOP_P] == 0u || sums[local] - likely < least);
    stays = stays && (local == 0u || powers <= state[MIN_P]);
    let own = select(0u, weight(times(distance, TEMPERATURE, 24 - fraction)), stays);
    sum(local, own);
    let drawn = product(random(position), sums[MOST - 1u]).y;
    if (drawn < sums[local] && drawn >= sums[local] - own) {
        let chosen = sorted[local].y;
        candidates[params.count] = vec2<u32>(chosen, 0u);
        token[0] = chosen;
        state[WORDS + position % RING] = chosen;
    }
}
