//! The page and the relay's own small answers, over HTTP and HTTPS.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::net::Ipv4Addr;

use common::{Running, config, connector, folder, request, start};
use data_encoding::BASE64;
use potluck_relay::Config;
use potluck_relay::net::names::Machine;
use potluck_relay::net::tls::Identity;
use ring::digest::{SHA256, digest};
use tokio::net::TcpStream;
use tokio_rustls::rustls::pki_types::ServerName;

const INDEX: &str = "<!doctype html><base href=\"./\" /><script type=\"module\">start()</script><title>Potluck</title>";
const HASHED: &str = "page-0123456789abcdef.js";

async fn relay(test: &str) -> (Running, std::path::PathBuf) {
    let page = folder(test);
    std::fs::write(page.join("index.html"), INDEX).unwrap();
    std::fs::write(page.join(HASHED), "start()".repeat(1000)).unwrap();
    std::fs::write(page.join("page-0123456789abcdef_bg.wasm"), b"\0asm").unwrap();
    std::fs::create_dir(page.join("icons")).unwrap();
    std::fs::write(page.join("icons/a b.svg"), "<svg/>").unwrap();
    (start(Config { page: Some(page.clone()), ..config(test) }).await, page)
}

#[tokio::test]
async fn every_view_of_the_page_is_the_page() {
    let (relay, _) = relay("places").await;
    for place in ["/", "/bench", "/chats", "/r/k3v9abcd", "/index.html"] {
        let reply = relay.get(place).await;
        let expected = if place == "/r/k3v9abcd" { INDEX.replace("./", "../") } else { INDEX.to_owned() };
        assert_eq!((reply.status, reply.text()), (200, expected), "{place}: its addresses start in the relay's folder");
        assert_eq!(reply.header("content-type"), Some("text/html; charset=utf-8"));
        assert_eq!(reply.header("cache-control"), Some("no-cache"));
        assert_eq!(reply.header("cross-origin-opener-policy"), Some("same-origin"));
        assert_eq!(reply.header("cross-origin-embedder-policy"), Some("require-corp"));
        // printf 'start()' | openssl dgst -sha256 -binary | base64
        let policy = reply.header("content-security-policy").unwrap();
        assert!(
            policy.contains(
                "script-src 'self' 'wasm-unsafe-eval' 'sha256-DIm7WJS6ZKDYe5qFLPy+h4JFI9Bol5QmYC57mt3Fb00=';"
            ),
            "{policy}"
        );
        assert!(policy.contains("require-trusted-types-for 'script'; trusted-types potluck"), "{policy}");
    }
}

/// The example `own_page`.
#[tokio::test]
async fn somebody_elses_page_may_run_its_script_and_ask_the_relay() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/own_page");
    let html = std::fs::read_to_string(page.join("index.html")).unwrap();
    let script = html.split_once("<script type=\"module\">").unwrap().1.split_once("</script>").unwrap().0;
    let hash = BASE64.encode(digest(&SHA256, script.as_bytes()).as_ref());
    let relay = start(Config { page: Some(page), ..config("own_page") }).await;
    let reply = relay.get("/").await;
    assert_eq!((reply.status, reply.text()), (200, html));
    let policy = reply.header("content-security-policy").unwrap();
    assert!(policy.contains(&format!("'sha256-{hash}'")), "a browser would not run its script: {policy}");
    // What the script reads.
    for (path, field) in [("/models", "models"), ("/rooms", "rooms")] {
        let reply = relay.get(path).await;
        let body: serde_json::Value = serde_json::from_str(&reply.text()).unwrap();
        assert!(body[field].is_array(), "{path}: {body}");
    }
}

#[tokio::test]
async fn the_page_may_use_of_the_browser_what_it_uses_and_nothing_else() {
    let (relay, _) = relay("permissions").await;
    for path in ["/", "/page-0123456789abcdef.js", "/healthz", "/nothing"] {
        let reply = relay.get(path).await;
        let permissions = reply.header("permissions-policy").unwrap_or_default();
        for used in ["clipboard-write=(self)", "screen-wake-lock=(self)", "cross-origin-isolated=(self)"] {
            assert!(permissions.contains(used), "{path}: {permissions}");
        }
        for unused in ["camera=()", "microphone=()", "geolocation=()", "usb=()", "clipboard-read=()"] {
            assert!(permissions.contains(unused), "{path}: {permissions}");
        }
        assert_eq!(reply.header("strict-transport-security"), None, "{path}: this is no TLS");
    }
}

