//! The proxy in front of the relays: the files of `relay/deploy`, with addresses and ports of this machine.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::free_port;

const HAPROXY: &str = include_str!("../../deploy/haproxy.cfg");
const ENVOY: &str = include_str!("../../deploy/envoy.yaml");
/// Lines for a fourth relay begin with it.
const FOR_FOURTH: &str = "#4 ";

/// Debian keeps it where only an administrator's `PATH` leads.
pub fn haproxy() -> Option<OsString> {
    let starts = |program: &&str| Command::new(program).arg("-v").output().is_ok();
    ["haproxy", "/usr/sbin/haproxy"].into_iter().find(starts).map(OsString::from)
}

/// There is no package of it in Debian.
pub fn envoy() -> Option<OsString> {
    std::env::var_os("POTLUCK_ENVOY")
}

/// A program that ends with the test.
struct Ends(Child);

impl Ends {
    fn signal(&self, signal: Signal) {
        let _ = kill_process(Pid::from_child(&self.0), signal);
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        // HAProxy ends its workers then.
        self.signal(Signal::TERM);
        let _ = self.0.wait();
    }
}

/// A proxy, and how it is told of another relay.
pub struct Proxy {
    program: OsString,
    arguments: Vec<&'static str>,
    config: String,
    file: PathBuf,
    /// It reads its file again on SIGUSR2, as `systemctl reload haproxy` asks. Otherwise it is started again.
    can_reload: bool,
    running: Option<Ends>,
}

impl Proxy {
    /// HAProxy with the certificate in the folder `data`.
    pub fn haproxy(program: OsString, data: &Path, port: u16, rooms: u16) -> Self {
        let certificate = data.join("relay.pem");
        let config = HAPROXY
            .replace(
                ":443 ssl crt /etc/haproxy/potluck.pem",
                &format!("127.0.0.1:{port} ssl crt {}", certificate.display()),
            )
            .replace("bind :80", &format!("bind 127.0.0.1:{}", free_port()))
            // This machine may allow few open files.
            .replace("maxconn 20000", &format!("maxconn {}", 100 + 10 * rooms));
        let (arguments, file) = (vec!["-W", "-db", "-f"], data.join("haproxy.cfg"));
        Self { program, arguments, config, file, can_reload: true, running: None }
    }

    /// Envoy with the certificate in the folder `data`.
    pub fn envoy(program: OsString, data: &Path, port: u16) -> Self {
        let certificate = data.join("relay.pem").display().to_string();
        let config = ENVOY
            .replace(
                "address: \"::\", ipv4_compat: true, port_value: 443",
                &format!("address: 127.0.0.1, port_value: {port}"),
            )
            .replace("/etc/envoy/potluck.pem", &certificate);
        let arguments = vec!["--use-dynamic-base-id", "--concurrency", "2", "-l", "off", "-c"];
        Self { program, arguments, config, file: data.join("envoy.yaml"), can_reload: false, running: None }
    }

    /// Starts it in front of relays with these ports.
    pub fn start(&mut self, relays: &[u16; 3]) {
        for (number, port) in (1..).zip(relays) {
            self.lead_to(number, *port);
        }
        self.run();
    }

    /// Puts a fourth relay behind it, while it runs.
    pub fn add(&mut self, port: u16) {
        self.config = self.config.replace(FOR_FOURTH, "");
        self.lead_to(4, port);
        match &self.running {
            Some(running) if self.can_reload => {
                std::fs::write(&self.file, &self.config).unwrap();
                running.signal(Signal::USR2);
            }
            _ => self.run(),
        }
    }

    /// Puts a relay's address in its place.
    fn lead_to(&mut self, number: u8, port: u16) {
        let own = format!("10.0.0.{number}");
        self.config = self.config.replace(&format!("{own}:8787"), &format!("127.0.0.1:{port}"));
        let named = |address: &str, port: u16| format!("{address}, port_value: {port}");
        self.config = self.config.replace(&named(&own, 8787), &named("127.0.0.1", port));
    }

    fn run(&mut self) {
        // The one before has the port.
        self.running = None;
        std::fs::write(&self.file, &self.config).unwrap();
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).arg(&self.file).stdout(Stdio::null()).stderr(Stdio::null());
        self.running = Some(Ends(command.spawn().unwrap()));
    }
}
