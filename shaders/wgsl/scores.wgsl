// What a score goes through before the softmax, and which positions a query sees.
#if WINDOW
// The first position in the window of a query. A chunk begins at a multiple of its length.
fn window_start(position: u32) -> u32 {
    if (params.chunked != 0u) { return position - position % params.window; }
    return select(0u, position + 1u - params.window, position >= params.window);
}
#endif
#if CAP
// Soft cap: cap · tanh(score / cap), by an exponential that cannot overflow.
fn capped(score: f32) -> f32 {
    let e = exp(clamp(2.0 * score / params.cap, -40.0, 40.0));
    return params.cap * (1.0 - 2.0 / (e + 1.0));
}
#endif
