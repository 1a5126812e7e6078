//! What was measured here (`bench/results`), beside what papers measured.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::table::{Table, number};

/// The folder of the records.
pub struct Records(PathBuf);

/// A record (`bench/README.md`).
#[derive(Debug, Deserialize)]
struct Record {
    date: String,
    commit: String,
    machine: String,
    command: String,
    figures: Vec<Figure>,
}

#[derive(Debug, Deserialize)]
struct Figure {
    label: String,
    value: f64,
    unit: String,
    peer: Option<String>,
}

/// A sentence on the commands in titles.
pub fn how_to_measure() -> &'static str {
    "Titles of tables that were measured name machine, date, commit, and the command that measures again.\n"
}

impl Records {
    /// Those of this repository.
    pub fn here() -> Self {
        Self(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../bench/results"))
    }

    /// A record's figures beside what was measured of others.
    ///
    /// # Errors
    /// There is no such record, or it cannot be read.
    pub fn beside(&self, name: &str, title: &str) -> Result<Table> {
        let path = self.0.join(name).with_extension("json");
        let json = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let record: Record = serde_json::from_slice(&json).with_context(|| format!("in {}", path.display()))?;
        let Record { date, commit, machine, command, figures } = record;
        let title = format!("{title}: measured here on {machine}, {date}, `{commit}`: `{command}`");
        let mut table = Table::new(&title, &["what", "here", "others, measured beside it or quoted"]);
        for Figure { label, value, unit, peer } in figures {
            table.row([label, format!("{} {unit}", number(value)), peer.unwrap_or_else(|| "–".to_owned())]);
        }
        Ok(table)
    }
}
