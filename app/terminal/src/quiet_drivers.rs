//! Keeps a graphics driver from printing to standard error.
//!
//! Mesa's Vulkan layer looks for a Wayland display. Where the session has no folder for sockets, its library prints "error:
//! XDG_RUNTIME_DIR is invalid or not set", which is no error of this program. A display that is named by its path is looked for
//! without that folder and without a word. A process cannot safely change its own environment, so the program starts again, in the
//! same process and with everything else as it was.

#[cfg(target_os = "linux")]
use std::ffi::OsString;

/// Starts the program again, if its environment would make a driver complain. Returns if not, or if that fails.
#[cfg(target_os = "linux")]
pub(crate) fn start_again_if_needed() {
    use std::os::unix::process::CommandExt;

    if !complains(|name| std::env::var_os(name)) {
        return;
    }
    let Ok(program) = std::env::current_exe() else { return };
    let mut arguments = std::env::args_os();
    let mut again = std::process::Command::new(program);
    if let Some(name) = arguments.next() {
        again.arg0(name);
    }
    // Returns only if it fails.
    let error = again.args(arguments).env(DISPLAY, NO_DISPLAY).exec();
    log::info!("the program cannot be started again: {error}");
}

/// Elsewhere drivers say nothing.
#[cfg(not(target_os = "linux"))]
pub(crate) fn start_again_if_needed() {}

#[cfg(target_os = "linux")]
const DISPLAY: &str = "WAYLAND_DISPLAY";
/// A path at which nobody listens.
#[cfg(target_os = "linux")]
const NO_DISPLAY: &str = "/dev/null";

/// True if the library would miss the folder: it is not given by its path, and neither is the display.
#[cfg(target_os = "linux")]
fn complains(variable: impl Fn(&str) -> Option<OsString>) -> bool {
    let is_path = |name| variable(name).is_some_and(|value| std::path::Path::new(&value).is_absolute());
    !is_path("XDG_RUNTIME_DIR") && !is_path(DISPLAY)
}

#[cfg(all(test, target_os = "linux"))]
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
