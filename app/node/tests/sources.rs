//! Downloads: verified against hashes, cached, resumed, and used without a cache.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::path::Path;

use common::*;
use futures::future::LocalBoxFuture;
use potluck_gguf::synthetic::{Architecture, Synthetic};
use potluck_model::FileRange;
use potluck_node::native::{Fingerprint, Network, platform};
use potluck_node::node::Input;
use potluck_node::open::{OpenError, Opener};
use potluck_node::platform::{HttpReply, HttpRequest, NetError, Socket};
use potluck_node::relay::Relay;
use potluck_node::source::{HttpFile, HttpSource, PendingRequests, Source, SourceError, Traffic};
use potluck_panel::{ModelSource, ToNode, ToPage};
use potluck_plan::ModelId;

const TEXT: &str = "It was a dark night";

fn model(seed: u64) -> Synthetic {
    Synthetic { architecture: Architecture::Llama, blocks: 2, seed, ..Synthetic::default() }
}

fn of_relay(name: &str) -> ModelSource {
    ModelSource::Relay { name: name.to_owned() }
}

fn network(relay: &str) -> Network {
    Network { relay: relay.to_owned(), ..Network::default() }
}

/// The relay's file with this name, and its hashes.
async fn file(relay: &Relay, name: &str) -> HttpFile {
    let (_, model) = relay.model(name, |_, _| {}).await.unwrap();
    let file = &model.files[0];
    let root = ModelId::from_hex(file.root.as_deref().unwrap()).unwrap();
    let groups = relay.url(&file.groups);
    HttpFile { url: relay.url(&file.url), bytes: file.bytes, hashes: Some((root.0, groups)) }
}

fn everything(file: &HttpFile) -> FileRange {
    FileRange { file: 0, offset: 0, len: file.bytes }
}

#[test]
fn every_piece_is_verified_and_wrong_bytes_are_refused() {
    test(async {
        let models = folder("models");
        let bytes = std::fs::read(write(&model(1), &models, "one")).unwrap();
        write(&model(2), &models, "two");
        let relay = relay(&models, 0).await;
        let platform = platform(folder("cache"), &network(&relay.origin));
        let client = Relay::new(platform.clone(), &relay.origin);
        let (one, two) = (file(&client, "one").await, file(&client, "two").await);
        let source = |file: HttpFile| HttpSource::new(platform.clone(), vec![file], Traffic::default());

        let good = source(one.clone());
        for (offset, len) in [(0, 1), (65_530, 12), (65_536, 65_536), (1000, 300_000), (one.bytes - 5, 5)] {
            let read = good.read(FileRange { file: 0, offset, len }).await.unwrap();
            assert_eq!(read, bytes[offset as usize..(offset + len) as usize], "{len} bytes at {offset}");
        }
        let behind = good.read(FileRange { file: 0, offset: one.bytes, len: 1 }).await;
        assert_eq!(behind, Err(SourceError::TooShort { len: one.bytes, wanted: one.bytes + 1 }));

        // First the right hashes with wrong bytes, then hashes that do not belong to the root.
        let foreign = HttpFile { url: two.url.clone(), ..one.clone() };
        let refused = source(foreign).read(everything(&one)).await;
        assert!(matches!(refused, Err(SourceError::Hash(_))), "{refused:?}");
        let (root, _) = one.hashes.unwrap();
        let mixed = HttpFile { hashes: two.hashes.map(|(_, groups)| (root, groups)), ..two };
        let refused = source(mixed.clone()).read(everything(&mixed)).await;
        assert!(matches!(refused, Err(SourceError::Hash(_))), "{refused:?}");
        relay.stop().await;
    });
}

#[test]
fn an_interrupted_download_resumes_where_it_stopped() {
    test(async {
        let (models, cache) = (folder("models"), folder("cache"));
        let path = write(&model(1), &models, "model");
        let expected = alone(&path, TEXT, 8).await;
        let relay = relay(&models, 0).await;
        let served = async |name: &str| {
            let before = relay.metric("potluck_relay_weight_bytes_total").await;
            let mut session = peer(name, &relay.origin, cache.clone());
            host(&mut session, &relay.origin, of_relay("model"), 4_000_000_000).await;
            until(&mut session, name, |status| is_up(status, 1)).await;
            assert_eq!(answer(&mut session, question(1, TEXT, 8), |_| {}).await, expected);
            relay.metric("potluck_relay_weight_bytes_total").await - before
        };
        let all = served("first").await;
        let blob = blobs(&cache).into_iter().max_by_key(|blob| blob.metadata().unwrap().len()).unwrap();
        let len = blob.metadata().unwrap().len();
        std::fs::OpenOptions::new().write(true).open(&blob).unwrap().set_len(len / 2).unwrap();
        let rest = served("second").await;
        // Whole groups at both ends, and the list of hashes.
        assert!(rest >= len / 2 && rest < len / 2 + 200_000 && rest < all, "{rest} of {len}, first {all}");
        assert_eq!(blob.metadata().unwrap().len(), len, "it is whole again");
        assert_eq!(served("third").await, 0);
        relay.stop().await;
    });
}

