//! Who may open rooms: those with a token, or those whom a proxy signed in. And what the operator sees and may do.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::net::Ipv4Addr;
use std::path::PathBuf;

use common::{Keys, Member, Reply, Running, TIMEOUT, config, folder, start};
use potluck_relay::Config;
use potluck_relay::access::AccessConfig;
use potluck_relay::net::proxy::Proxies;
use potluck_relay_api::{Control, Eviction, Refusal};
use tokio::time::timeout;
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::{HeaderName, HeaderValue};

const TOKEN: &str = "a-token-of-this-school";
const USER: &str = "x-school-user";

fn file(test: &str, text: &str) -> PathBuf {
    let path = folder(test).join("token");
    std::fs::write(&path, text).unwrap();
    path
}

async fn with_token(test: &str) -> Running {
    let access = AccessConfig { create_token: Some(file(test, &format!("{TOKEN}\n"))), ..AccessConfig::default() };
    start(Config { access, ..config(test) }).await
}

/// The owner enters with this header: why it may not, if so.
async fn own(relay: &Running, keys: &Keys, from: Ipv4Addr, header: Option<(&str, &str)>) -> Result<Member, Refusal> {
    let mut request = format!("ws://{}/rooms/{}", relay.address, keys.id()).into_client_request().unwrap();
    if let Some((name, value)) = header {
        let name: HeaderName = name.parse().unwrap();
        request.headers_mut().insert(name, HeaderValue::from_str(value).unwrap());
    }
    let (socket, _) = timeout(TIMEOUT, client_async(request, relay.tcp_from(from).await)).await.unwrap().unwrap();
    let mut member = Member::new(socket, relay.address.to_string());
    let nonce = member.challenge().await;
    member.enter(keys.owner(&nonce)).await;
    match member.control().await {
        Control::Welcome { route, .. } => {
            member.route = route;
            Ok(member)
        }
        Control::Refused { reason, message } => {
            assert_eq!(message, reason.sentence());
            Err(reason)
        }
        other => panic!("{other:?}"),
    }
}

const HERE: Ipv4Addr = Ipv4Addr::LOCALHOST;

#[tokio::test]
async fn only_those_with_the_token_open_rooms_and_everybody_joins() {
    let relay = with_token("token").await;
    let keys = Keys::new(1);
    let wrong = format!("Bearer {TOKEN}x");
    for header in [None, Some(("authorization", wrong.as_str())), Some(("cookie", "potluck-access=0"))] {
        assert_eq!(own(&relay, &keys, HERE, header).await.err(), Some(Refusal::NeedsToken), "{header:?}");
    }
    let right = format!("Bearer {TOKEN}");
    let _host = own(&relay, &keys, HERE, Some(("authorization", &right))).await.unwrap();
    let _guest = relay.join(&keys).await;
    let _again = own(&relay, &keys, HERE, None).await.expect("a room that is there needs no token");
}

#[tokio::test]
async fn who_enters_the_token_gets_a_cookie_for_this_relay_alone() {
    let relay = with_token("cookie").await;
    let form = relay.get("/access").await;
    assert!(form.status == 200 && form.text().contains("name=\"token\""), "{}", form.text());
    let enter = async |token: &str| -> Reply {
        let origin = format!("http://{}", relay.address);
        relay.request("POST", "/access", &[("Origin", &origin)], &format!("token={token}")).await
    };
    let refused = enter("a-token-of-another-school").await;
    assert!(refused.status == 403 && refused.text().contains("not a token"), "{}", refused.text());
    assert_eq!(refused.header("set-cookie"), None);
    let entered = enter(TOKEN).await;
    assert_eq!((entered.status, entered.header("location")), (303, Some("./")));
    let cookie = entered.header("set-cookie").unwrap();
    for attribute in ["Secure", "HttpOnly", "SameSite=Strict"] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    assert!(!cookie.contains(TOKEN) && !cookie.contains("Path"), "{cookie}");
    let pair = format!("other=1; {}", cookie.split(';').next().unwrap());
    own(&relay, &Keys::new(1), HERE, Some(("cookie", &pair))).await.unwrap();
    let foreign = relay.request("POST", "/access", &[("Origin", "https://evil.example")], "token=x").await;
    assert_eq!(foreign.status, 403, "{}", foreign.text());
    assert_eq!(start(config("open")).await.get("/access").await.status, 404, "an open relay asks for nothing");
}

