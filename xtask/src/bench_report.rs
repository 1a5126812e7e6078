//! `cargo xtask bench-report`: the tables of `BENCHMARKS.md`, from the records in `bench/results/`.
//!
//! A table stands between `<!-- bench NAME -->` and `<!-- /bench -->`, where `NAME` is a record's file name without `.json`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::root;

const END: &str = "<!-- /bench -->";

/// What one measurement gave. Every measuring script writes this.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    name: String,
    /// `2026-11-22`.
    date: String,
    /// The commit that was measured; of figures older than these records, the commit that noted them.
    commit: String,
    machine: String,
    /// The one command that measures it again.
    command: String,
    figures: Vec<Figure>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Figure {
    label: String,
    value: f64,
    unit: String,
    /// What another engine, a paper or another way of sending got, and which.
    peer: Option<String>,
    /// What we wanted, fixed before measuring.
    target: Option<String>,
}

/// Renders all tables into `BENCHMARKS.md`.
///
/// # Errors
/// A record that cannot be read, and a table without a record or a record without a table.
pub fn write() -> Result<()> {
    let path = page();
    let text = fs::read_to_string(&path).context("cannot read BENCHMARKS.md")?;
    let rendered = render(&text, &records()?)?;
    fs::write(&path, &rendered).context("cannot write BENCHMARKS.md")?;
    println!("BENCHMARKS.md {}.", if rendered == text { "was up to date" } else { "has new figures" });
    Ok(())
}

fn page() -> PathBuf {
    root().join("BENCHMARKS.md")
}

/// All records, by the names of their files.
fn records() -> Result<BTreeMap<String, Record>> {
    let mut records = BTreeMap::new();
    for entry in fs::read_dir(root().join("bench").join("results")).context("cannot read bench/results")? {
        let path = entry?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".json")) else { continue };
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let record: Record = serde_json::from_str(&text).with_context(|| format!("in {}", path.display()))?;
        if record.name != name {
            bail!("{} holds the record {:?}: the names must be the same", path.display(), record.name);
        }
        records.insert(name.to_owned(), record);
    }
    Ok(records)
}

/// The page with every table rendered anew.
fn render(page: &str, records: &BTreeMap<String, Record>) -> Result<String> {
    let mut out = String::new();
    let mut shown = Vec::new();
    let mut rest = page;
    while let Some((before, after)) = rest.split_once("<!-- bench ") {
        let (name, after) = after.split_once(" -->\n").context("a marker does not end")?;
        let (_, after) = after.split_once(END).with_context(|| format!("the table of {name} does not end"))?;
        let record = records.get(name).with_context(|| format!("there is no bench/results/{name}.json"))?;
        write!(out, "{before}<!-- bench {name} -->\n{}{END}", table(record))?;
        shown.push(name);
        rest = after;
    }
    out.push_str(rest);
    match records.keys().find(|name| !shown.contains(&name.as_str())) {
        Some(hidden) => bail!("BENCHMARKS.md shows every record but {hidden}: add <!-- bench {hidden} --> and {END}"),
        None => Ok(out),
    }
}

/// One record in Markdown. Columns that no figure fills are left out.
fn table(record: &Record) -> String {
    let has_target = record.figures.iter().any(|figure| figure.target.is_some());
    let has_peer = record.figures.iter().any(|figure| figure.peer.is_some());
    let row = |cells: [&str; 4]| {
        let [label, value, target, peer] = cells;
        let optional =
            [(has_target, target), (has_peer, peer)].into_iter().filter_map(|(shown, cell)| shown.then_some(cell));
        let cells: Vec<&str> = [label, value].into_iter().chain(optional).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let mut lines = row(["", "Potluck", "target", "for comparison"]) + &row(["---"; 4]);
    for figure in &record.figures {
        let space = if figure.unit == "%" { "" } else { " " };
        let value = format!("{}{space}{}", number(figure.value), figure.unit);
        let text = |cell: &Option<String>| cell.clone().unwrap_or_default();
        lines += &row([&figure.label, value.trim(), &text(&figure.target), &text(&figure.peer)]);
    }
    format!("{lines}\n{}, {}, commit `{}`: `{}`\n", record.machine, record.date, record.commit, record.command)
}

/// A number with its thousands apart: `22,368`, `4.9`.
fn number(value: f64) -> String {
    let text = value.to_string();
    let (whole, fraction) =
        text.split_once('.').map_or((text.as_str(), String::new()), |(whole, rest)| (whole, format!(".{rest}")));
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped + &fraction
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn the_page_shows_the_records() {
        let text = fs::read_to_string(page()).unwrap();
        let rendered = render(&text, &records().unwrap()).unwrap();
        assert!(rendered == text, "BENCHMARKS.md differs from bench/results/: run `cargo xtask bench-report`");
    }

    fn records_of(json: &str) -> BTreeMap<String, Record> {
        BTreeMap::from([("speed".to_owned(), serde_json::from_str(json).unwrap())])
    }

    #[test]
    fn a_table_has_the_columns_that_are_filled() {
        let records = records_of(
            r#"{"name": "speed", "date": "2026-11-22", "commit": "abc1234", "machine": "one GPU", "command": "measure",
                "figures": [{"label": "decode", "value": 12345.5, "unit": "tok/s", "peer": "other: 1"},
                            {"label": "share", "value": 75, "unit": "%"}]}"#,
        );
        let page = "a\n<!-- bench speed -->\nold\n<!-- /bench -->\nb\n";
        let expected = "a\n<!-- bench speed -->\n\
                        |  | Potluck | for comparison |\n| --- | --- | --- |\n\
                        | decode | 12,345.5 tok/s | other: 1 |\n| share | 75% |  |\n\n\
                        one GPU, 2026-11-22, commit `abc1234`: `measure`\n<!-- /bench -->\nb\n";
        assert_eq!(render(page, &records).unwrap(), expected);
    }

    #[test]
    fn no_record_is_forgotten() {
        let json = r#"{"name": "speed", "date": "", "commit": "", "machine": "", "command": "", "figures": []}"#;
        assert!(render("a page without tables", &records_of(json)).is_err());
        assert!(render("<!-- bench other -->\n<!-- /bench -->", &records_of(json)).is_err());
    }
}
