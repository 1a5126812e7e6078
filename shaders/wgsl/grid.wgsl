// Where a thread works in a tile of $TX × $TY threads (x along the matrix rows, y along the vectors). 32 neighbours are 8
// × 4 of them, so that they share what they read, and a thread has the same x as the next one and the same y as the next
// but one: NVIDIA's GPUs then serve a read of 16 bytes a thread in two turns instead of four.
fn place(local: u32) -> vec2<u32> {
    let team = local / 32u;
    let x = ((local >> 1u) & 3u) + ((local >> 2u) & 4u);
    let y = (local & 1u) + ((local >> 2u) & 2u);
    return vec2<u32>(8u * (team % ($TXu / 8u)) + x, 4u * (team / ($TXu / 8u)) + y);
}
