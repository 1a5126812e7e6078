//! The command line.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::http::HeaderName;
use axum::http::uri::Authority;
use clap::{Parser, ValueEnum};
use potluck_relay::Config;
use potluck_relay::access::AccessConfig;
use potluck_relay::limits::Limits;
use potluck_relay::models::origin::{OriginConfig, OriginUrl};
use potluck_relay::net::names::Machine;
use potluck_relay::net::proxy::Proxies;
use potluck_relay::net::raise_file_limit;
use potluck_relay::net::tls::Identity;
use tracing_subscriber::filter::LevelFilter;

/// Potluck's relay: serves the page and the weights, and forwards messages between the devices of a room.
#[derive(Debug, Parser)]
#[command(name = "potluck-relay")]
pub struct Options {
    /// File with options, as TOML: `port = 8787`, `host = ["a.example", "b.example"]`, `local = true`. Variables of the environment
    /// count before it (POTLUCK_RELAY_PORT, several values with commas between them), and the command line before both
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Check the options, the file and the certificate, and exit
    #[arg(long)]
    pub check: bool,
    /// Folder with the built page
    #[arg(long, value_name = "DIR", default_value = "dist")]
    page: PathBuf,
    /// Folder with GGUF files to offer. Give the option several times for several folders
    #[arg(long, value_name = "DIR", default_value = "models")]
    models: Vec<PathBuf>,
    /// Address of a GGUF file at an HTTP server or object store that answers range requests. The relay sends it on, and keeps its hashes.
    /// Give the option several times for several files
    #[arg(long, value_name = "URL")]
    weights: Vec<OriginUrl>,
    /// Folder in which parts of --weights are kept
    #[arg(long, value_name = "DIR", requires = "weights")]
    cache: Option<PathBuf>,
    /// How much --cache may hold, in bytes, such as 900M or 50G. What was not used for longest goes first
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, default_value = "50G")]
    cache_bytes: u64,
    /// Port to listen on; 0 takes a free one
    #[arg(long, value_name = "N", default_value_t = 8787)]
    port: u16,
    /// Serve this machine only, without HTTPS. Other devices cannot connect
    #[arg(long)]
    local: bool,
    /// A certificate of your own instead of one that the relay makes: its chain, as PEM. Needs --tls-key
    #[arg(long, value_name = "FILE", requires = "tls_key", conflicts_with = "local")]
    tls_cert: Option<PathBuf>,
    /// The private key of --tls-cert, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert", conflicts_with = "local")]
    tls_key: Option<PathBuf>,
    /// A further host name or address that people type into their browser to reach the relay. Give the option several times for
    /// several
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
    /// Address of a proxy in front of the relay. The relay takes clients' addresses from this proxy's X-Forwarded-For header. Give the
    /// option several times for several proxies
    #[arg(long, value_name = "ADDR")]
    trusted_proxy: Vec<IpAddr>,
    /// Take clients' addresses from the PROXY protocol instead: the trusted proxies begin each connection with its header
    #[arg(long, requires = "trusted_proxy")]
    proxy_protocol: bool,
    /// Another relay behind the same proxy, as NAME:PORT. When it comes back, all members of this relay connect again, so that the proxy leads
    /// rooms home. Not needed with haproxy.cfg. Give the option several times for several relays
    #[arg(long, value_name = "HOST:PORT", value_parser = parse_peer)]
    peer: Vec<Authority>,
    /// Only people with the token in this file may open rooms; everybody may join. Browsers enter it at /access, potluck-node has
    /// --relay-token-file
    #[arg(long, value_name = "FILE", conflicts_with = "create_header")]
    create_token_file: Option<PathBuf>,
    /// Only people whom the trusted proxy names in this header may open rooms; everybody may join. The proxy signs them in, and must not
    /// let clients send the header
    #[arg(long, value_name = "NAME", requires = "trusted_proxy", conflicts_with = "proxy_protocol")]
    create_header: Option<HeaderName>,
    /// Whoever sends the token in this file may see /operator from elsewhere. Without it, only this machine sees it
    #[arg(long, value_name = "FILE")]
    operator_token_file: Option<PathBuf>,
    /// How many seconds to go on after SIGTERM while /readyz fails, so that a proxy leads new rooms to other relays [default: 3 with
    /// --trusted-proxy, 0 without]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(..=3600))]
    drain: Option<u32>,
    /// Show /metrics to everyone. Without this option, only this machine sees it
    #[arg(long)]
    public_metrics: bool,
    /// Folder for the relay's own certificate authority, its certificate, and the hashes of models [default: potluck in your data
    /// folder]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// How much to log to standard error: off, error, warn, info, debug or trace [default: RUST_LOG, or warn]
    #[arg(long, value_name = "LEVEL")]
    pub log: Option<LevelFilter>,
    /// How lines of the log are written: for people, or as JSON objects
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub log_format: LogFormat,
    /// Open the page in this machine's browser
    #[arg(long)]
    pub open: bool,
}