/// All files of a cache with one model.
fn blobs(cache: &Path) -> Vec<std::path::PathBuf> {
    let mut folders = std::fs::read_dir(cache).unwrap().map(|entry| entry.unwrap().path());
    let model = folders.find(|path| !path.ends_with("locks") && !path.ends_with("0".repeat(64))).unwrap();
    std::fs::read_dir(model).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_failing_storage_is_reported_and_done_without() {
    test(async {
        let models = folder("models");
        let path = write(&model(1), &models, "model");
        let expected = alone(&path, TEXT, 8).await;
        // The cache's folder cannot be created where a file is.
        let cache = folder("blocked").join("cache");
        std::fs::write(&cache, b"in the way").unwrap();
        let relay = relay(&models, 0).await;
        let mut session = peer("host", &relay.origin, cache);
        // Not `host`, which drops what is said before the room is up.
        session.send(Input::Page(ToNode::Host(choice(of_relay("model"), 4_000_000_000)), Vec::new()));
        let mut notices = Vec::new();
        while !is_up(&session.status, 1) {
            if let ToPage::Notice(notice) = session.next().await.unwrap() {
                notices.push(notice.sentence);
            }
        }
        assert!(notices.iter().any(|sentence| sentence.contains("storage")), "{notices:?}");
        assert_eq!(answer(&mut session, question(1, TEXT, 8), |_| {}).await, expected);
        relay.stop().await;
    });
}

/// A relay with its own certificate, and the origin of its TLS side.
async fn self_signed(models: &Path, certificate: &Path) -> (RunningRelay, String) {
    let identity = potluck_relay::net::tls::Identity::Own { folder: certificate.to_owned() };
    let relay = start_relay(models, 0, Some(identity)).await;
    let origin = relay.origin.replace("http://", "https://");
    (relay, origin)
}

fn fingerprint_in(folder: &Path) -> Fingerprint {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    Fingerprint::of(&CertificateDer::from_pem_file(folder.join("authority.pem")).unwrap())
}

#[test]
fn a_self_signed_relay_is_reached_only_with_its_fingerprint() {
    test(async {
        let (models, certificate) = (folder("models"), folder("identity"));
        write(&model(1), &models, "model");
        let (relay, origin) = self_signed(&models, &certificate).await;
        let fingerprint = fingerprint_in(&certificate);
        let client = |relay_fingerprint| {
            let network = Network { relay_fingerprint, ..network(&origin) };
            Relay::new(platform(folder("cache"), &network), &origin)
        };

        let unknown = client(None).models().await.unwrap_err().to_string();
        let advice = format!("--relay-fingerprint {fingerprint}");
        assert!(unknown.contains(&advice), "nobody signed the certificate, so the sentence says what helps: {unknown}");
        let other = client(Some(Fingerprint::of(b"another"))).models().await.unwrap_err().to_string();
        assert!(other.contains("another fingerprint"), "{other}");
        assert_eq!(client(Some(fingerprint)).models().await.unwrap()[0].name, "model");
        relay.stop().await;
    });
}

#[test]
fn a_room_of_a_self_signed_relay_is_entered_only_with_its_fingerprint() {
    test(async {
        let (models, certificate) = (folder("models"), folder("identity"));
        let (relay, origin) = self_signed(&models, &certificate).await;
        let dial = async |relay_fingerprint| {
            let network = Network { relay_fingerprint, ..network(&origin) };
            let url = format!("{}/rooms/none", origin.replace("https://", "wss://"));
            platform(folder("cache"), &network).transport.connect(url).await
        };
        let refused =
            |fingerprint: Option<Fingerprint>| async move { dial(fingerprint).await.err().unwrap().to_string() };
        let unknown = refused(None).await;
        assert!(unknown.contains("--relay-fingerprint"), "{unknown}");
        let other = refused(Some(Fingerprint::of(b"another"))).await;
        assert!(other.contains("another fingerprint"), "{other}");
        let mut socket = dial(Some(fingerprint_in(&certificate))).await.unwrap();
        let said = futures::StreamExt::next(&mut socket.messages).await;
        assert!(said.is_some(), "the relay speaks first");
        socket.sender.close();
        drop(socket);
        relay.stop().await;
    });
}

/// A relay that says this model's root of everything.
struct LyingRelay {
    honest: std::rc::Rc<dyn potluck_node::platform::Transport>,
    roots: [String; 2],
}

impl potluck_node::platform::Transport for LyingRelay {
    fn connect(&self, url: String) -> LocalBoxFuture<'static, Result<Socket, NetError>> {
        self.honest.connect(url)
    }

    fn request(&self, request: HttpRequest) -> LocalBoxFuture<'static, Result<HttpReply, NetError>> {
        let is_list = request.url.ends_with("/models");
        let (reply, [wanted, own]) = (self.honest.request(request), self.roots.clone());
        Box::pin(async move {
            let mut reply = reply.await?;
            if is_list {
                // The id of the model is the honest one's; the hashes of its file are those of the file that is sent.
                let list = String::from_utf8(reply.body).unwrap();
                reply.body = list.replacen(&own, &wanted, 1).into_bytes();
            }
            Ok(reply)
        })
    }
}

#[test]
fn a_relay_cannot_store_other_bytes_under_an_honest_models_id() {
    test(async {
        let models = folder("models");
        write(&model(1), &models, "honest");
        write(&model(2), &models, "zother");
        let relay = relay(&models, 0).await;
        let mut platform = platform(folder("cache"), &network(&relay.origin));
        let client = Relay::new(platform.clone(), &relay.origin);
        let root = async |name| client.model(name, |_, _| {}).await.unwrap().1.root.unwrap();
        let roots = [root("honest").await, root("zother").await];
        platform.transport = std::rc::Rc::new(LyingRelay { honest: platform.transport.clone(), roots });
        let opener = Opener {
            relay: Relay::new(platform.clone(), &relay.origin),
            platform,
            traffic: Traffic::default(),
            requests: PendingRequests::new(potluck_node::events::channel::<potluck_protocol::PieceRequest>().0.sink()),
        };
        let opened = opener.open(&of_relay("zother"), &[], |_, _| {}).await;
        assert!(matches!(opened, Err(OpenError::Source(SourceError::Hash(_)))), "{:?}", opened.err());
        assert!(opener.open(&of_relay("honest"), &[], |_, _| {}).await.is_ok(), "the test reads honest lists");
        relay.stop().await;
    });
}
