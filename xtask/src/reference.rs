//! `docs/command-line.md`: what the programs say of themselves with `--help`.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::shell::{command, output_of, run};
use crate::tools::cargo;
use crate::{build, root};

const HEAD: &str = "\
# Command line

<!-- Written by `cargo xtask reference`; change the programs' own texts instead. -->

What each program takes, in its own words. [tools.md](tools.md#in-a-terminal-potluck-node) says more about the options of `potluck-node`, its output
and its exit codes.
";

/// A program with the file that it was compiled to, and the commands whose help belongs to another program.
struct Program {
    name: &'static str,
    path: PathBuf,
    passes_on: &'static [&'static str],
}

fn programs() -> Result<[Program; 3]> {
    let compiled = |name| Program { name, path: build::program_path("debug", name), passes_on: &[] };
    let this = std::env::current_exe().context("this program does not know its own file")?;
    Ok([
        compiled("potluck-node"),
        compiled("potluck-relay"),
        Program { name: "cargo xtask", path: this, passes_on: &["simulate"] },
    ])
}

/// Compiles the programs and writes the page.
pub fn write() -> Result<()> {
    run(cargo().args(["build", "--package", "potluck-relay", "--package", "potluck-terminal", "--bins"]))?;
    fs::write(page(), render()?).context("cannot write docs/command-line.md")
}

/// The step of the tests: the page is what the programs say.
pub fn check() -> Result<()> {
    build::as_in_tests()?;
    let (page, current) = (fs::read_to_string(page()).unwrap_or_default(), render()?);
    if let Some(line) = first_difference(&page, &current) {
        bail!("docs/command-line.md is not what the programs say, first in line {line}: run `cargo xtask reference`");
    }
    println!("docs/command-line.md is what the programs say.");
    Ok(())
}

fn page() -> PathBuf {
    root().join("docs/command-line.md")
}

fn render() -> Result<String> {
    let mut page = HEAD.to_owned();
    for Program { name, path, passes_on } in programs()? {
        let help = help(&path, &[])?;
        section(&mut page, &format!("## {name}"), &help);
        for verb in verbs(&help).filter(|verb| *verb != "help" && !passes_on.contains(verb)) {
            section(&mut page, &format!("### {name} {verb}"), &self::help(&path, &[verb])?);
        }
    }
    Ok(page)
}

fn section(page: &mut String, title: &str, help: &str) {
    _ = write!(page, "\n{title}\n\n```text\n{help}\n```\n");
}

fn help(program: &Path, verb: &[&str]) -> Result<String> {
    let (output, status) = output_of(command(program).args(verb).arg("--help"))?;
    ensure!(status.success(), "{} --help failed ({status}): {output}", program.display());
    Ok(output.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim().to_owned())
}

/// The commands that a help lists.
fn verbs(help: &str) -> impl Iterator<Item = &str> {
    let listed = help.split_once("\nCommands:\n").map_or("", |(_, listed)| listed);
    listed.lines().take_while(|line| !line.is_empty()).filter_map(|line| line.split_whitespace().next())
}

/// The number of the first line that differs.
fn first_difference(page: &str, current: &str) -> Option<usize> {
    if page == current {
        return None;
    }
    let same = page.lines().zip(current.lines()).take_while(|(a, b)| a == b).count();
    Some(same + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_help_lists_its_commands() {
        let help = "A tool\n\nUsage: tool <COMMAND>\n\nCommands:\n  run   Runs\n  help  Print\n\nOptions:\n  -h, --help  Print help";
        assert_eq!(verbs(help).collect::<Vec<_>>(), ["run", "help"]);
        assert_eq!(verbs("Usage: tool [OPTIONS]\n\nOptions:\n  -h").count(), 0);
    }

    #[test]
    fn the_first_line_that_differs_is_named() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(first_difference("a\nb\n", "a\nc\n"), Some(2));
        assert_eq!(first_difference("a\n", "a\nb\n"), Some(2), "a line is missing");
        assert_eq!(first_difference("", "a\n"), Some(1), "there is no page");
    }
}
