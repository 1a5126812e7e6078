//! What a stage's device spends on checks for a token, in and out: `cargo bench -p potluck-sim --bench rows`.

use std::hint::black_box;
use std::time::Instant;

use potluck_swarm::testing::hash_rows;

const ROWS: usize = 512;
const RUNS: usize = 20;

fn main() {
    println!("microseconds a token: rows that come in are hashed and kept, rows that go out are hashed");
    for width in [1_024, 2_048, 4_096, 8_192] {
        let rows: Vec<f32> = (0..ROWS * width).map(|value| (value as f32).sin()).collect();
        let run = || {
            let begin = Instant::now();
            black_box(hash_rows(black_box(&rows), width));
            black_box(black_box(&rows).to_vec());
            black_box(hash_rows(black_box(&rows), width));
            begin.elapsed().as_secs_f64() * 1e6 / ROWS as f64
        };
        let best = (0..RUNS).map(|_| run()).fold(f64::INFINITY, f64::min);
        println!("{width} values a token: {best:.1} µs");
    }
}
