//! Completions for shells, and manual pages, made from the command line's own description.

use clap::CommandFactory;
use clap_complete::Shell;
use potluck_text::texts;

use crate::command::CommandLine;
use crate::failure::Failure;
use crate::output::print;
use crate::printable::Printable;

/// Options of `completions`.
#[derive(Clone, Debug, PartialEq, clap::Args)]
pub struct CompletionsOptions {
    /// The shell
    pub shell: Shell,
}

/// Options of `man`.
#[derive(Clone, Debug, PartialEq, clap::Args)]
pub struct ManOptions {
    /// The command whose page is printed, for example run [default: the program's own page]
    pub command: Option<String>,
}

/// Prints the completions for a shell.
///
/// # Errors
/// They cannot be printed.
pub(crate) fn completions(options: &CompletionsOptions) -> Result<(), Failure> {
    print_file(&script(options.shell))
}

fn script(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut CommandLine::command(), NAME, &mut script);
    script
}

/// Prints a manual page as troff.
///
/// # Errors
/// There is no such command, or the page cannot be printed.
pub(crate) fn man(options: &ManOptions) -> Result<(), Failure> {
    print_file(&page(options.command.as_deref())?)
}

fn page(command: Option<&str>) -> Result<Vec<u8>, Failure> {
    let mut program = CommandLine::command();
    // Gives each command its whole name.
    program.build();
    let command = match command {
        None => &program,
        Some(name) => {
            let found = program.find_subcommand(name).filter(|command| command.get_name() != "help");
            found.ok_or_else(|| Failure::Usage(texts().terminal.no_command(name)))?
        }
    };
    let mut page = Vec::new();
    let written = clap_mangen::Man::new(command.clone()).render(&mut page);
    written.map_err(|error| Failure::Failed(texts().terminal.cannot_write(error.to_string())))?;
    Ok(page)
}

/// The name of the program.
const NAME: &str = "potluck-node";

fn print_file(bytes: &[u8]) -> Result<(), Failure> {
    print(&Printable::lines(&String::from_utf8_lossy(bytes)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use clap::ValueEnum;

    use super::*;

    /// What reaches standard output.
    fn printed(bytes: &[u8]) -> String {
        let text = Printable::lines(std::str::from_utf8(bytes).unwrap()).to_string();
        assert_eq!(text.as_bytes(), bytes, "nothing is left out");
        text
    }

    #[test]
    fn every_shell_completes_commands_and_options() {
        for shell in Shell::value_variants() {
            let script = printed(&script(*shell));
            for word in ["pull", "completions", "relay-fingerprint"] {
                assert!(script.contains(word), "{shell} {word}");
            }
        }
    }

    #[test]
    fn every_command_has_a_manual_page() {
        let page = |command| printed(&page(command).unwrap());
        assert!(page(None).contains("potluck\\-node\\-pull(1)"), "{}", page(None));
        for command in CommandLine::command().get_subcommands().map(clap::Command::get_name) {
            let page = page(Some(command));
            assert!(page.contains(&format!("potluck\\-node\\-{command}")) && page.contains(".SH OPTIONS"), "{page}");
        }
        assert!(super::page(Some("help")).is_err() && super::page(Some("dance")).is_err());
    }
}
