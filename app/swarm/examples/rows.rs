//! What a stage's device does for checks with each token, for a browser: `e2e/bench/rows.mjs` times it there, as the bench `rows` of
//! the simulator does natively.

use std::hint::black_box;

use potluck_swarm::testing::hash_rows;
use wasm_bindgen::prelude::wasm_bindgen;

/// Rows of some tokens.
#[wasm_bindgen]
pub struct TokenRows {
    values: Vec<f32>,
    width: usize,
}

#[wasm_bindgen]
impl TokenRows {
    /// Of `count` tokens with `width` values each.
    #[wasm_bindgen(constructor)]
    pub fn new(count: usize, width: usize) -> Self {
        Self { values: (0..count * width).map(|value| (value as f32).sin()).collect(), width }
    }

    /// Rows that come in are hashed and kept, rows that go out are hashed.
    pub fn check(&self) {
        black_box(hash_rows(black_box(&self.values), self.width));
        black_box(black_box(&self.values).clone());
        black_box(hash_rows(black_box(&self.values), self.width));
    }
}

fn main() {}
