//! Finds an installed browser for the end-to-end tests.

use std::path::PathBuf;

use anyhow::{Result, anyhow};

use crate::shell::find;

/// What Chromium and its relatives are called on a search path.
const NAMES: [&str; 6] =
    ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "microsoft-edge", "chrome"];

/// Where they are on systems that do not put them on the search path.
const PLACES: [&str; 4] = [
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
];

/// The browser named by `POTLUCK_CHROMIUM`, or the first that is installed.
pub fn find_chromium() -> Result<PathBuf> {
    if let Some(named) = std::env::var_os("POTLUCK_CHROMIUM") {
        let path = PathBuf::from(named);
        return if path.is_file() {
            Ok(path)
        } else {
            Err(anyhow!("POTLUCK_CHROMIUM names {}, which is not there", path.display()))
        };
    }
    let installed = NAMES.iter().find_map(|name| find(name));
    let placed = || PLACES.iter().map(PathBuf::from).find(|path| path.is_file());
    installed.or_else(placed).ok_or_else(|| {
        anyhow!(
            "the end-to-end tests need Chromium or Chrome, and none is installed. Install one with\n    {}\n\
             or name one with POTLUCK_CHROMIUM=/path/to/chrome",
            how_to_install()
        )
    })
}

fn how_to_install() -> &'static str {
    if cfg!(target_os = "macos") {
        "brew install --cask google-chrome"
    } else if cfg!(windows) {
        "winget install Google.Chrome"
    } else if find("apt-get").is_some() {
        "sudo apt-get install chromium"
    } else if find("dnf").is_some() {
        "sudo dnf install chromium"
    } else if find("pacman").is_some() {
        "sudo pacman -S chromium"
    } else {
        "npx playwright install chromium"
    }
}
