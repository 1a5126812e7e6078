//! MoEx (moex.txt): what its tables and equations give when they are evaluated.

use potluck_planner::{Call, Delay, expected_max};

use super::pool::Pool;
use crate::table::{Table, number};

/// A model as the paper or the file describes it.
struct Model {
    name: &'static str,
    blocks: f64,
    hidden: f64,
    expert_width: f64,
}

const PAPER: Model = Model { name: "paper", blocks: 46.0, hidden: 4096.0, expert_width: 2048.0 };
/// The sizes in Qwen3-30B-A3B's configuration file.
const QWEN3: Model = Model { name: "Qwen3-30B-A3B", blocks: 48.0, hidden: 2048.0, expert_width: 768.0 };

/// Experts of a block, and experts a token uses (2.1).
const EXPERTS: f64 = 128.0;
const USED: usize = 8;
/// Blocks of table 3.
const BLOCKS: f64 = 48.0;
/// Milliseconds a block: the hub's attention, a worker's expert (6.3), and its readback (table 2).
const ATTENTION: f64 = 1.5;
const EXPERT: f64 = 0.7;
const READBACK: f64 = 0.2;
/// The spread of table 1.
const SIGMA: f64 = 0.5;

/// Table 1: latency for h = 1 to 4.
const TABLE_1: [f64; 4] = [51.2, 28.7, 23.1, 20.4];
/// Table 3: round trip, and milliseconds a token for h = 1 to 3.
const TABLE_3: [(&str, f64, [f64; 3]); 4] = [
    ("LAN", 0.5, [163.0, 150.0, 146.0]),
    ("WiFi", 2.0, [307.0, 250.0, 234.0]),
    ("WAN, city", 10.0, [1075.0, 922.0, 874.0]),
    ("WAN, cross", 50.0, [4915.0, 4762.0, 4714.0]),
];

/// Equation 18: the slowest of the experts' first answers.
fn expert_phase(median: f64, sigma: f64, copies: usize) -> f64 {
    expected_max(&vec![Call::hedged(&Delay::spread(median, sigma), copies); USED])
}

/// Table 1, evaluated.
fn table_1() -> [f64; 4] {
    [1, 2, 3, 4].map(|copies| expert_phase(20.0, SIGMA, copies))
}

/// Equations 3 and 4: bytes that each of `workers` holds, at half a byte a weight.
fn worker_bytes(model: &Model, workers: f64, replicas: f64) -> f64 {
    replicas * EXPERTS / workers * model.blocks * expert_weights(model) * 0.5
}

/// Equation 9: gate, up and down.
fn expert_weights(model: &Model) -> f64 {
    3.0 * model.hidden * model.expert_width
}

/// Equations 10 to 12 with T_net one way, and with a round trip for each T_net, as table 3 must have counted.
fn token_millis(round_trip: f64, round_trips: f64) -> f64 {
    BLOCKS * (ATTENTION + round_trips * round_trip + EXPERT + READBACK)
}

/// Equations 10 to 12 where a worker's answer varies as in table 1.
fn varying_token_millis(round_trip: f64, copies: usize) -> f64 {
    BLOCKS * (ATTENTION + expert_phase(round_trip + EXPERT + READBACK, SIGMA, copies))
}

/// Equation 13, as if neither attention nor experts took longer for more tokens: an upper bound.
fn prefill_rate(tokens: f64, round_trip: f64) -> f64 {
    tokens * 1e3 / (BLOCKS * (ATTENTION + round_trip + EXPERT))
}

/// What the planner predicts for the paper's hub and eight workers.
fn planned(round_trip: f64, sigma: f64, replicas: usize) -> f64 {
    pool(round_trip, sigma, replicas).predicted()
}

fn pool(round_trip_millis: f64, sigma: f64, replicas: usize) -> Pool {
    Pool {
        blocks: BLOCKS as usize,
        workers: 8,
        replicas,
        attention_millis: ATTENTION,
        expert_millis: EXPERT + READBACK,
        round_trip_millis,
        sigma,
    }
}

/// Everything, in Markdown.
pub fn report() -> String {
    let parts =
        [latency().to_string(), memory().to_string(), projection().to_string(), varying().to_string(), prefill()];
    parts.join("\n")
}

fn latency() -> Table {
    let mut table = Table::new(
        "Table 1, equations 5 to 8 and 14 to 18: the slowest of 8 experts, log-normal with median 20 ms and σ 0.5",
        &["h", "paper, ms", "evaluated, ms", "paper is off by", "reduction, paper", "reduction, evaluated"],
    );
    let found = table_1();
    for (index, (paper, found_millis)) in TABLE_1.iter().zip(found).enumerate() {
        let reduction = |millis: f64, first: f64| format!("{:.1}%", 100.0 * (1.0 - millis / first));
        table.row([
            (index + 1).to_string(),
            number(*paper),
            number(found_millis),
            format!("{:+.0}%", 100.0 * (paper / found_millis - 1.0)),
            reduction(*paper, TABLE_1[0]),
            reduction(found_millis, found[0]),
        ]);
    }
    table
}