#[tokio::test]
async fn who_comes_by_tls_to_a_name_of_the_owners_certificate_is_told_to_come_by_tls() {
    let data = folder("hsts");
    let hosts = vec!["potluck.example".to_owned()];
    let own = Identity::Own { folder: data.clone() };
    let first = start(Config { identity: Some(own), hosts: hosts.clone(), ..config("hsts") }).await;
    let authority = std::fs::read(data.join("authority.pem")).unwrap();
    // The file has both.
    let pem = data.join("relay.pem");
    let given = Identity::Files { certificate: pem.clone(), key: pem };
    let second = start(Config { identity: Some(given), hosts, ..config("hsts") }).await;
    for (relay, host, expected) in [
        // A machine's own name has other services, too.
        (&first, "potluck.example", None),
        (&second, "potluck.example", Some("max-age=15768000")),
        // What runs on other ports of this machine may know no TLS, and an address has no such rule.
        (&second, "localhost", None),
        (&second, "127.0.0.1", None),
    ] {
        let stream = TcpStream::connect(relay.address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let stream = connector(&authority).connect(name, stream).await.unwrap();
        let reply = request(stream, "GET", "/healthz", host, &[], "").await;
        assert_eq!((reply.status, reply.header("strict-transport-security")), (200, expected), "{host}");
        let stream = TcpStream::connect(relay.address).await.unwrap();
        let plain = request(stream, "GET", "/healthz", host, &[], "").await;
        assert_eq!((plain.status, plain.header("strict-transport-security")), (200, None), "{host} without TLS");
    }
    let help = second.get("/certificate").await;
    assert_eq!((help.status, help.json()["error"].as_str()), (404, Some("no-authority")));
}

#[tokio::test]
async fn files_have_types_and_cache_lifetimes() {
    let (relay, _) = relay("files").await;
    let immutable = "public, max-age=31536000, immutable";
    for (path, kind, cache) in [
        ("/page-0123456789abcdef.js", "text/javascript; charset=utf-8", immutable),
        ("/page-0123456789abcdef_bg.wasm", "application/wasm", immutable),
        ("/icons/a%20b.svg", "image/svg+xml", "no-cache"),
    ] {
        let reply = relay.get(path).await;
        assert_eq!((reply.status, reply.header("content-type")), (200, Some(kind)), "{path}");
        assert_eq!(reply.header("cache-control"), Some(cache));
        let policy = reply.header("content-security-policy").unwrap();
        assert!(policy.contains("script-src 'self' 'wasm-unsafe-eval';"), "workers have a policy too: {policy}");
    }
    for missing in ["/nothing.js", "/icons", "/..%2f..%2fetc/passwd", "/r/a/b", "/icons/../index.html"] {
        assert_eq!(relay.get(missing).await.status, 404, "{missing}");
    }
    assert_eq!(relay.request("POST", "/", &[], "").await.status, 405);
}

#[tokio::test]
async fn a_browser_gets_an_error_page_and_a_program_gets_json() {
    const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    let (relay, _) = relay("person").await;
    for (path, status, sentence, error, home) in [
        ("/nothing", 404, "There is nothing at this address.", "not-found", "./"),
        ("/r/a/b", 404, "There is nothing at this address.", "not-found", "../../"),
        ("/models/none.gguf", 404, "There is no model file named &quot;none.gguf&quot; here", "no-such-model", "../"),
        ("/rooms/k3v9abcd", 400, "This address is for connections to a room", "no-connection", "../"),
    ] {
        let read = relay.get_with(path, &[("Accept", BROWSER), ("Accept-Encoding", "br")]).await;
        assert_eq!((read.status, read.header("content-type")), (status, Some("text/html; charset=utf-8")), "{path}");
        assert!(read.text().contains(sentence), "{path}: {}", read.text());
        let link = format!("<a href=\"{home}\">");
        assert!(read.text().contains(&link), "{path}: the front page is one press away, also in a proxy's folder");
        assert!(read.header("content-security-policy").unwrap().starts_with("default-src 'none';"), "{path}");
        assert_eq!(read.header("content-encoding"), None, "{path}");
        assert_eq!(read.header("cross-origin-opener-policy"), Some("same-origin"));
        let json = relay.get_with(path, &[("Accept", "*/*")]).await;
        assert_eq!((json.status, json.json()["error"].as_str()), (status, Some(error)), "{path}");
        assert_eq!(json.header("vary"), Some("accept"), "{path}: a cache must tell them apart");
    }
    let none = start(config("person-none")).await;
    let reply = none.get_with("/", &[("Accept", BROWSER)]).await;
    assert!(reply.text().contains("The page is not built yet"), "{}", reply.text());
    assert!(!reply.text().contains("<a "), "there is no front page to go to");
}

#[tokio::test]
async fn the_page_is_compressed_and_remembered() {
    let (relay, page) = relay("compressed").await;
    let path = format!("/{HASHED}");
    for coding in ["br", "gzip"] {
        let reply = relay.get_with(&path, &[("Accept-Encoding", coding)]).await;
        assert_eq!((reply.status, reply.header("content-encoding")), (200, Some(coding)));
        assert!(reply.body.len() < 500, "{} bytes", reply.body.len());
    }
    let etag = relay.get("/").await.header("etag").unwrap().to_owned();
    assert_eq!(relay.get_with("/", &[("If-None-Match", &etag)]).await.status, 304);
    // A proxy that compresses may take the mark of a weak tag away.
    let strong = etag.strip_prefix("W/").unwrap();
    for known in [strong.to_owned(), format!("\"other\", {etag}"), "*".into()] {
        assert_eq!(relay.get_with("/", &[("If-None-Match", &known)]).await.status, 304, "{known}");
    }
    std::fs::write(page.join("index.html"), "a new build").unwrap();
    let changed = relay.get_with("/", &[("If-None-Match", &etag)]).await;
    assert_eq!((changed.status, changed.text().as_str()), (200, "a new build"));
}

#[tokio::test]
async fn without_a_page_it_says_how_to_get_one() {
    let relay = start(config("none")).await;
    let reply = relay.get("/").await;
    assert_eq!((reply.status, reply.json()["error"].as_str()), (503, Some("no-page")));
    assert!(reply.text().contains("cargo xtask run"));
    assert_eq!(relay.get("/healthz").await.text(), "ok\n");
    let addresses = relay.get("/addresses").await.json();
    assert_eq!(
        addresses,
        serde_json::json!({"urls": [], "local_only": true, "self_signed": false, "fingerprint": "", "help": ""})
    );
}

#[tokio::test]
async fn one_port_serves_http_and_https_and_the_certificate_is_kept() {
    let data = folder("tls");
    let config = || Config {
        identity: Some(Identity::Own { folder: data.clone() }),
        machine: Machine::at(vec![Ipv4Addr::new(192, 168, 7, 5).into()]),
        ..config("tls")
    };
    let first = start(config()).await;
    let certificate = std::fs::read(data.join("authority.pem")).unwrap();
    assert_eq!(first.get("/healthz").await.text(), "ok\n");
    for name in ["localhost", "192.168.7.5"] {
        let stream = TcpStream::connect(first.address).await.unwrap();
        let stream = connector(&certificate).connect(ServerName::try_from(name).unwrap(), stream).await.unwrap();
        let reply = request(stream, "GET", "/addresses", name, &[], "").await;
        let port = first.address.port();
        assert_eq!(reply.json()["urls"], serde_json::json!([format!("https://192.168.7.5:{port}")]));
        assert_eq!(reply.json()["self_signed"], true);
        assert_eq!(reply.json()["help"], format!("http://192.168.7.5:{port}/certificate"));
    }
    first.stop().await;
    let second = start(config()).await;
    assert!(std::fs::read(data.join("authority.pem")).unwrap() == certificate);
    // A client that connects and sends nothing holds up nobody.
    let _silent = TcpStream::connect(second.address).await.unwrap();
    assert_eq!(second.get("/healthz").await.status, 200);
}
