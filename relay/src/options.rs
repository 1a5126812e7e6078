//! The command line.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use clap::Parser;
use potluck_relay::Config;
use potluck_relay::limits::Limits;
use potluck_relay::net::addresses;
use potluck_relay::net::tls::Identity;

/// The relay of Potluck: it serves the page and the weights and forwards messages between the devices of a room.
#[derive(Debug, Parser)]
#[command(name = "potluck-relay")]
pub struct Options {
    /// The built page
    #[arg(long, value_name = "DIR", default_value = "dist")]
    page: PathBuf,
    /// A folder with GGUF files; may be given several times
    #[arg(long, value_name = "DIR", default_value = "models")]
    models: Vec<PathBuf>,
    /// The port; 0 takes a free one
    #[arg(long, value_name = "N", default_value_t = 8787)]
    port: u16,
    /// Serve this machine only: no LAN, no HTTPS
    #[arg(long)]
    local: bool,
    /// Your own certificate chain, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_key", conflicts_with = "local")]
    tls_cert: Option<PathBuf>,
    /// Its private key, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert", conflicts_with = "local")]
    tls_key: Option<PathBuf>,
    /// Where the relay keeps its certificate and the hashes of models [default: potluck in your data folder]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Open the page in the browser
    #[arg(long)]
    pub open: bool,
}

impl Options {
    /// How the relay is to run.
    pub fn config(self) -> Config {
        let data = self.data.unwrap_or_else(data_folder);
        let identity = match (self.tls_cert, self.tls_key) {
            (Some(certificate), Some(key)) => Some(Identity::Files { certificate, key }),
            _ if self.local => None,
            _ => Some(Identity::SelfSigned { folder: data.clone() }),
        };
        Config {
            ip: if self.local { Ipv4Addr::LOCALHOST } else { Ipv4Addr::UNSPECIFIED },
            port: self.port,
            page: Some(self.page),
            models: self.models,
            identity,
            cache: data.join("hashes"),
            addresses: if self.local { Vec::new() } else { addresses::lan() },
            limits: Limits::default(),
        }
    }
}

/// Where programs keep their data on this system; the current folder if unknown.
fn data_folder() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = if cfg!(windows) {
        variable("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        variable("HOME").map(|home| home.join("Library/Application Support"))
    } else {
        variable("XDG_DATA_HOME").or_else(|| variable("HOME").map(|home| home.join(".local/share")))
    };
    base.as_deref().unwrap_or(Path::new("")).join("potluck")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use clap::error::ErrorKind;

    use super::*;

    fn parse(arguments: &[&str]) -> Result<Options, ErrorKind> {
        Options::try_parse_from([&["potluck-relay"], arguments].concat()).map_err(|error| error.kind())
    }

    #[test]
    fn local_means_loopback_and_no_certificate() {
        let config = parse(&["--local", "--port", "0", "--models", "a", "--models", "b"]).unwrap().config();
        assert!(config.ip.is_loopback() && config.identity.is_none() && config.addresses.is_empty());
        assert_eq!((config.port, config.models), (0, vec![PathBuf::from("a"), PathBuf::from("b")]));
    }

    #[test]
    fn the_lan_gets_a_self_signed_certificate_from_the_data_folder() {
        let config = parse(&["--data", "d"]).unwrap().config();
        assert!(config.ip.is_unspecified());
        assert!(matches!(config.identity, Some(Identity::SelfSigned { folder }) if folder == Path::new("d")));
        assert_eq!(config.cache, Path::new("d").join("hashes"));
        assert_eq!((config.port, config.models), (8787, vec![PathBuf::from("models")]));
    }

    #[test]
    fn contradictions_are_errors() {
        let error = |arguments: &[&str]| parse(arguments).unwrap_err();
        assert_eq!(error(&["--tls-cert", "c"]), ErrorKind::MissingRequiredArgument);
        assert_eq!(error(&["--tls-cert", "c", "--tls-key", "k", "--local"]), ErrorKind::ArgumentConflict);
        assert_eq!(error(&["--port", "many"]), ErrorKind::ValueValidation);
        assert_eq!(error(&["--prot", "1"]), ErrorKind::UnknownArgument);
        assert_eq!(error(&["--help"]), ErrorKind::DisplayHelp);
    }
}
