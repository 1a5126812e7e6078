//! Set-up, run and test: `cargo xtask run`, `cargo xtask test`, `cargo xtask simulate`, `cargo xtask build`.

mod browser;
mod build;
mod options;
mod run;
mod shell;
mod simulate;
mod size;
mod test;
mod tools;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use options::Command;

fn main() -> ExitCode {
    let result = match options::read(std::env::args_os()) {
        Ok(Command::Help) => {
            print!("{}", options::HELP);
            Ok(())
        }
        Ok(Command::Build) => build::page().and_then(|()| build::relay()).map(|relay| {
            println!("The page is in dist/, the relay is {}.", relay.display());
        }),
        Ok(Command::Run(run)) => run::run(&run),
        Ok(Command::Test { only }) => test::run(&only),
        Ok(Command::Simulate(options)) => simulate::run(&options),
        Err(error) => {
            eprintln!("{error}\n\n{}", options::HELP);
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nerror: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The repository's folder.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}
