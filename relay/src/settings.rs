//! The options of the command line, also from a file and from variables of the environment.
//!
//! What stands in a file or a variable becomes an argument, unless the command line has that option. So `clap` checks all three.

mod file;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, Command, CommandFactory, Parser};

use crate::options::Options;

/// What the name of a variable begins with: `POTLUCK_RELAY_PORT` is `--port`.
const VARIABLES: &str = "POTLUCK_RELAY_";
/// What a file or a variable cannot set.
const COMMAND_LINE_ONLY: [&str; 3] = ["config", "check", "help"];

/// Where a setting stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A file, and the line in it.
    Line(PathBuf, usize),
    /// A variable of the environment.
    Variable(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(file, line) => write!(f, "{}, line {line}", file.display()),
            Self::Variable(name) => write!(f, "the variable {name}"),
        }
    }
}

/// Why the program does not start.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// `clap` says it, or what was asked of it.
    #[error(transparent)]
    Usage(#[from] clap::Error),
    /// The file cannot be read.
    #[error("cannot read {0}: {1}")]
    Read(PathBuf, std::io::Error),
    /// The file is not TOML.
    #[error("{0}: {1}")]
    Syntax(Place, String),
    /// No option has this name.
    #[error("{0}: there is no setting {1:?}; --help lists them as options")]
    Unknown(Place, String),
    /// The option does not take this value.
    #[error("{0}: {1}: {2}")]
    Value(Place, String, String),
}

/// One option of a file or a variable, as it would stand on the command line.
struct Setting {
    place: Place,
    key: String,
    arguments: Vec<OsString>,
}

/// The options of these arguments, the first of which is the program; of variables; and of the file that either names.
///
/// # Errors
/// Something is wrong with one of them, or `--help` was asked for.
pub fn parse(arguments: Vec<OsString>, variable: impl Fn(&str) -> Option<OsString>) -> Result<Options, SettingsError> {
    let variable = |key: &str| {
        let name = format!("{VARIABLES}{}", key.to_uppercase().replace('-', "_"));
        let value = variable(&name).filter(|value| !value.is_empty())?;
        Some((Place::Variable(name), value))
    };
    let command = Options::command();
    // Only to see what is there: complaints come from the last look, at everything together.
    let seen = command.clone().ignore_errors(true).try_get_matches_from(&arguments)?;
    let file = seen.get_one::<PathBuf>("config").cloned().or_else(|| variable("config").map(|(_, path)| path.into()));
    let mut of_file = file.map_or_else(|| Ok(Vec::new()), |path| file::read(&path, &command))?;
    let mut all = arguments.clone();
    for option in command.get_arguments() {
        let Some(key) = option.get_long().filter(|key| !COMMAND_LINE_ONLY.contains(key)) else { continue };
        let in_file = of_file.iter().position(|setting| setting.key == key).map(|index| of_file.swap_remove(index));
        let in_variable = variable(key).map(|(place, value)| of_variable(option, place, key, value)).transpose()?;
        for setting in in_file.iter().chain(&in_variable) {
            setting.check()?;
        }
        let is_typed = seen.value_source(option.get_id().as_str()) == Some(ValueSource::CommandLine);
        if let Some(setting) = in_variable.or(in_file).filter(|_| !is_typed) {
            all.splice(1..1, setting.arguments);
        }
    }
    Ok(Options::try_parse_from(all)?)
}

/// The option that a setting names.
fn named<'a>(command: &'a Command, key: &str) -> Option<&'a Arg> {
    let is_settable = !COMMAND_LINE_ONLY.contains(&key);
    command.get_arguments().find(|option| is_settable && option.get_long() == Some(key))
}

fn of_variable(option: &Arg, place: Place, key: &str, value: OsString) -> Result<Setting, SettingsError> {
    let arguments = match (option.get_action(), value.to_str()) {
        (ArgAction::SetTrue, Some("true" | "1" | "yes")) => vec![switch(key)],
        (ArgAction::SetTrue, Some("false" | "0" | "no")) => Vec::new(),
        (ArgAction::SetTrue, _) => {
            let reason = format!("expected true or false, not {value:?}");
            return Err(SettingsError::Value(place, key.to_owned(), reason));
        }
        (ArgAction::Append, Some(list)) => list.split(',').map(|one| with(key, one.trim())).collect(),
        _ => vec![with(key, value)],
    };
    Ok(Setting { place, key: key.to_owned(), arguments })
}

fn switch(key: &str) -> OsString {
    format!("--{key}").into()
}

fn with(key: &str, value: impl AsRef<OsStr>) -> OsString {
    [format!("--{key}=").as_ref(), value.as_ref()].into_iter().collect()
}

impl Setting {
    /// Whether its option takes it. What it needs beside it may stand elsewhere.
    fn check(&self) -> Result<(), SettingsError> {
        let alone = std::iter::once("potluck-relay".into()).chain(self.arguments.iter().cloned());
        let Err(error) = Options::command().try_get_matches_from(alone) else { return Ok(()) };
        if error.kind() == ErrorKind::MissingRequiredArgument {
            return Ok(());
        }
        let text = error.to_string();
        let line = text.lines().next().unwrap_or_default();
        let reason = line.strip_prefix("error: ").unwrap_or(line).to_owned();
        Err(SettingsError::Value(self.place.clone(), self.key.clone(), reason))
    }
}

#[cfg(test)]
mod tests;
