//! DGP (dynamic-partitioning.txt, chapter 7): its devices, networks and models in our cost model and search, beside what it
//! measured. Nothing here runs on devices.

mod bed;
mod input;

use potluck_plan::BlockRange;

use self::bed::{Found, TestBed, Without};
use self::input::{AIDOS, Network, PAPER_14B, THOR, devices, qwen3};
use super::records::{self, Records};
use crate::table::{Table, number};

/// What cannot be remade, and why.
const NOT_HERE: &str = "\
Not remade:

- Table 2.1, table 3.1, table 7.1: descriptions of models, systems and machines. Tables 7.2 and 7.3 are the input of what is above.
- Figure 7.1 (its server against native ONNX Runtime) and figures 7.2 to 7.4 (lengths, models, the web): they need its machines and
  ONNX models, and the text gives no numbers but those of table 7.2. `cargo lab predicted --set sizes` runs models of several sizes here.
- Figure 7.6: the pairs of estimates and measurements behind tables 7.4 and 7.5 are not in the text.
- Figures 7.7, 7.8, 7.9 and 7.10 have no numbers in the text but those quoted above. Their speeds on real devices:
  `cargo lab predicted --set ablation` and `--equal`.
- In the slowed network the paper loses most without bandwidth, our prediction without speed: how much memory its devices gave there is
  not in the text.
- Table 7.6's time to the first token: our cost model has no initialization of ONNX sessions.
- Figure 7.11: a run over time. The recovery in it is above.
";

/// All tables, in Markdown.
pub fn report(records: &Records) -> anyhow::Result<String> {
    let mut tables = vec![partitions(), ablation(), large_model(), scaling()];
    tables.push(records.beside(
        "rooms",
        "Tables 7.4 and 7.5 (error of the cost model: initial 10.0 to 15.6%, running 4.4 to 16.6%)",
    )?);
    tables.push(records.beside("planned-split", "Figure 7.7 (planned over equal parts: 1.41 and 1.46 times)")?);
    tables.push(records.beside("recovery", "Figure 7.11 (a device leaves: 7 s until the next token)")?);
    let tables: Vec<String> = tables.iter().map(Table::to_string).collect();
    Ok(format!("{}\n{}\n{NOT_HERE}", tables.join("\n"), records::how_to_measure()))
}

fn rate(millis: f64) -> String {
    format!("{:.2}", 1e3 / millis)
}

/// Figures 7.7 and 7.8.
fn partitions() -> Table {
    let title = "Figures 7.7 and 7.8: Qwen3-4B, equal and planned parts, predicted (speeds: bytes of Qwen3-0.6B in ONNX × tokens a \
                 second of table 7.2; 8 GB of weights on each of three as in 7.4.2, 4.6 GB on each of five assumed)";
    let mut table =
        Table::new(title, &["devices", "equal, tok/s", "equal parts", "planned, tok/s", "planned parts", "the paper"]);
    let settings = [
        (
            3,
            8.0,
            "planned 1.46 times as fast (8.1.4); Aidos last in equal parts; planned: Aidos and Thor full, few layers on Pgx, Thor last",
        ),
        (5, 4.6, "planned 1.41 times as fast; less on Nano and Agx; Aidos, Thor and Pgx full"),
        (5, 64.0, "free: Aidos and Thor only, the fastest; 13 tok/s (7.6.1)"),
    ];
    for (count, gigabytes, paper) in settings {
        // Aidos has 15.7 GB, of which a third is kept free (7.4.2).
        let limit = |index: usize| if index == AIDOS { f64::min(gigabytes, 15.72 * 2.0 / 3.0) } else { gigabytes };
        let bed = TestBed::new(qwen3("4B").shape(), devices(count, limit, Network::Default));
        let equal = if gigabytes < 10.0 { bed.equal() } else { None };
        let cells = |found: Option<Found>| match found {
            Some(found) => [rate(found.prediction.token_millis), found.assignment],
            None => ["–".to_owned(), "–".to_owned()],
        };
        let name = if gigabytes < 10.0 { format!("{count} of {gigabytes} GB") } else { format!("{count}, free") };
        let row = [name].into_iter().chain(cells(equal)).chain(cells(bed.planned(Without::Nothing)));
        table.row(row.chain([paper.to_owned()]));
    }
    table
}