fn parse_peer(text: &str) -> Result<Authority, String> {
    let peer = text.parse().ok().filter(|peer: &Authority| peer.port_u16().is_some() && !text.contains('@'));
    peer.ok_or_else(|| "expected a name or address and a port, such as 10.0.0.2:8787".to_owned())
}

fn parse_bytes(text: &str) -> Result<u64, String> {
    let units = [('K', 1_000), ('M', 1_000_000), ('G', 1_000_000_000), ('T', 1_000_000_000_000)];
    let unit = units.iter().find_map(|(letter, unit)| Some((text.strip_suffix(*letter)?, *unit)));
    let (number, unit) = unit.unwrap_or((text, 1));
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    bytes.ok_or_else(|| "expected bytes, such as 900M or 50G".to_owned())
}

/// How lines of the log are written.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}

impl Options {
    /// How long it drains. Without a proxy nobody would look for another relay meanwhile.
    pub fn drain_grace(&self) -> Duration {
        let unasked = if self.trusted_proxy.is_empty() { 0 } else { DRAIN_SECONDS };
        Duration::from_secs(self.drain.unwrap_or(unasked).into())
    }

    /// Only behind a proxy can there be another relay from which rooms come.
    fn room_wait(&self) -> Duration {
        if self.trusted_proxy.is_empty() { Duration::ZERO } else { ROOM_WAIT }
    }

    /// How the relay is to run.
    pub fn relay_config(self) -> Config {
        let room_wait = self.room_wait();
        let data = self.data.unwrap_or_else(data_folder);
        let identity = match (self.tls_cert, self.tls_key) {
            (Some(certificate), Some(key)) => Some(Identity::Files { certificate, key }),
            _ if self.local => None,
            _ => Some(Identity::Own { folder: data.clone() }),
        };
        Config {
            ip: if self.local { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::UNSPECIFIED.into() },
            port: self.port,
            page: Some(self.page),
            models: self.models,
            origin: OriginConfig {
                weights: self.weights,
                cache: self.cache.map(|folder| (folder, self.cache_bytes)),
                ..OriginConfig::default()
            },
            identity,
            cache: data.join("hashes"),
            machine: if self.local { Machine::default() } else { Machine::this() },
            limits: Limits { room_wait, ..limits(raise_file_limit()) },
            hosts: self.host,
            proxies: Proxies { addresses: self.trusted_proxy, send_header: self.proxy_protocol },
            peers: self.peer,
            access: AccessConfig {
                create_token: self.create_token_file,
                create_header: self.create_header,
                operator_token: self.operator_token_file,
            },
            public_metrics: self.public_metrics,
        }
    }
}

/// A proxy looks every second or two, and needs two failures to believe one.
const DRAIN_SECONDS: u32 = 3;

/// All members of a room that moves come within half a second.
const ROOM_WAIT: Duration = Duration::from_secs(1);

/// Files that are open beside connections: models that are hashed or served, the system's own.
const OTHER_FILES: usize = 64;

