//! The relay in a process of its own.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;
use tokio_rustls::TlsConnector;

use super::Door;
use super::tls::connector;

/// A relay of its own, which ends with this value.
pub struct Relay {
    child: Child,
    data: PathBuf,
    pub address: SocketAddr,
    tls: Option<TlsConnector>,
}

impl Relay {
    /// Starts it, with TLS by a certificate of its own if that is asked for.
    pub async fn start(with_tls: bool) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
        let data = std::env::temp_dir().join(format!("potluck-load-{port}"));
        let program = std::env::var_os("POTLUCK_RELAY").unwrap_or_else(|| env!("CARGO_BIN_EXE_potluck-relay").into());
        let mut command = Command::new(program);
        command.args(["--port", &port.to_string(), "--models", "none", "--page", "none", "--data"]).arg(&data);
        if !with_tls {
            command.arg("--local");
        }
        let child = command.stdout(Stdio::null()).spawn().unwrap();
        let address = (Ipv4Addr::LOCALHOST, port).into();
        while TcpStream::connect(address).await.is_err() {
            sleep(Duration::from_millis(10)).await;
        }
        let tls = with_tls.then(|| connector(&std::fs::read(data.join("authority.pem")).unwrap()));
        Self { child, data, address, tls }
    }

    /// How members reach it.
    pub fn door(&self) -> Door {
        Door { address: self.address, tls: self.tls.clone() }
    }

    pub fn resident_megabytes(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or("VmRSS: 0 kB");
        line.split_ascii_whitespace().nth(1).unwrap().parse::<f64>().unwrap() * 1024.0 / 1e6
    }

    /// Seconds of processor time so far.
    pub fn cpu_seconds(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_ascii_whitespace().collect();
        let ticks = |i: usize| fields.get(i).and_then(|ticks| ticks.parse::<f64>().ok()).unwrap_or_default();
        (ticks(11) + ticks(12)) / 100.0
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.data);
    }
}

/// How many files this process may open.
pub fn open_files() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find(|line| line.starts_with("Max open files"));
    line.and_then(|line| line.split_ascii_whitespace().nth(3)?.parse().ok()).unwrap_or(1024)
}
