//! Keeps a graphics driver from printing to standard error.
//!
//! Mesa's Vulkan layer looks for a Wayland display, whose library prints "error: XDG_RUNTIME_DIR is invalid or not set" where there is
//! no such folder. A display that is named by its path is looked for silently. A process cannot safely change its own environment, so
//! the program starts again in the same process.

use std::ffi::OsString;

/// Starts the program again, if its environment would make a driver complain. Returns if not, or if that fails.
pub(crate) fn start_again_if_needed() {
    use std::os::unix::process::CommandExt;

    if !complains(|name| std::env::var_os(name)) {
        return;
    }
    let Ok(program) = std::env::current_exe() else { return };
    let again = std::env::args_os().skip(1);
    // Returns only if it fails.
    let error = std::process::Command::new(program).args(again).env(DISPLAY, NO_DISPLAY).exec();
    log::info!("the program cannot be started again: {error}");
}

const DISPLAY: &str = "WAYLAND_DISPLAY";
/// A path at which nobody listens.
const NO_DISPLAY: &str = "/dev/null";

/// True if the library would miss the folder: it is not given by its path, and neither is the display.
fn complains(variable: impl Fn(&str) -> Option<OsString>) -> bool {
    let is_path = |name| variable(name).is_some_and(|value| std::path::Path::new(&value).is_absolute());
    !is_path("XDG_RUNTIME_DIR") && !is_path(DISPLAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_starts_again_only_where_the_library_would_complain_and_only_once() {
        let with = |set: &[(&str, &str)]| {
            complains(|name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value)))
        };
        assert!(with(&[]) && with(&[("XDG_RUNTIME_DIR", "")]) && with(&[(DISPLAY, "wayland-0")]));
        assert!(!with(&[("XDG_RUNTIME_DIR", "/run/user/1000")]));
        assert!(!with(&[(DISPLAY, NO_DISPLAY)]), "as it starts again");
    }
}
