//! Running programs, with a line that says which one.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, bail};

use crate::root;

/// A program, started in the repository's root.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program.as_ref());
    command.current_dir(root());
    command
}

/// The program called `name`, if there is one on the path.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let name = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    std::env::split_paths(&path).map(|folder| folder.join(&name)).find(|candidate| candidate.is_file())
}

/// Runs a command; an error if it fails.
pub fn run(command: &mut Command) -> Result<()> {
    let line = line(command);
    println!("+ {line}");
    let status = command.status().with_context(|| format!("cannot start: {line}"))?;
    if !status.success() {
        bail!("failed ({status}): {line}");
    }
    Ok(())
}

/// Runs a command beside others: says when it begins and ends, and shows its output only if it fails.
pub fn run_quietly(command: &mut Command) -> Result<()> {
    let line = line(command);
    println!("+ {line} (in the background)");
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start: {line}"))?;
    if !output.status.success() {
        bail!("failed ({}): {line}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    println!("+ {line}: done");
    Ok(())
}

/// Runs a command, shows its output, and gives back the lines that `keep` wants, even if it fails.
pub fn run_keeping(command: &mut Command, keep: impl Fn(&str) -> bool) -> (Vec<String>, Result<()>) {
    let mut kept = Vec::new();
    let result = stream(command, |line| {
        println!("{line}");
        if keep(line) {
            kept.push(line.to_owned());
        }
    });
    (kept, result)
}

fn stream(command: &mut Command, mut on_line: impl FnMut(&str)) -> Result<()> {
    let line = line(command);
    println!("+ {line}");
    let mut child = command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot start: {line}"))?;
    if let Some(stdout) = child.stdout.take() {
        for text in BufReader::new(stdout).split(b'\n') {
            on_line(&String::from_utf8_lossy(&text?));
        }
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("failed ({status}): {line}");
    }
    Ok(())
}

/// Runs a command and gives back what it prints; an error if it fails. Its errors are shown at once.
pub fn lines_of(command: &mut Command) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    stream(command, |line| lines.push(line.to_owned()))?;
    Ok(lines)
}

/// Runs a command and gives back what it printed, errors among the rest, and how it ended.
pub fn output_of(command: &mut Command) -> Result<(String, ExitStatus)> {
    let line = line(command);
    let run = |command: &mut Command| {
        let (mut reader, writer) = std::io::pipe()?;
        let mut child = command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer).spawn()?;
        // The command keeps the ends to write to, and the output ends when the last of them is closed.
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut output = Vec::new();
        reader.read_to_end(&mut output)?;
        std::io::Result::Ok((String::from_utf8_lossy(&output).into_owned(), child.wait()?))
    };
    run(command).with_context(|| format!("cannot run: {line}"))
}

/// What a command prints, or nothing if it fails.
pub fn output(command: &mut Command) -> Option<String> {
    let output = command.stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A command as one would type it.
fn line(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_stem().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}