#[tokio::test]
async fn only_a_trusted_proxy_says_who_has_signed_in() {
    let proxy = Ipv4Addr::new(127, 0, 0, 9);
    let access = AccessConfig { create_header: Some(HeaderName::from_static(USER)), ..AccessConfig::default() };
    let proxies = Proxies { addresses: vec![proxy.into()], send_header: false };
    let relay = start(Config { access, proxies, ..config("header") }).await;
    let keys = Keys::new(1);
    let forged = own(&relay, &keys, HERE, Some((USER, "head"))).await;
    assert_eq!(forged.err(), Some(Refusal::NeedsSignIn), "anybody could write the header");
    for stripped in [None, Some((USER, ""))] {
        assert_eq!(own(&relay, &keys, proxy, stripped).await.err(), Some(Refusal::NeedsSignIn), "{stripped:?}");
    }
    own(&relay, &keys, proxy, Some((USER, "ada"))).await.unwrap();
}

#[tokio::test]
async fn a_file_without_a_token_is_named() {
    let path = file("bad", "too short");
    let access = AccessConfig { operator_token: Some(path.clone()), ..AccessConfig::default() };
    let error = potluck_relay::Relay::check(&Config { access, ..config("bad") }).err().unwrap().to_string();
    assert!(error.starts_with(&path.display().to_string()) && error.contains("no token"), "{error}");
}

#[tokio::test]
async fn the_operator_sees_rooms_without_content_and_ends_one() {
    let access = AccessConfig { operator_token: Some(file("operator", TOKEN)), ..AccessConfig::default() };
    let proxies = Proxies { addresses: vec![Ipv4Addr::new(127, 0, 0, 9).into()], send_header: false };
    let relay = start(Config { access, proxies, ..config("operator") }).await;
    let (keys, others) = (Keys::listed(1, "A secret"), Keys::new(2));
    let (mut host, mut guest) = (relay.own(&keys).await, relay.join(&keys).await);
    let _others = relay.own(&others).await;
    guest.send(host.route, b"words").await;
    let _joined = host.control().await;
    host.frame().await;

    let report = relay.get("/operator").await;
    let rooms = report.json()["rooms"].clone();
    assert_eq!((&rooms[0]["id"], &rooms[0]["members"]), (&keys.id().into(), &2.into()), "{rooms}");
    assert!(rooms[0]["bytes"].as_u64().unwrap() > 4 && rooms[1]["bytes"] == 0, "{rooms}");
    assert!(!report.text().contains("secret"), "titles are content: {}", report.text());
    let bearer = format!("Bearer {TOKEN}");
    let room = format!("/operator/rooms/{}", keys.id());
    // A proxy on this machine passes on what others ask.
    let elsewhere = ("X-Forwarded-For", "203.0.113.9");
    for (method, path) in [("GET", "/operator"), ("DELETE", room.as_str())] {
        let refused = relay.request(method, path, &[elsewhere], "").await;
        assert_eq!((refused.status, refused.json()["error"].as_str()), (403, Some("not-operator")), "{method}");
    }
    assert_eq!(relay.request("GET", "/operator", &[elsewhere, ("Authorization", &bearer)], "").await.status, 200);

    let html = ("Accept", "text/html");
    let form = relay.request("GET", "/operator", &[elsewhere, html], "").await;
    assert_eq!((form.status, form.header("location")), (303, Some("./access")), "a browser signs in");
    let entered = relay.request("POST", "/access", &[elsewhere], &format!("token={TOKEN}")).await;
    assert_eq!((entered.status, entered.header("location")), (303, Some("./operator")));
    let cookie = entered.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let page = relay.request("GET", "/operator", &[elsewhere, html, ("Cookie", &cookie)], "").await;
    let text = page.text();
    assert!(page.status == 200 && text.contains(&keys.id()) && text.contains("Members refused"), "{text}");
    assert!(!text.contains("secret") && !text.contains("<script"), "{text}");
    let creates = own(&relay, &Keys::new(3), HERE, Some(("cookie", &cookie))).await;
    assert!(creates.is_ok(), "everybody may, here");

    let end = async || relay.request("DELETE", &room, &[elsewhere, ("Authorization", &bearer)], "").await.status;
    assert_eq!((end().await, end().await), (204, 404));
    for member in [&mut host, &mut guest] {
        let evicted = loop {
            match member.control().await {
                Control::Evicted { reason, message } => break (reason, message),
                _ => continue,
            }
        };
        assert_eq!(evicted, (Eviction::Ended, Eviction::Ended.sentence().to_owned()));
        assert!(Eviction::Ended.is_final(), "nobody comes back by itself");
    }
    assert_eq!(relay.refused(&keys.id(), |nonce| keys.owner(nonce)).await, Refusal::Ended);
    assert_eq!(relay.get("/operator").await.json()["rooms"].as_array().unwrap().len(), 2);
}
