//! How long the search takes: `cargo bench -p potluck-planner`.

mod random;
mod rooms;

use std::time::Instant;

fn main() {
    println!("{:<26}{:>8}{:>12}{:>14}", "room", "blocks", "median ms", "found");
    for case in rooms::CASES {
        let mut found = 0.0;
        let mut times: Vec<f64> = (0..5)
            .map(|_| {
                let started = Instant::now();
                found = rooms::search(case);
                started.elapsed().as_secs_f64() * 1e3
            })
            .collect();
        times.sort_by(f64::total_cmp);
        println!("{:<26}{:>8}{:>12.1}{:>14.2}", case.name, case.blocks, times[2], found);
    }
}
