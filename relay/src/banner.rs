//! What the terminal shows once the relay is running.

use std::fmt::Write;
use std::process::{Command, Stdio};

use fast_qr::{ECL, QRBuilder};
use potluck_relay::Missing;
use potluck_relay::net::help::pairs;
use potluck_relay_api::http::Addresses;

/// What is missing, the addresses, a QR code for another device, and how to trust the relay's certificate.
pub fn text(local: &str, addresses: &Addresses, missing: &[Missing]) -> String {
    let has_page = !missing.iter().any(|one| matches!(one, Missing::Page(_)));
    let state = if has_page { "Potluck is ready." } else { "The relay runs, but it has no page to show." };
    let mut out = format!("\n  {state}\n\n");
    // Writing to a String cannot fail.
    for one in missing {
        let _ = writeln!(out, "  {one}");
    }
    if !missing.is_empty() {
        out.push('\n');
    }
    let _ = writeln!(out, "  On this device:   {local}");
    match &addresses.urls[..] {
        [] if addresses.local_only => out.push_str("  Other devices:    cannot connect, because of --local\n"),
        [] => out.push_str("  Other devices:    cannot connect: this machine is on no network\n"),
        [first, others @ ..] => {
            let _ = writeln!(out, "  On other devices: {first}");
            for other in others {
                let _ = writeln!(out, "                or: {other}");
            }
            // A page that opens Potluck where the device trusts the relay, and says what to do where it does not.
            let scanned = if addresses.help.is_empty() { first } else { &addresses.help };
            if let Ok(code) = QRBuilder::new(scanned.as_str()).ecl(ECL::L).build() {
                let _ = writeln!(out, "\n{}", code.to_str());
            }
            if addresses.self_signed {
                out.push_str(&trust(addresses));
            }
        }
    }
    out.push_str("\n  Ctrl-C stops it.\n\n");
    out
}

/// How other devices come to trust the relay's own authority.
fn trust(addresses: &Addresses) -> String {
    let Addresses { help, fingerprint, .. } = addresses;
    let shown = pairs(fingerprint);
    // Two lines of it fit a terminal; each pair has three characters.
    let (first, second) = shown.split_at_checked(48).unwrap_or((&shown, ""));
    format!(
        "
  The code leads to {help}
  Open it on the other device and install the certificate; the warnings then stop. iPhones and iPads need it; others
  can also press Advanced, then Proceed. Compare the certificate's SHA-256 fingerprint before you trust it:
    {}
    {}
  potluck-node       add --relay-fingerprint {fingerprint}
",
        first.trim_end_matches(':'),
        second,
    )
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
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn it_shows_the_lan_addresses_the_code_and_how_to_trust_the_relay() {
        let urls = vec!["https://192.168.1.5:8787".to_owned(), "https://10.0.0.2:8787".to_owned()];
        let help = "http://192.168.1.5:8787/certificate".to_owned();
        let own =
            Addresses { urls, self_signed: true, fingerprint: "5eedc0de".repeat(8), help, ..Addresses::default() };
        let shown = text("http://localhost:8787", &own, &[]);
        assert!(shown.contains("On this device:   http://localhost:8787\n"));
        assert!(shown.contains("On other devices: https://192.168.1.5:8787\n"));
        assert!(shown.contains("or: https://10.0.0.2:8787\n"));
        assert!(shown.contains("The code leads to http://192.168.1.5:8787/certificate\n") && shown.contains('█'));
        assert!(shown.contains("5E:ED:C0:DE\n    5E:ED:C0:DE:"), "as systems show it: {shown}");
        assert!(shown.contains("--relay-fingerprint 5eedc0de5eed"));
        let code = |url: &str| QRBuilder::new(url).ecl(ECL::L).build().unwrap().to_str();
        assert!(shown.contains(&code(&own.help)), "phones come to the page that helps");
        let given = Addresses { self_signed: false, help: String::new(), ..own };
        let shown = text("http://localhost:8787", &given, &[]);
        assert!(shown.contains(&code("https://192.168.1.5:8787")) && !shown.contains("fingerprint"), "{shown}");
    }

    #[test]
    fn a_local_relay_shows_no_code() {
        let none = Addresses { local_only: true, ..Addresses::default() };
        let shown = text("http://localhost:8787", &none, &[]);
        assert!(shown.contains("cannot connect") && !shown.contains('█') && !shown.contains("Advanced"));
    }

    #[test]
    fn what_is_missing_is_said_at_the_start() {
        let page = Missing::Page("dist/index.html".into());
        let models = Missing::Models { path: "models".into(), reason: "the folder does not exist".into() };
        let shown = text("http://localhost:8787", &Addresses::default(), &[page.clone(), models.clone()]);
        assert!(!shown.contains("Potluck is ready") && shown.contains("no page to show"), "{shown}");
        assert!(shown.contains(&page.to_string()) && shown.contains(&models.to_string()), "{shown}");
        let shown = text("http://localhost:8787", &Addresses::default(), std::slice::from_ref(&models));
        assert!(shown.contains("Potluck is ready") && shown.contains(&models.to_string()), "{shown}");
    }
}
