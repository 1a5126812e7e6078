//! What is wrong with a command line, in as few lines as that takes.

use clap::CommandFactory;
use clap::error::ErrorKind;
use potluck_text::texts;

use crate::command::CommandLine;
use crate::failure::Failure;
use crate::output::print;
use crate::printable::Printable;

/// Prints the help that was asked for, or says what is wrong.
///
/// # Errors
/// What is wrong, or the help cannot be printed.
pub(crate) fn explain(error: &clap::Error) -> Result<(), Failure> {
    let terminal = &texts().terminal;
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => print(&Printable::lines(&error.to_string())),
        ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            Err(Failure::Usage(terminal.no_verb().to_owned()))
        }
        _ => {
            let text = error.to_string();
            // What follows the usage repeats the help.
            let wrong = text.split("\n\nUsage:").next().unwrap_or(&text);
            let wrong = wrong.split("\n\nFor more information").next().unwrap_or(wrong);
            // Who writes -p has another program's option in mind, not a file of that name.
            let wrong = wrong.split("\n\n  tip: to pass").next().unwrap_or(wrong).trim_end();
            let help = verb().map_or_else(|| terminal.see_commands().to_owned(), |verb| terminal.see_help(verb));
            Err(Failure::Usage(format!("{wrong}\n{help}")))
        }
    }
}

/// The verb whose arguments are wrong.
fn verb() -> Option<String> {
    let given = std::env::args_os().nth(1)?;
    CommandLine::command().find_subcommand(given).map(|verb| verb.get_name().to_owned())
}