/// The limits on a system where a program may open this many files. Each download needs one beside its connection.
fn limits(files: Option<usize>) -> Limits {
    let limits = Limits::default();
    let Some(files) = files else { return limits };
    let downloads = limits.downloads.min(files / 4);
    let refusals = limits.refusals.min(files / 8);
    let connections = limits.connections.min(files.saturating_sub(downloads + refusals + OTHER_FILES));
    Limits { downloads, refusals, connections, ..limits }
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
        let config = parse(&["--local", "--port", "0", "--models", "a", "--models", "b"]).unwrap().relay_config();
        assert!(config.ip.is_loopback() && config.identity.is_none());
        assert!((config.machine.addresses)().is_empty() && config.machine.names.is_empty());
        assert_eq!((config.port, config.models), (0, vec![PathBuf::from("a"), PathBuf::from("b")]));
    }

    #[test]
    fn the_lan_gets_a_certificate_of_the_authority_in_the_data_folder() {
        let config = parse(&["--data", "d"]).unwrap().relay_config();
        assert!(config.ip.is_unspecified() && config.ip.is_ipv6());
        assert!(matches!(config.identity, Some(Identity::Own { folder }) if folder == Path::new("d")));
        assert_eq!(config.cache, Path::new("d").join("hashes"));
        assert_eq!((config.port, config.models), (8787, vec![PathBuf::from("models")]));
    }

    #[test]
    fn connections_leave_files_for_downloads_and_refusals() {
        let few = limits(Some(1024));
        assert_eq!((few.downloads, few.refusals, few.connections), (256, 128, 1024 - 256 - 128 - OTHER_FILES));
        assert_eq!(limits(Some(1 << 20)).connections, Limits::default().connections);
    }

    #[test]
    fn hosts_and_proxies_are_named_one_by_one() {
        let arguments =
            ["--host", "a.example", "--host", "b.example", "--trusted-proxy", "::1", "--trusted-proxy", "10.0.0.1"];
        let config = parse(&arguments).unwrap().relay_config();
        assert_eq!(config.hosts, ["a.example", "b.example"]);
        assert_eq!(config.proxies.addresses.len(), 2);
        assert!(!config.proxies.send_header && !config.public_metrics);
        assert_eq!(parse(&arguments).unwrap().drain_grace(), Duration::from_secs(3));
        assert_eq!(parse(&["--drain", "9"]).unwrap().drain_grace(), Duration::from_secs(9));
        assert!(parse(&[]).unwrap().drain_grace().is_zero(), "nobody would notice");
        assert_eq!(parse(&["--proxy-protocol"]).unwrap_err(), ErrorKind::MissingRequiredArgument);
        assert_eq!(parse(&["--trusted-proxy", "proxy.example"]).unwrap_err(), ErrorKind::ValueValidation);
    }

    #[test]
    fn weights_from_elsewhere_are_kept_up_to_so_many_bytes() {
        let url = "https://weights.example/a.gguf";
        let config = |more: &[&str]| parse(&[&["--weights", url], more].concat()).unwrap().relay_config().origin;
        assert_eq!((config(&[]).weights, config(&[]).cache), (vec![url.parse().unwrap()], None));
        assert_eq!(config(&["--cache", "c"]).cache, Some(("c".into(), 50_000_000_000)));
        assert_eq!(config(&["--cache", "c", "--cache-bytes", "900M"]).cache.unwrap().1, 900_000_000);
        let error = |arguments: &[&str]| parse(arguments).unwrap_err();
        assert_eq!(error(&["--cache", "c"]), ErrorKind::MissingRequiredArgument);
        assert_eq!(error(&["--weights", "a.gguf"]), ErrorKind::ValueValidation);
        assert_eq!(
            error(&["--weights", url, "--cache", "c", "--cache-bytes", "99999999T"]),
            ErrorKind::ValueValidation
        );
    }

    #[test]
    fn contradictions_are_errors() {
        let error = |arguments: &[&str]| parse(arguments).unwrap_err();
        assert_eq!(error(&["--tls-cert", "c"]), ErrorKind::MissingRequiredArgument);
        assert_eq!(error(&["--tls-cert", "c", "--tls-key", "k", "--local"]), ErrorKind::ArgumentConflict);
        for wrong in ["10.0.0.2", "http://10.0.0.2:8787", "", "a@b:1", "10.0.0.2:99999"] {
            assert_eq!(error(&["--peer", wrong]), ErrorKind::ValueValidation, "{wrong}");
        }
        let proxied = |more: &[&str]| error(&[&["--trusted-proxy", "::1", "--create-header", "x-user"], more].concat());
        assert_eq!(proxied(&["--proxy-protocol"]), ErrorKind::ArgumentConflict, "clients would write the header");
        assert_eq!(proxied(&["--create-token-file", "t"]), ErrorKind::ArgumentConflict);
        assert_eq!(error(&["--create-header", "x-user"]), ErrorKind::MissingRequiredArgument);
        assert_eq!(error(&["--trusted-proxy", "::1", "--create-header", "x user"]), ErrorKind::ValueValidation);
        assert_eq!(error(&["--port", "many"]), ErrorKind::ValueValidation);
        assert_eq!(error(&["--log", "loud"]), ErrorKind::ValueValidation);
        assert_eq!(error(&["--prot", "1"]), ErrorKind::UnknownArgument);
        assert_eq!(error(&["--help"]), ErrorKind::DisplayHelp);
    }
}