fn memory() -> Table {
    let mut table = Table::new(
        "Equations 3, 4 and 9: 16 workers, r = 2, half a byte a weight",
        &["model", "blocks with experts", "hidden", "expert width", "weights of an expert", "a worker holds"],
    );
    for model in [PAPER, QWEN3] {
        table.row([
            model.name.to_owned(),
            format!("{}", model.blocks),
            format!("{}", model.hidden),
            format!("{}", model.expert_width),
            format!("{:.1} M", expert_weights(&model) / 1e6),
            format!("{:.1} GB", worker_bytes(&model, 16.0, 2.0) / 1e9),
        ]);
    }
    table
}

fn projection() -> Table {
    let mut table = Table::new(
        "Table 3, equations 10 to 12: ms a token, h = 1, 48 blocks, attention 1.5, expert 0.7, readback 0.2",
        &["network", "RTT, ms", "paper", "equation 12", "with 2 RTT a block", "planner"],
    );
    for (network, round_trip, paper) in TABLE_3 {
        table.row([
            network.to_owned(),
            format!("{round_trip}"),
            number(paper[0]),
            number(token_millis(round_trip, 1.0)),
            number(token_millis(round_trip, 2.0)),
            number(planned(round_trip, 0.0, 1)),
        ]);
    }
    table
}

fn varying() -> Table {
    let asked = pool(1.0, 0.0, 1).workers_asked();
    let title = format!(
        "Table 3 with answers that vary by σ 0.5: ms a token; the planner asks {asked:.1} of 8 workers a block, and the \
         second holder after the first one's 75th percentile"
    );
    let head = ["network", "paper, h = 1, 2, 3", "equation 18, h = 1, 2, 3", "planner, r = 1", "planner, r = 2"];
    let mut table = Table::new(&title, &head);
    for (network, round_trip, paper) in TABLE_3 {
        let list = |values: [f64; 3]| values.map(number).join(", ");
        table.row([
            network.to_owned(),
            list(paper),
            list([1, 2, 3].map(|copies| varying_token_millis(round_trip, copies))),
            number(planned(round_trip, SIGMA, 1)),
            number(planned(round_trip, SIGMA, 2)),
        ]);
    }
    table
}

fn prefill() -> String {
    let mut table = Table::new(
        "Equation 13: tokens of a prompt a second at most, if a batch took no longer than one token (the paper names none)",
        &["network", "16 tokens", "128 tokens", "512 tokens"],
    );
    for (network, round_trip, _) in TABLE_3 {
        let rates = [16.0, 128.0, 512.0].map(|tokens| number(prefill_rate(tokens, round_trip)));
        table.row(std::iter::once(network.to_owned()).chain(rates));
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64, tolerance: f64, what: &str) {
        assert!((found - expected).abs() <= tolerance, "{what}: {found} instead of {expected}");
    }

    #[test]
    fn table_1_is_not_what_its_equation_gives() {
        for (found, expected) in table_1().into_iter().zip([42.8, 27.6, 22.4, 19.6]) {
            close(found, expected, 0.05, "expected latency");
        }
        let p99 = Delay::LogNormal { median: 20.0, sigma: SIGMA }.quantile(0.99);
        close(p99, 64.0, 0.05, "99th percentile, 63 ms in the paper");
    }

    #[test]
    fn a_worker_holds_less_than_the_paper_says() {
        close(worker_bytes(&PAPER, 16.0, 2.0) / 1e9, 9.26, 0.01, "the paper's 9.2 GB, from 25 M weights an expert");
        close(worker_bytes(&QWEN3, 16.0, 2.0) / 1e9, 1.81, 0.01, "the model as it is");
    }

    #[test]
    fn table_3_counts_each_round_trip_twice() {
        for (network, round_trip, paper) in TABLE_3 {
            close(token_millis(round_trip, 2.0), paper[0], 0.5, network);
        }
        let once = TABLE_3.map(|(_, round_trip, _)| token_millis(round_trip, 1.0));
        for (found, expected) in once.into_iter().zip([139.2, 211.2, 595.2, 2515.2]) {
            close(found, expected, 1e-9, "equation 12 with one round trip a block");
        }
    }

    #[test]
    fn the_planner_agrees_with_equation_12() {
        for (network, round_trip, _) in TABLE_3 {
            let expected = token_millis(round_trip, 1.0);
            close(planned(round_trip, 0.0, 1), expected, 0.005 * expected, network);
        }
    }

    #[test]
    fn a_second_holder_helps_the_planner_less_than_equation_18_at_once() {
        let [once, twice] = [1, 2].map(|copies| varying_token_millis(2.0, copies));
        let [alone, hedged] = [1, 2].map(|replicas| planned(2.0, SIGMA, replicas));
        assert!(alone < once, "several experts share a worker, so fewer than eight are asked: {alone} and {once}");
        // Copies of what one worker is asked for go to several others, of which the slowest counts.
        assert!(hedged < 0.98 * alone && hedged - alone > twice - once, "{hedged} of {alone}, {twice} of {once}");
    }

    #[test]
    fn the_lab_shows_these_tables() {
        let lab = include_str!("../../../docs/lab/experts.md");
        assert!(lab.contains(&report()), "docs/lab/experts.md differs: paste the output of `cargo lab paper moex`");
    }
}
