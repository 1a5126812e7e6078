//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Result, bail};
use lexopt::prelude::*;

/// What `cargo xtask help` prints.
pub const HELP: &str = "\
cargo xtask run [options]    build the page and the relay, start it, open the page
  --port N                   the port (default: 8787)
  --models DIR               a folder with GGUF files, beside the model that comes along
  --local                    only for this machine: no LAN, no HTTPS
  --no-open                  do not open the browser

cargo xtask test             everything that is checked before a landing
  --only NAME                only this step; may be given several times:
                             fmt, size, clippy, clippy-wasm, test, page, e2e, train

cargo xtask simulate SCENARIO  rooms on a virtual clock; without a scenario: which there are
  --seed N                   the (first) seed (default: 1)
  --seeds N                  so many seeds from there (default: 1)
  --out FILE                 the last timeline: tokens per second with joins and leaves, .svg or .json

cargo xtask build            only build the page (to dist/) and the relay

What is missing is fetched first: the WebAssembly target, Trunk, wasm-bindgen.
";

/// What is to be done.
#[derive(Debug, PartialEq)]
pub enum Command {
    /// Print the help.
    Help,
    /// Build page and relay.
    Build,
    /// Build and start.
    Run(Run),
    /// Check.
    Test {
        /// Only these steps; all if empty.
        only: Vec<String>,
    },
    /// Simulate rooms.
    Simulate(Simulate),
}

/// Options of `simulate`.
#[derive(Debug, PartialEq)]
pub struct Simulate {
    /// Which story; without one they are listed.
    pub scenario: Option<String>,
    /// The first seed.
    pub seed: u64,
    /// How many.
    pub seeds: u64,
    /// Where the last timeline goes.
    pub out: Option<PathBuf>,
}

/// Options of `run`.
#[derive(Debug, Default, PartialEq)]
pub struct Run {
    /// The port, if not the usual one.
    pub port: Option<u16>,
    /// Folders with models.
    pub models: Vec<PathBuf>,
    /// Only for this machine.
    pub local: bool,
    /// Do not open the browser.
    pub no_open: bool,
}

/// Reads the command line, the program's name first.
pub fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<Command> {
    let mut parser = lexopt::Parser::from_iter(arguments);
    let mut command = match parser.next()? {
        None | Some(Long("help") | Short('h')) => return Ok(Command::Help),
        Some(Value(name)) => match name.to_str() {
            Some("help") => return Ok(Command::Help),
            Some("build") => Command::Build,
            Some("run") => Command::Run(Run::default()),
            Some("test") => Command::Test { only: Vec::new() },
            Some("simulate") => Command::Simulate(Simulate { scenario: None, seed: 1, seeds: 1, out: None }),
            _ => bail!("there is no command {name:?}"),
        },
        Some(other) => return Err(other.unexpected().into()),
    };
    while let Some(argument) = parser.next()? {
        match (argument, &mut command) {
            (Long("help") | Short('h'), _) => return Ok(Command::Help),
            (Long("port"), Command::Run(run)) => run.port = Some(parser.value()?.parse()?),
            (Long("models"), Command::Run(run)) => run.models.push(parser.value()?.into()),
            (Long("local"), Command::Run(run)) => run.local = true,
            (Long("no-open"), Command::Run(run)) => run.no_open = true,
            (Long("only"), Command::Test { only }) => only.push(parser.value()?.string()?),
            (Value(name), Command::Simulate(simulate)) if simulate.scenario.is_none() => {
                simulate.scenario = Some(name.string()?);
            }
            (Long("seed"), Command::Simulate(simulate)) => simulate.seed = parser.value()?.parse()?,
            (Long("seeds"), Command::Simulate(simulate)) => simulate.seeds = parser.value()?.parse()?,
            (Long("out"), Command::Simulate(simulate)) => simulate.out = Some(parser.value()?.into()),
            (other, _) => return Err(other.unexpected().into()),
        }
    }
    Ok(command)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn parse(line: &str) -> Result<Command> {
        read(std::iter::once("xtask").chain(line.split_whitespace()).map(OsString::from))
    }

    #[test]
    fn commands_and_their_options() {
        let run = Run { port: Some(9000), models: vec!["a".into(), "b".into()], local: true, no_open: true };
        let line = "run --port 9000 --models a --models=b --local --no-open";
        assert_eq!(parse(line).unwrap(), Command::Run(run));
        assert_eq!(parse("test --only fmt").unwrap(), Command::Test { only: vec!["fmt".into()] });
        let scenario = Some("churn".to_owned());
        let simulate = Simulate { scenario, seed: 7, seeds: 100, out: Some("a.svg".into()) };
        let line = "simulate churn --seed 7 --seeds 100 --out a.svg";
        assert_eq!(parse(line).unwrap(), Command::Simulate(simulate));
        assert_eq!(parse("").unwrap(), Command::Help);
        assert_eq!(parse("run --help").unwrap(), Command::Help);
    }

    #[test]
    fn options_of_other_commands_are_refused() {
        for line in
            ["test --port 1", "build --local", "run --only fmt", "walk", "run --port many", "run file", "simulate a b"]
        {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
