// Lists the chosen (row, expert) pairs by expert, in tiles of 32, for the grouped product. One thread walks one expert's
// pairs after another in order, so that the lists are the same every time.
// `tiles` holds (first pair in `pairs`, count, slot, 0); unused tiles have count 0.
$PARAMS
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> slots: array<u32>;
@group(0) @binding(2) var<storage, read> chosen: array<u32>;
@group(0) @binding(3) var<storage, read_write> tiles: array<vec4<u32>>;
@group(0) @binding(4) var<storage, read_write> pairs: array<u32>;

var<workgroup> count: array<u32, $EXPERTS>;
var<workgroup> start: array<u32, $EXPERTS>;
var<workgroup> first_tile: array<u32, $EXPERTS>;
var<workgroup> tiles_used: u32;

@compute @workgroup_size($THREADS)
fn main(@builtin(local_invocation_index) local: u32) {
    for (var e = local; e < params.experts; e += $THREADSu) {
        var c = 0u;
        if (slots[e] != 0xffffffffu) {
            for (var p = 0u; p < params.pairs; p++) {
                if (chosen[p] == e) { c += 1u; }
            }
        }
        count[e] = c;
    }
    workgroupBarrier();
    if (local == 0u) {
        var at = 0u;
        var tile = 0u;
        for (var e = 0u; e < params.experts; e++) {
            start[e] = at;
            first_tile[e] = tile;
            at += count[e];
            tile += (count[e] + 31u) / 32u;
        }
        tiles_used = tile;
    }
    workgroupBarrier();
    for (var e = local; e < params.experts; e += $THREADSu) {
        var left = count[e];
        if (left > 0u) {
            var at = start[e];
            for (var p = 0u; p < params.pairs; p++) {
                if (chosen[p] == e) {
                    pairs[at] = p;
                    at += 1u;
                }
            }
            var first = start[e];
            var tile = first_tile[e];
            while (left > 0u) {
                let here = min(left, 32u);
                tiles[tile] = vec4<u32>(first, here, slots[e], 0u);
                first += here;
                tile += 1u;
                left -= here;
            }
        }
    }
    for (var t = tiles_used + local; t < params.tiles; t += $THREADSu) { tiles[t] = vec4<u32>(0u); }
}
