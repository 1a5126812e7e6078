//! This device.

use std::ffi::OsString;
use std::path::PathBuf;

use potluck_engine::{Eviction, GpuOptions};
use potluck_text::texts;

use crate::failure::Failure;
use crate::model_path::reason;
use crate::values::{parse_budget, parse_eviction};

/// Seconds without progress after which waiting ends, unless told otherwise.
pub const DEFAULT_TIMEOUT: u64 = 120;

/// Bytes of GPU memory that may be used, unless told otherwise.
pub const DEFAULT_BUDGET: &str = "4G";

/// Where this device keeps what it downloads.
#[derive(Clone, Debug, PartialEq, clap::Args)]
#[command(next_help_heading = "This device")]
pub struct CacheOptions {
    /// Folder for downloaded weights, measurements of this device, and its key [default: potluck in your cache folder]
    #[arg(long, value_name = "FOLDER")]
    pub cache: Option<PathBuf>,
}

impl CacheOptions {
    /// The folder for what is downloaded and measured.
    ///
    /// # Errors
    /// None is given, and this user has none: in a folder shared by all users, others could read or plant the device's key.
    pub fn folder(&self) -> Result<PathBuf, Failure> {
        let folder = self.cache.clone().or_else(|| users_cache(|name| std::env::var_os(name)));
        folder.ok_or_else(|| Failure::Usage(texts().terminal.no_cache_folder().to_owned()))
    }

    /// The same folder, which is made if it is not there.
    ///
    /// # Errors
    /// As [`CacheOptions::folder`], or it cannot be made.
    pub(crate) fn made_folder(&self) -> Result<PathBuf, Failure> {
        let folder = self.folder()?;
        let failed = |error| texts().secret_file.no_folder(folder.display().to_string(), reason(&error));
        std::fs::create_dir_all(&folder).map_err(|error| Failure::Failed(failed(error)))?;
        Ok(folder)
    }
}

/// Which adapter is used, and where this device keeps what it downloads.
#[derive(Clone, Debug, PartialEq, clap::Args)]
#[command(next_help_heading = "This device")]
pub struct DeviceOptions {
    /// Which GPU to use, if there are several: a part of its name
    #[arg(long, value_name = "NAME")]
    pub gpu: Option<String>,
    /// Which of the GPUs that match --gpu to use, counted from 0
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub gpu_index: usize,
    /// Where it keeps what it downloads.
    #[command(flatten)]
    pub cache: CacheOptions,
    /// Give up after this many seconds without progress, or ten times as many while devices load or compute. In a room, without
    /// --prompt, there is no limit once the relay has been reached
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_TIMEOUT, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub timeout: u64,
}

impl DeviceOptions {
    /// The folder for what is downloaded and measured.
    ///
    /// # Errors
    /// As [`CacheOptions::folder`].
    pub fn cache_folder(&self) -> Result<PathBuf, Failure> {
        self.cache.folder()
    }

    /// The GPU to open.
    pub fn gpu(&self) -> GpuOptions {
        GpuOptions { adapter_name: self.gpu.clone(), adapter_index: self.gpu_index, ..GpuOptions::default() }
    }
}

/// What this device contributes.
#[derive(Clone, Debug, PartialEq, clap::Args)]
#[command(next_help_heading = "This device")]
pub struct Contribution {
    /// How much GPU memory may be used, in bytes, such as 900M or 4G. In a room, 0 lends none
    #[arg(long, value_name = "BYTES", default_value = DEFAULT_BUDGET, value_parser = parse_budget)]
    pub budget: u64,
    /// If experts are loaded on demand, which one to drop for another: lru (the least recently used) or lfu (the one used least often
    /// since it was loaded)
    #[arg(long, value_name = "WHICH", default_value = "lru", value_parser = parse_eviction)]
    pub eviction: Eviction,
}

/// The user's folder for downloaded weights, by these variables of the environment.
fn users_cache(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let variable = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = variable("XDG_CACHE_HOME")
        .or_else(|| variable("LOCALAPPDATA"))
        .or_else(|| variable("HOME").map(|home| home.join(".cache")));
    base.map(|base| base.join("potluck"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_without_a_folder_of_their_own_gets_none_that_others_share() {
        let with = |set: &[(&str, &str)]| {
            users_cache(|name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value)))
        };
        assert_eq!(with(&[]), None);
        assert_eq!(with(&[("HOME", "")]), None);
        assert_eq!(with(&[("HOME", "/home/a")]), Some(PathBuf::from("/home/a/.cache/potluck")));
        assert_eq!(with(&[("HOME", "/home/a"), ("XDG_CACHE_HOME", "/c")]), Some(PathBuf::from("/c/potluck")));
    }
}
