#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::http::StatusCode;

use super::*;
use crate::net::Transport;
use crate::net::names::Machine;

fn config(data: &Path) -> Config {
    Config {
        ip: Ipv4Addr::LOCALHOST.into(),
        port: 0,
        page: None,
        models: Vec::new(),
        origin: Default::default(),
        cache: data.join("cache"),
        identity: Some(Identity::Own { folder: data.to_owned() }),
        machine: Machine::at(vec![Ipv4Addr::new(192, 168, 7, 5).into()]),
        hosts: Vec::new(),
        proxies: Proxies::default(),
        peers: Vec::new(),
        access: Default::default(),
        public_metrics: false,
        limits: Limits::default(),
    }
}

fn folder(test: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("potluck-server-{test}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    path
}

/// What a phone gets without TLS: requests of this machine are served, so the transport is set here.
#[tokio::test]
async fn without_tls_another_device_gets_the_help_page_and_a_redirect_and_nothing_else() {
    let data = folder("open");
    let relay = Relay::start(config(&data)).await.unwrap();
    let client = Client {
        address: Ipv4Addr::new(192, 168, 7, 9).into(),
        local: Ipv4Addr::new(192, 168, 7, 5).into(),
        is_proxied: false,
        transport: Transport::Open,
        activity: Arc::default(),
        lease: None,
    };
    let app = routes(relay.shared.clone());
    let ask_as = async |path: &str, host: &str, client: Client| {
        let request = hyper::Request::builder().uri(path).header("host", host);
        let request = request.extension(client).body(Body::empty()).unwrap();
        let response = hyper::service::Service::call(&TowerToHyperService::new(app.clone()), request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, 1 << 20).await.unwrap();
        (parts.status, parts.headers, String::from_utf8_lossy(&bytes).into_owned(), bytes)
    };
    let ask = async |path: &str, transport: Transport| {
        ask_as(path, "192.168.7.5:8787", Client { transport, ..client.clone() }).await
    };
    for path in ["/", "/r/abc?x=1", "/rooms", "/models", "/addresses", "/metrics", "/certificate/", "/nothing"] {
        let (status, headers, _, body) = ask(path, Transport::Open).await;
        assert_eq!(status, StatusCode::TEMPORARY_REDIRECT, "{path}");
        assert_eq!(headers["location"], format!("https://192.168.7.5:8787{path}"));
        assert!(body.is_empty());
    }
    let (status, headers, page, _) = ask("/certificate", Transport::Open).await;
    assert_eq!((status, headers["content-type"].to_str().unwrap()), (StatusCode::OK, "text/html; charset=utf-8"));
    assert!(
        page.contains("href=\"https://192.168.7.5:8787/\"") && page.contains("href=\"certificate/potluck.crt\""),
        "{page}"
    );
    let fingerprint = crate::net::help::pairs(&relay.addresses().fingerprint);
    assert!(!page.contains(&fingerprint), "who changes the page on the way would change it, too");
    let (_, _, page, _) = ask("/certificate", Transport::Tls).await;
    assert!(
        !page.contains(&fingerprint),
        "nor is it proved by a certificate that the device does not know yet: {page}"
    );
    let here = Client { address: Ipv4Addr::LOCALHOST.into(), transport: Transport::Plain, ..client.clone() };
    let (_, _, page, _) = ask_as("/certificate", "localhost:8787", here.clone()).await;
    assert!(page.contains(&fingerprint), "{page}");
    let (_, _, page, _) = ask_as("/certificate", "192.168.7.5:8787", here.clone()).await;
    assert!(!page.contains(&fingerprint), "it may be passed on for another device: {page}");
    let (_, _, page, _) = ask_as("/certificate", "localhost:8787", Client { is_proxied: true, ..here }).await;
    assert!(!page.contains(&fingerprint), "{page}");
    let (_, headers, _, der) = ask("/certificate/potluck.crt", Transport::Open).await;
    assert_eq!(headers["content-type"], "application/x-x509-ca-cert");
    let digest = ring::digest::digest(&ring::digest::SHA256, &der);
    assert_eq!(data_encoding::HEXLOWER.encode(digest.as_ref()), relay.addresses().fingerprint);
    let (_, _, pem, _) = ask("/certificate/potluck.pem", Transport::Open).await;
    assert!(std::fs::read_to_string(data.join(tls::AUTHORITY_FILE)).unwrap().ends_with(&pem) && !pem.contains("KEY"));
    std::fs::remove_dir_all(data).unwrap();
}

#[tokio::test]
async fn a_host_that_no_certificate_can_name_is_an_error_at_the_start() {
    let data = folder("host");
    for host in ["münchen.example", "_x"] {
        let config = Config { hosts: vec!["potluck.example".into(), host.into()], ..config(&data) };
        let error = Relay::start(config).await.err().unwrap().to_string();
        assert!(error.contains(host) && error.contains("xn--"), "{error}");
    }
}

/// The machine gets another address while the relay runs.
#[tokio::test]
async fn a_new_address_is_shown_and_certified_without_a_restart() {
    let data = folder("moved");
    let addresses = Arc::new(std::sync::Mutex::new(vec![Ipv4Addr::new(192, 168, 7, 5).into()]));
    let seen = addresses.clone();
    let machine = Machine { names: Vec::new(), addresses: Arc::new(move || seen.lock().unwrap().clone()) };
    let limits = Limits { refresh_every: Duration::from_millis(5), ..Limits::default() };
    let relay = Relay::start(Config { machine, limits, ..config(&data) }).await.unwrap();
    let (address, reach) = (relay.address(), relay.shared.reach.clone());
    let authority = relay.addresses().fingerprint;
    let first = std::fs::read(data.join(tls::LEAF_FILE)).unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let task = tokio::spawn(relay.run(async { drop(stopped.await) }));
    *addresses.lock().unwrap() = vec!["10.1.2.3".parse().unwrap(), "fd00::7".parse().unwrap()];
    let port = address.port();
    let urls = [format!("https://10.1.2.3:{port}"), format!("https://[fd00::7]:{port}")];
    let deadline = Instant::now() + Duration::from_secs(60);
    while reach.addresses().urls != urls || std::fs::read(data.join(tls::LEAF_FILE)).unwrap() == first {
        assert!(Instant::now() < deadline, "{:?}", reach.addresses());
        sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(reach.addresses().fingerprint, authority, "devices that trust the relay go on to");
    let _ = stop.send(());
    task.await.unwrap();
    std::fs::remove_dir_all(data).unwrap();
}
