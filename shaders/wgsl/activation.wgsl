// What a gated network does with one value of its gate and of its up. Exponents are clamped: WGSL may assume that
// infinities do not occur.
fn activated(g: f32, u: f32) -> f32 {
#if GLU == Silu
    return (g / (1.0 + exp(min(-g, 80.0)))) * u;
#endif
#if GLU == Gelu
    // 0.5 · g · (1 + tanh(z)) is g · sigmoid(2 z), with z = √(2/π) · (g + 0.044715 g³).
    let z = 0.7978845608 * g * fma(g * g, 0.044715, 1.0);
    return (g / (1.0 + exp(clamp(-2.0 * z, -80.0, 80.0)))) * u;
#endif
#if GLU == Clamped
    // gpt-oss: alpha 1.702, limit 7.
    let low = min(g, 7.0);
    return (low / (1.0 + exp(min(-1.702 * low, 80.0)))) * (clamp(u, -7.0, 7.0) + 1.0);
#endif
}