/// Figures 7.9 and 7.10.
fn ablation() -> Table {
    let title =
        "Figures 7.9 and 7.10: Qwen3-4B on five devices of 6.5 GB (assumed) planned without a measure, predicted";
    let head = ["network", "planned without", "thought, ms", "takes, ms", "error, ms", "tok/s", "parts", "the paper"];
    let mut table = Table::new(title, &head);
    let measures = [
        ("nothing", Without::Nothing, ""),
        (
            "speed",
            Without::Speed,
            "275 ms of error in its network, where it leaves computing out; slower devices get more",
        ),
        ("session overhead", Without::Session, ""),
        ("latency", Without::Latency, "as with it: Aidos, 100 ms away, is used anyway"),
        ("bandwidth", Without::Bandwidth, "the largest loss: Pgx at 128 kB/s in the middle"),
    ];
    for (name, network) in [("slowed", Network::Slowed), ("its own", Network::Default)] {
        let bed = TestBed::new(qwen3("4B").shape(), devices(5, |_| 6.5, network));
        for (measure, without, paper) in measures {
            let Some(found) = bed.planned(without) else { continue };
            let takes = found.prediction.token_millis;
            table.row([
                name.to_owned(),
                measure.to_owned(),
                number(found.thought),
                number(takes),
                number((found.thought - takes).abs()),
                rate(takes),
                found.assignment,
                paper.to_owned(),
            ]);
        }
    }
    table
}

/// Tables 7.6 and 7.7. Layers are numbered from the embedding to the head there; here both ends belong to a stage with blocks, so Pgx,
/// which has the embedding only, has no stage.
fn large_model() -> Table {
    let title = "Tables 7.6 and 7.7: Qwen3-14B, computing on the devices of its assignment, predicted from the speeds of table 7.2";
    let head =
        ["device", "layers there", "its first estimate, ms", "measured there, ms", "blocks here", "predicted here, ms"];
    let mut table = Table::new(title, &head);
    let bed = TestBed::new(qwen3("14B").shape(), devices(3, |_| 64.0, Network::Default));
    let ranges = [(THOR, BlockRange::new(0, 34)), (AIDOS, BlockRange::new(34, 40))];
    let prediction = bed.given(&ranges);
    let ours: Vec<(String, f64)> = ranges
        .iter()
        .zip(prediction.stage_millis())
        .map(|((_, range), millis)| (format!("{} to {}", range.start, range.end), millis))
        .collect();
    for (row, ours) in PAPER_14B.iter().zip([None, ours.first(), ours.get(1)]) {
        let (blocks, millis) =
            ours.map_or(("–".to_owned(), "–".to_owned()), |(blocks, millis)| (blocks.clone(), number(*millis)));
        table.row([
            row.device.to_owned(),
            row.layers.to_owned(),
            number(row.estimate),
            number(row.computing),
            blocks,
            millis,
        ]);
    }
    let token = number(prediction.token_millis);
    table.row(["a token".to_owned(), "0–42".to_owned(), "–".to_owned(), number(312.02), "0 to 40".to_owned(), token]);
    table
}

/// Figure 7.5 and the text around it.
fn scaling() -> Table {
    let title = "Figure 7.5: Qwen3-0.6B on GPUs of Aidos, predicted; slow: 20 ms a round trip, 10 MB/s down, 2 MB/s up. There every \
                 message passes the server, here a stage sends to the next";
    let mut table = Table::new(title, &["workers", "fast, ms", "slow, ms", "slower by, ms", "there"]);
    let model = qwen3("0.6B");
    let there = ["16 and 39 ms", "45 ms slower", "–", "–"];
    for (workers, there) in (1..=4).zip(there) {
        let millis = |network| {
            let bed = TestBed::new(model.shape(), input::equal_aidos(workers, network));
            // Equal parts, the first may be smaller.
            bed.equal().map_or(f64::NAN, |found| found.prediction.token_millis)
        };
        let (fast, slow) = (millis(Network::Default), millis(Network::Slowed));
        table.row([workers.to_string(), number(fast), number(slow), number(slow - fast), there.to_owned()]);
    }
    table
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn the_plans_are_those_that_the_paper_describes() {
        let tables = partitions().to_string();
        let free = tables.lines().find(|line| line.contains("5, free")).unwrap();
        assert!(free.contains("Aidos") && free.contains("Thor") && !free.contains("Pgx 1"), "{free}");
        let scaling = scaling().to_string();
        assert!(scaling.contains("| 1 | ") && !scaling.contains("NaN"), "{scaling}");
        let large = large_model().to_string();
        assert!(large.contains("| Thor | 1–35 | 335 | 278 | 0 to 34 |"), "{large}");
    }

    #[test]
    fn in_the_slowed_network_only_speed_and_bandwidth_change_the_plan() {
        let bed = TestBed::new(qwen3("4B").shape(), devices(5, |_| 6.5, Network::Slowed));
        let takes = |without| bed.planned(without).unwrap().prediction.token_millis;
        let all = takes(Without::Nothing);
        for without in [Without::Session, Without::Latency] {
            assert!((takes(without) - all).abs() < 1e-6, "{without:?}: as in 7.5.2, latency changes no choice");
        }
        for without in [Without::Speed, Without::Bandwidth] {
            assert!(takes(without) > 1.1 * all, "{without:?}");
        }
    }
}
