// Lists the chosen (token, expert) pairs by expert, in tiles of `tile` pairs, for the grouped product. One thread walks
// one expert's pairs in order, so the lists are deterministic.
#include lists

const AT_ONCE = 1024u;
var<workgroup> some: array<u32, AT_ONCE>;
var<workgroup> count: array<u32, $EXPERTS>;
// Where the expert's next pair goes.
var<workgroup> next: array<u32, $EXPERTS>;
var<workgroup> first_tile: array<u32, $EXPERTS>;
var<workgroup> tiles_used: u32;

// Loads chosen experts `begin..begin + AT_ONCE` into workgroup memory.
fn bring(begin: u32, local: u32) {
    for (var i = local; i < AT_ONCE; i += $THREADSu) { some[i] = chosen[min(begin + i, params.pairs - 1u)]; }
}

@compute @workgroup_size($THREADS)
fn main(@builtin(local_invocation_index) local: u32) {
    for (var e = local; e < params.experts; e += $THREADSu) { count[e] = 0u; }
    for (var begin = 0u; begin < params.pairs; begin += AT_ONCE) {
        workgroupBarrier();
        bring(begin, local);
        workgroupBarrier();
        let here = min(AT_ONCE, params.pairs - begin);
        for (var e = local; e < params.experts; e += $THREADSu) {
            var c = count[e];
            for (var i = 0u; i < here; i++) { c += select(0u, 1u, some[i] == e); }
            count[e] = c;
        }
    }
    for (var e = local; e < params.experts; e += $THREADSu) {
        if (slots[e] == 0xffffffffu) { count[e] = 0u; }
    }
    workgroupBarrier();
    if (local == 0u) {
        var at = 0u;
        var tile = 0u;
        for (var e = 0u; e < params.experts; e++) {
            next[e] = at;
            first_tile[e] = tile;
            at += count[e];
            tile += (count[e] + params.tile - 1u) / params.tile;
        }
        tiles_used = tile;
    }
    workgroupBarrier();
    for (var e = local; e < params.experts; e += $THREADSu) {
        var left = count[e];
        var first = next[e];
        for (var tile = first_tile[e]; left > 0u; tile++) {
            let here = min(left, params.tile);
            tiles[tile] = vec4<u32>(first, here, slots[e], 0u);
            first += here;
            left -= here;
        }
    }
    for (var t = tiles_used + local; t < params.tiles; t += $THREADSu) { tiles[t] = vec4<u32>(0u); }
    for (var begin = 0u; begin < params.pairs; begin += AT_ONCE) {
        workgroupBarrier();
        bring(begin, local);
        workgroupBarrier();
        let here = min(AT_ONCE, params.pairs - begin);
        for (var e = local; e < params.experts; e += $THREADSu) {
            if (count[e] == 0u) { continue; }
            var at = next[e];
            for (var i = 0u; i < here; i++) {
                if (some[i] == e) {
                    pairs[at] = begin + i;
                    at += 1u;
                }
            }
            next[e] = at;
        }
    }
}
