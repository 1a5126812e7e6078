//! What the terminal shows once the relay is running.

use std::fmt::Write;
use std::process::{Command, Stdio};

use fast_qr::{ECL, QRBuilder};
use potluck_relay_api::http::Addresses;

const WARNING: &str = "
  The other device will warn you once, because this relay signed its certificate itself:
    Chrome, Edge       \"Your connection is not private\": press Advanced, then Proceed
    iPhone, iPad       \"This connection is not private\": press Show Details, then visit this website
    Firefox            \"Potential security risk ahead\": press Advanced, then Accept the risk and continue
";

/// The addresses, a QR code for another device, and what to do about its certificate warning.
pub fn text(local: &str, addresses: &Addresses) -> String {
    let mut out = format!("\n  Potluck is ready.\n\n  On this device:   {local}\n");
    // Writing to a String cannot fail.
    match &addresses.urls[..] {
        [] if addresses.local_only => out.push_str("  Other devices:    cannot connect, because of --local\n"),
        [] => out.push_str("  Other devices:    cannot connect: this machine is on no network\n"),
        [first, others @ ..] => {
            let _ = writeln!(out, "  On other devices: {first}");
            for other in others {
                let _ = writeln!(out, "                or: {other}");
            }
            if let Ok(code) = QRBuilder::new(first.as_str()).ecl(ECL::L).build() {
                let _ = writeln!(out, "\n{}", code.to_str());
            }
            if addresses.self_signed {
                out.push_str(WARNING);
                let _ = writeln!(out, "    potluck-node       add --relay-fingerprint {}", addresses.fingerprint);
            }
        }
    }
    out.push_str("\n  Ctrl-C stops it.\n\n");
    out
}

/// Opens an address in the browser, if the system can. If not, the address is in the terminal.
pub fn open_browser(url: &str) {
    let (program, arguments): (&str, &[&str]) = if cfg!(windows) {
        ("rundll32", &["url.dll,FileProtocolHandler"])
    } else if cfg!(target_os = "macos") {
        ("open", &[])
    } else {
        ("xdg-open", &[])
    };
    let mut command = Command::new(program);
    command.args(arguments).arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let _ = command.spawn();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_shows_the_lan_addresses_the_code_and_the_warning() {
        let urls = vec!["https://192.168.1.5:8787".to_owned(), "https://10.0.0.2:8787".to_owned()];
        let shown = text(
            "http://localhost:8787",
            &Addresses { urls, self_signed: true, fingerprint: "5eed".into(), ..Addresses::default() },
        );
        assert!(shown.contains("On this device:   http://localhost:8787\n"));
        assert!(shown.contains("On other devices: https://192.168.1.5:8787\n"));
        assert!(shown.contains("or: https://10.0.0.2:8787\n"));
        assert!(shown.contains("Show Details") && shown.contains('█'));
        assert!(shown.contains("--relay-fingerprint 5eed"));
    }

    #[test]
    fn a_local_relay_shows_no_code() {
        let none = Addresses { local_only: true, ..Addresses::default() };
        let shown = text("http://localhost:8787", &none);
        assert!(shown.contains("cannot connect") && !shown.contains('█') && !shown.contains("Advanced"));
    }
}
