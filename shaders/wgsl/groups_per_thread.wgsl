// Makes the lists of `groups.wgsl` with one thread and no barriers: it walks the pairs twice.
#include lists

// Number of pairs per expert, then where the next pair goes. In workgroup memory, because the pairs index it
// dynamically.
var<workgroup> at_expert: array<u32, $EXPERTS>;

@compute @workgroup_size($THREADS)
fn main() {
    for (var e = 0u; e < params.experts; e++) { at_expert[e] = 0u; }
    for (var pair = 0u; pair < params.pairs; pair++) {
        let e = chosen[pair];
        if (e < params.experts) { at_expert[e] += 1u; }
    }
    var first = 0u;
    var tile = 0u;
    for (var e = 0u; e < params.experts; e++) {
        let slot = slots[e];
        var left = select(at_expert[e], 0u, slot == 0xffffffffu);
        at_expert[e] = first;
        while (left > 0u) {
            let here = min(left, params.tile);
            tiles[tile] = vec4<u32>(first, here, slot, 0u);
            tile += 1u;
            first += here;
            left -= here;
        }
    }
    for (; tile < params.tiles; tile++) { tiles[tile] = vec4<u32>(0u); }
    for (var pair = 0u; pair < params.pairs; pair++) {
        let e = chosen[pair];
        if (e < params.experts && slots[min(e, params.experts - 1u)] != 0xffffffffu) {
            pairs[at_expert[e]] = pair;
            at_expert[e] += 1u;
        }
    }
}
