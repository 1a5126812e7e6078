//! A file of settings, as TOML.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use clap::{Arg, ArgAction, Command};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Place, Setting, SettingsError, named, switch, with};

/// Reads a file. Each setting is one that the command has.
pub fn read(path: &Path, command: &Command) -> Result<Vec<Setting>, SettingsError> {
    let text = fs::read_to_string(path).map_err(|error| SettingsError::Read(path.to_owned(), error))?;
    let place = |at: usize| {
        let before = text.as_bytes().get(..at).unwrap_or_default();
        Place::Line(path.to_owned(), before.iter().filter(|byte| **byte == b'\n').count() + 1)
    };
    let table = DeTable::parse(&text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        SettingsError::Syntax(place(at), error.message().to_owned())
    })?;
    let mut entries: Vec<_> = table.into_inner().into_iter().collect();
    // What is wrong first is said first.
    entries.sort_by_key(|(key, _)| key.span().start);
    entries.into_iter().map(|(key, value)| setting(place(key.span().start), key.get_ref(), &value, command)).collect()
}

fn setting(place: Place, key: &str, value: &Spanned<DeValue<'_>>, command: &Command) -> Result<Setting, SettingsError> {
    let Some(option) = named(command, key) else { return Err(SettingsError::Unknown(place, key.to_owned())) };
    match arguments(option, key, value.get_ref()) {
        Some(arguments) => Ok(Setting { place, key: key.to_owned(), arguments }),
        None => {
            let expected = match option.get_action() {
                ArgAction::SetTrue => "true or false",
                ArgAction::Append => "a value or a list of values",
                _ => "one value",
            };
            Err(SettingsError::Value(place, key.to_owned(), format!("expected {expected}")))
        }
    }
}

fn arguments(option: &Arg, key: &str, value: &DeValue<'_>) -> Option<Vec<OsString>> {
    match (option.get_action(), value) {
        (ArgAction::SetTrue, DeValue::Boolean(is_on)) => Some(is_on.then(|| switch(key)).into_iter().collect()),
        (ArgAction::SetTrue, _) => None,
        (ArgAction::Append, DeValue::Array(values)) => {
            values.iter().map(|value| single(value.get_ref()).map(|value| with(key, value))).collect()
        }
        (_, value) => single(value).map(|value| vec![with(key, value)]),
    }
}

fn single(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(number.to_string()),
        _ => None,
    }
}
