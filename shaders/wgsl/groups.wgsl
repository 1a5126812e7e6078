// Lists the chosen (token, expert) pairs by expert, in tiles of `tile` pairs, for the grouped product. A pair's place is
// the number of earlier pairs of its expert, so the lists are deterministic: pairs are taken $THREADS at a time, each
// sets its bit in its expert's bitmap, and the lower bits there are the earlier pairs.
#include lists

const WORDS = $THREADSu / 32u;
var<workgroup> count: array<atomic<u32>, $EXPERTS>;
var<workgroup> bitmaps: array<atomic<u32>, $BITMAPS>;
// Where the expert's next pair goes.
var<workgroup> next: array<u32, $EXPERTS>;
var<workgroup> first_tile: array<u32, $EXPERTS>;

fn tiles_of(pairs: u32) -> u32 { return (pairs + params.tile - 1u) / params.tile; }

@compute @workgroup_size($THREADS)
fn main(@builtin(local_invocation_index) local: u32) {
    for (var e = local; e < params.experts; e += $THREADSu) { atomicStore(&count[e], 0u); }
    for (var i = local; i < params.experts * WORDS; i += $THREADSu) { atomicStore(&bitmaps[i], 0u); }
    workgroupBarrier();
    for (var i = local; i < params.pairs; i += $THREADSu) {
        let e = chosen[i];
        if (e < params.experts) { atomicAdd(&count[e], 1u); }
    }
    workgroupBarrier();
    for (var e = local; e < params.experts; e += $THREADSu) {
        if (slots[e] == 0xffffffffu) { atomicStore(&count[e], 0u); }
    }
    workgroupBarrier();
    for (var e = local; e < params.experts; e += $THREADSu) {
        var first = 0u;
        var tile = 0u;
        for (var before = 0u; before < e; before++) {
            let c = atomicLoad(&count[before]);
            first += c;
            tile += tiles_of(c);
        }
        next[e] = first;
        first_tile[e] = tile;
        var left = atomicLoad(&count[e]);
        for (; left > 0u; tile++) {
            let here = min(left, params.tile);
            tiles[tile] = vec4<u32>(first, here, slots[e], 0u);
            first += here;
            left -= here;
        }
    }
    workgroupBarrier();
    let last = params.experts - 1u;
    let used = first_tile[last] + tiles_of(atomicLoad(&count[last]));
    for (var t = used + local; t < params.tiles; t += $THREADSu) { tiles[t] = vec4<u32>(0u); }
    for (var begin = 0u; begin < params.pairs; begin += $THREADSu) {
        let pair = begin + local;
        let e = select(0xffffffffu, chosen[min(pair, params.pairs - 1u)], pair < params.pairs);
        var listed = false;
        if (e < params.experts) { listed = atomicLoad(&count[e]) > 0u; }
        if (listed) { atomicOr(&bitmaps[e * WORDS + local / 32u], 1u << (local % 32u)); }
        workgroupBarrier();
        var all = 0u;
        var earlier = 0u;
        if (listed) {
            for (var w = 0u; w < WORDS; w++) {
                let bits = atomicLoad(&bitmaps[e * WORDS + w]);
                all += countOneBits(bits);
                if (w < local / 32u) { earlier += countOneBits(bits); }
                if (w == local / 32u) { earlier += countOneBits(bits & ((1u << (local % 32u)) - 1u)); }
            }
            pairs[next[e] + earlier] = pair;
        }
        workgroupBarrier();
        // The expert's last pair counts them and clears the bitmap.
        if (listed && earlier + 1u == all) {
            next[e] += all;
            for (var w = 0u; w < WORDS; w++) { atomicStore(&bitmaps[e * WORDS + w], 0u); }
        }
        workgroupBarrier();
    }
}
