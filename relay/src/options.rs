//! The command line.

use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use lexopt::prelude::*;
use potluck_relay::Config;
use potluck_relay::limits::Limits;
use potluck_relay::net::addresses;
use potluck_relay::net::tls::Identity;

/// What `--help` prints.
pub const HELP: &str = "\
The relay of Potluck: it serves the page and the weights and forwards what the devices of a room say to each other.

Usage: potluck-relay [options]

  --page DIR        the built page (default: dist)
  --models DIR      a folder with GGUF files; may be given several times (default: models)
  --port N          the port; 0 takes a free one (default: 8787)
  --local           only for this machine: no LAN, no HTTPS
  --tls-cert FILE   a certificate chain of your own, as PEM
  --tls-key FILE    its private key, as PEM
  --data DIR        where the relay keeps its own certificate and the hashes of models
                    (default: potluck in your data folder)
  --open            open the page in the browser
  --help            print this
";

/// What the command line asks for.
pub struct Options {
    /// How the relay is to run.
    pub config: Config,
    /// Whether to open the page in the browser.
    pub open: bool,
}

/// A command line that makes no sense.
#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    /// An unknown option, or a value that is missing or malformed.
    #[error(transparent)]
    Arguments(#[from] lexopt::Error),
    /// A certificate without a key, or the other way round.
    #[error("--tls-cert and --tls-key belong together: give both or none")]
    HalfIdentity,
    /// TLS was asked for and excluded.
    #[error("--local speaks plain HTTP only: leave out --tls-cert and --tls-key, or --local")]
    LocalWithIdentity,
}

impl Options {
    /// Reads the command line, the program's name first; `None` if it asks for help.
    pub fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<Option<Self>, OptionsError> {
        let mut parser = lexopt::Parser::from_iter(arguments);
        let (mut page, mut models, mut port) = (PathBuf::from("dist"), Vec::new(), 8787);
        let (mut local, mut open) = (false, false);
        let (mut certificate, mut key, mut data) = (None, None, None);
        while let Some(argument) = parser.next()? {
            match argument {
                Long("page") => page = parser.value()?.into(),
                Long("models") => models.push(parser.value()?.into()),
                Long("port") => port = parser.value()?.parse()?,
                Long("local") => local = true,
                Long("tls-cert") => certificate = Some(PathBuf::from(parser.value()?)),
                Long("tls-key") => key = Some(PathBuf::from(parser.value()?)),
                Long("data") => data = Some(PathBuf::from(parser.value()?)),
                Long("open") => open = true,
                Long("help") | Short('h') => return Ok(None),
                other => return Err(other.unexpected().into()),
            }
        }
        if models.is_empty() {
            models.push("models".into());
        }
        let data = data.unwrap_or_else(data_folder);
        let config = Config {
            ip: if local { Ipv4Addr::LOCALHOST } else { Ipv4Addr::UNSPECIFIED },
            port,
            page: Some(page),
            models,
            identity: identity(local, certificate, key, &data)?,
            cache: data.join("hashes"),
            addresses: if local { Vec::new() } else { addresses::lan() },
            limits: Limits::default(),
        };
        Ok(Some(Self { config, open }))
    }
}

fn identity(
    local: bool,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    data: &Path,
) -> Result<Option<Identity>, OptionsError> {
    match (certificate, key) {
        (Some(_), Some(_)) if local => Err(OptionsError::LocalWithIdentity),
        (Some(certificate), Some(key)) => Ok(Some(Identity::Given { certificate, key })),
        (None, None) if local => Ok(None),
        (None, None) => Ok(Some(Identity::Kept { folder: data.to_owned() })),
        _ => Err(OptionsError::HalfIdentity),
    }
}

/// Where programs keep their data on this system; the current folder if it does not say.
fn data_folder() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = if cfg!(windows) {
        variable("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        variable("HOME").map(|home| home.join("Library/Application Support"))
    } else {
        variable("XDG_DATA_HOME").or_else(|| variable("HOME").map(|home| home.join(".local/share")))
    };
    base.unwrap_or_default().join("potluck")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn read(arguments: &[&str]) -> Result<Option<Options>, OptionsError> {
        Options::read(std::iter::once("potluck-relay").chain(arguments.iter().copied()).map(OsString::from))
    }

    #[test]
    fn local_means_loopback_and_no_certificate() {
        let config = read(&["--local", "--port", "0", "--models", "a", "--models", "b"]).unwrap().unwrap().config;
        assert!(config.ip.is_loopback() && config.identity.is_none() && config.addresses.is_empty());
        assert_eq!(config.models, [PathBuf::from("a"), PathBuf::from("b")]);
    }

    #[test]
    fn the_lan_gets_a_certificate_that_is_kept() {
        let config = read(&["--data", "d"]).unwrap().unwrap().config;
        assert!(config.ip.is_unspecified());
        assert!(matches!(config.identity, Some(Identity::Kept { folder }) if folder == Path::new("d")));
        assert_eq!(config.cache, Path::new("d").join("hashes"));
    }

    #[test]
    fn contradictions_are_errors() {
        assert!(matches!(read(&["--tls-cert", "c"]), Err(OptionsError::HalfIdentity)));
        let both = read(&["--tls-cert", "c", "--tls-key", "k", "--local"]);
        assert!(matches!(both, Err(OptionsError::LocalWithIdentity)));
        assert!(matches!(read(&["--port", "many"]), Err(OptionsError::Arguments(_))));
        assert!(matches!(read(&["--prot", "1"]), Err(OptionsError::Arguments(_))));
        assert!(read(&["--help"]).unwrap().is_none());
    }
}
