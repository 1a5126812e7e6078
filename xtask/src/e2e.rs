//! What runs in real browsers: the end-to-end tests and the screenshots.

use std::process::Command;

use anyhow::Result;

use crate::build::PageBuild;
use crate::shell::{run, run_keeping};
use crate::test::Closing;
use crate::tools::npm;
use crate::{browser, build, root};

/// Lines at the end of the test runner's output that are worth seeing again.
const CLOSING_LINES: usize = 12;

/// Runs the end-to-end tests against the page in `dist/`.
pub fn tests() -> (Closing, Result<()>) {
    let prepare = || {
        build::as_in_tests()?;
        let mut npm = npm_with_browser(npm()?)?;
        npm.arg("test").env("POTLUCK_RELAY", build::relay_path("debug"));
        anyhow::Ok(npm)
    };
    match prepare() {
        Err(error) => (Vec::new(), Err(error)),
        Ok(mut npm) => {
            let (mut lines, result) = run_keeping(&mut npm, |line| !line.trim().is_empty());
            (lines.split_off(lines.len().saturating_sub(CLOSING_LINES)), result)
        }
    }
}

/// Builds everything and takes the still pictures in `docs/screenshots/` again.
pub fn screenshots() -> Result<()> {
    let relay = build::page_and_relay(PageBuild::Shipped)?;
    let mut npm = npm_with_browser(npm()?)?;
    run(npm.args(["run", "screenshots"]).env("POTLUCK_RELAY", relay))
}

/// Makes `npm` ready to run a script of `e2e/`: installs what the scripts import, and names the browser.
fn npm_with_browser(mut npm: Command) -> Result<Command> {
    let chromium = browser::find_chromium()?;
    let folder = root().join("e2e");
    // No package may run a program of its own while it is installed.
    run(crate::tools::npm()?.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(&folder))?;
    npm.current_dir(folder).env("POTLUCK_CHROMIUM", chromium);
    Ok(npm)
}
