//! Links lead to servers of many manners: each gives the file, or one sentence.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod link_server;

use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use link_server::{Content, Form, Limit, LinkServer, Manners};
use potluck_model::FileRange;
use potluck_node::native::{Network, platform};
use potluck_node::source::{HttpSource, Source, SourceError, Traffic};
use potluck_panel::AccessTokens;

const MIB: u64 = 1 << 20;
/// Longer than what is fetched at once and kept.
const BYTES: u64 = 9 * MIB + 100;

fn file() -> Vec<u8> {
    (0..BYTES).map(|index| (index.wrapping_mul(0x9e37_79b9) >> 13) as u8).collect()
}

fn server(manners: Manners) -> LinkServer {
    LinkServer::start(Content::Bytes(file()), manners)
}

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let limited = async { tokio::time::timeout(Duration::from_secs(120), work).await.expect("it ends in time") };
    let done = tokio::task::LocalSet::new().block_on(&runtime, limited);
    runtime.shutdown_background();
    done
}

async fn source(server: &LinkServer, traffic: &Traffic) -> Result<HttpSource, SourceError> {
    source_with(server, traffic, AccessTokens::default()).await
}

async fn source_with(
    server: &LinkServer,
    traffic: &Traffic,
    access_tokens: AccessTokens,
) -> Result<HttpSource, SourceError> {
    let network = Network { allow_private_links: true, access_tokens, ..Network::default() };
    HttpSource::of_links(platform(std::env::temp_dir(), &network), vec![server.url.clone()], traffic.clone()).await
}

/// The reads of a load: pieces of half a megabyte, taken by turns from three places, as those of experts are.
fn reads() -> Vec<FileRange> {
    let (third, piece) = (3 * MIB, MIB / 2);
    let by_turns = (0..6).flat_map(|turn| (0..3).map(move |place| (place * third + turn * piece, piece)));
    by_turns.chain([(9 * MIB, 100)]).map(|(offset, len)| FileRange { file: 0, offset, len }).collect()
}

/// Reads everything as a load does; an error, or what was read wrong.
async fn read_all(source: &HttpSource) -> Result<Option<FileRange>, SourceError> {
    let (file, reads) = (file(), reads());
    source.expect(&reads);
    let all = reads.into_iter().map(|read| async move { Ok::<_, SourceError>((read, source.read(read).await?)) });
    let all: Vec<(FileRange, Vec<u8>)> = futures::stream::iter(all).buffered(6).try_collect().await?;
    let is_wrong =
        |(read, bytes): &(FileRange, Vec<u8>)| file[read.offset as usize..][..read.len as usize] != bytes[..];
    Ok(all.into_iter().find(is_wrong).map(|(read, _)| read))
}

/// What comes of a server: the requests that it got, or a sentence.
async fn outcome(manners: Manners) -> Result<usize, String> {
    let server = server(manners);
    let sentence = |error: SourceError| error.to_string();
    let source = source(&server, &Traffic::default()).await.map_err(sentence)?;
    assert_eq!(source.file_len(0), Some(BYTES));
    let wrong = read_all(&source).await.map_err(sentence)?;
    assert_eq!(wrong, None, "these bytes are the file's");
    assert_eq!(server.heads(), 0, "addresses that are signed for GET refuse HEAD");
    Ok(server.requests())
}

#[test]
fn reads_that_follow_one_another_share_a_request() {
    run(async {
        // The length, three places, and the end, which follows the third.
        assert_eq!(outcome(Manners::default()).await, Ok(4), "nineteen reads");
    });
}

#[test]
fn the_file_comes_from_servers_of_all_manners() {
    let instead = |numbers, status, lines, content| Manners {
        instead: Some((numbers, status, lines, content)),
        ..Manners::default()
    };
    let limit = |requests, says| Manners {
        limit: Some(Limit { requests, window: Duration::from_secs(2), says }),
        ..Manners::default()
    };
    let default = Manners::default;
    for (server, manners, most) in [
        ("each request is led to a newly signed address elsewhere", Manners { signs: true, ..default() }, 4),
        ("the browser hides Content-Range", Manners { hides_range: true, ..default() }, 5),
        ("parts are cut to a megabyte", Manners { most: Some(MIB), ..default() }, 11),
        ("connections break after a megabyte", Manners { breaks_after: Some(MIB), ..default() }, 11),
        ("the first request is too many, and Retry-After says so", instead(0..1, 429, "Retry-After: 1\r\n", ""), 5),
        ("the window is told as RateLimit", instead(1..3, 429, "RateLimit: \"resolvers\";r=0;t=1\r\n", ""), 7),
        ("nothing is told, as in a browser", instead(1..4, 429, "", ""), 8),
        ("503 asks to slow down", instead(2..3, 503, "", "<Code>SlowDown</Code>"), 5),
        ("a date cannot be read", instead(2..3, 429, "Retry-After: Wed, 21 Oct 2026 07:28:00 GMT\r\n", ""), 5),
        ("a proxy fails for a moment", instead(2..4, 502, "", "bad gateway"), 6),
        ("a page about maintenance comes in between", instead(2..4, 200, "Content-Type: text/html\r\n", "soon"), 6),
        ("two requests in two seconds", limit(2, true), 9),
        ("two requests in two seconds, and no word about it", limit(2, false), 12),
    ] {
        let requests = run(outcome(manners));
        assert!(matches!(requests, Ok(requests) if requests <= most), "{server}: {requests:?}, at most {most}");
    }
}

#[test]
fn a_server_that_does_not_give_the_file_is_one_sentence() {
    let always = |status, lines, content| Manners {
        instead: Some((0..usize::MAX, status, lines, content)),
        ..Manners::default()
    };
    for (server, manners, words) in [
        ("whole files only", Manners { whole: true, ..Manners::default() }, "range requests"),
        ("a page of a shop window", always(200, "Content-Type: text/html; charset=utf-8\r\n", "<html>"), "web page"),
        ("an account is needed", always(401, "", ""), "log in"),
        ("a licence is to be accepted", always(403, "", ""), "licence"),
        ("it is gone", always(404, "", ""), "no such file"),
        ("an hour of waiting", always(429, "Retry-After: 3600\r\n", ""), "60 min"),
    ] {
        let sentence = run(outcome(manners)).expect_err(server);
        assert!(sentence.contains(words) && sentence.contains("127.0.0.1"), "{server}: {sentence}");
    }
}

#[test]
fn a_gated_file_comes_to_who_has_its_token_and_no_other_server_sees_it() {
    run(async {
        let gated = |signs| server(Manners { knows: Some("hf_mine"), signs, ..Manners::default() });
        let tokens = |server: &LinkServer, token| {
            let mut tokens = AccessTokens::default();
            tokens.keep(&server.url, token).unwrap();
            tokens
        };
        for signs in [false, true] {
            let server = gated(signs);
            let mine = tokens(&server, "hf_mine");
            let source = source_with(&server, &Traffic::default(), mine).await.unwrap();
            assert_eq!(read_all(&source).await, Ok(None), "these bytes are the file's");
            assert_eq!(server.stray_tokens(), 0, "the server that it leads to must not see the token");
        }
        let server = gated(false);
        let of_another = tokens(&self::server(Manners::default()), "hf_mine");
        for tokens in [AccessTokens::default(), tokens(&server, "hf_wrong"), of_another] {
            let refused = source_with(&server, &Traffic::default(), tokens).await.err().unwrap().to_string();
            assert!(refused.contains("access token") && refused.contains("127.0.0.1"), "{refused}");
        }
    });
}

/// What comes of each server, all at the same time.
fn outcomes<const N: usize>(servers: [Manners; N]) -> Vec<Result<usize, String>> {
    run(async { futures::future::join_all(servers.into_iter().map(outcome)).await })
}

#[test]
fn the_file_comes_from_the_servers_that_people_name() {
    let form = |form, lines| Manners { form, lines, ..Manners::default() };
    let leads = |status, lines| Manners { leads: Some(status), lines, ..Manners::default() };
    let of_hub = "ETag: \"6f85a640a97cf2bf5b8e764087b1e83da0fdb51d\"\r\nX-Linked-Size: 9437284\r\n\
                  Content-Disposition: inline; filename*=UTF-8''model.gguf; filename=\"model.gguf\";\r\n";
    let of_github = "Content-Type: application/octet-stream\r\nETag: \"0x8DC8F3A1B2C3D4E\"\r\n\
                     Content-Disposition: attachment; filename=model.gguf\r\nx-ms-blob-type: BlockBlob\r\n";
    let of_s3 = "Accept-Ranges: bytes\r\nETag: \"9b2cf535f27731c974343645a3985328-1126\"\r\n\
                 x-amz-server-side-encryption: AES256\r\nContent-Type: binary/octet-stream\r\nServer: AmazonS3\r\n";
    let of_nginx = "Server: nginx/1.26.2\r\nETag: \"66f1a2b3-900064\"\r\nAccept-Ranges: bytes\r\n\
                    Last-Modified: Mon, 23 Sep 2026 17:20:03 GMT\r\nContent-Type: application/octet-stream\r\n";
    let of_gateway = "Etag: \"bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi\"\r\nX-Ipfs-Path: /ipfs/x\r\n\
                      Cache-Control: public, max-age=29030400, immutable\r\nVary: Accept-Encoding\r\n";
    let servers = [
        ("the Hub, which leads to its store", Manners { signs: true, lines: of_hub, ..Manners::default() }, 4),
        ("GitHub releases, which lead to a blob", Manners { signs: true, lines: of_github, ..Manners::default() }, 4),
        ("a link that S3 has signed", form(Form::Usual, of_s3), 4),
        ("a folder that nginx lists", form(Form::Usual, of_nginx), 4),
        ("Caddy, which leads to the canonical path", leads(308, "Server: Caddy\r\nETag: \"dk3x8q5m9z4\"\r\n"), 4),
        ("ModelScope, which leads on by 307", leads(307, "Content-Type: application/octet-stream\r\n"), 4),
        (
            "a gateway of IPFS, which leads on and sends chunks",
            Manners { form: Form::Chunks, ..leads(301, of_gateway) },
            4,
        ),
        (
            "RangeHTTPServer of Python",
            form(Form::Old, "Server: RangeHTTP/0.6 Python/3.13\r\nContent-type: None\r\n"),
            4,
        ),
        (
            "a development server that hangs up",
            form(Form::HangsUp, "X-Powered-By: Express\r\nETag: W/\"900064-19\"\r\n"),
            8,
        ),
        ("a cache that does not know the whole length", form(Form::NoTotal, "Via: 1.1 varnish\r\nAge: 0\r\n"), 5),
    ];
    let names = servers.clone().map(|(name, _, most)| (name, most));
    let came = outcomes(servers.map(|(_, manners, _)| manners));
    for ((name, most), requests) in names.into_iter().zip(came) {
        assert!(matches!(requests, Ok(requests) if requests <= most), "{name}: {requests:?}, at most {most}");
    }
}

#[test]
fn what_else_people_name_is_one_sentence_that_says_what_to_do() {
    let always = |status, lines, content| Manners {
        instead: Some((0..usize::MAX, status, lines, content)),
        ..Manners::default()
    };
    let page = "Content-Type: text/html; charset=utf-8\r\n";
    let xml = "Content-Type: application/xml\r\nServer: AmazonS3\r\n";
    let expired = "<Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>";
    let servers = [
        ("http.server of Python", Manners { whole: true, form: Form::Old, ..Manners::default() }, "range requests"),
        ("Google Drive, which warns of viruses", always(200, page, "Virus scan warning"), "download button"),
        (
            "Dropbox with ?dl=0, and a login of SharePoint",
            Manners { leads: Some(302), ..always(200, page, "<html>") },
            "download button",
        ),
        ("a page of which a part comes", Manners { lines: page, ..Manners::default() }, "download button"),
        ("Google Drive after too many downloads", always(403, page, "Quota exceeded"), "host it from this disk"),
        ("a link that S3 had signed for an hour", always(403, xml, expired), "a new link"),
        ("a link that was cut while it was copied", always(400, xml, "<Error/>"), "Open the link in a browser"),
        (
            "a key that S3 does not have",
            always(404, xml, "<Error><Code>NoSuchKey</Code></Error>"),
            "Copy the link again",
        ),
        (
            "a gated repository of the Hub",
            always(401, "X-Error-Code: GatedRepo\r\n", "Access is restricted"),
            "licence",
        ),
        (
            "a question of Cloudflare whether a person asks",
            always(403, "cf-mitigated: challenge\r\n", "Just a moment"),
            "host it from this disk",
        ),
        ("an archive that is fetched from tape first", always(202, "", ""), "Open the link in a browser"),
        ("a gateway of IPFS that does not find the file", always(504, "", "failed to resolve"), "Try again later"),
        (
            "a server that counts one byte too many",
            Manners { form: Form::OneMore, ..Manners::default() },
            "another server",
        ),
        ("an address that leads to itself", always(302, "Location: /model.gguf\r\n", ""), "in a browser"),
    ];
    let names = servers.clone().map(|(name, _, words)| (name, words));
    let came = outcomes(servers.map(|(_, manners, _)| manners));
    for ((name, words), sentence) in names.into_iter().zip(came) {
        let sentence = sentence.expect_err(name);
        assert!(sentence.contains(words) && sentence.contains("127.0.0.1"), "{name}: {sentence}");
    }
}

#[test]
fn a_connection_that_breaks_costs_no_byte_twice() {
    run(async {
        let server = server(Manners { breaks_after: Some(MIB), ..Manners::default() });
        let source = source(&server, &Traffic::default()).await.unwrap();
        let reads: Vec<FileRange> =
            (0..12).map(|index| FileRange { file: 0, offset: index * MIB / 2, len: MIB / 2 }).collect();
        source.expect(&reads);
        let arrived = Traffic::default();
        for read in reads {
            source.read_counted(read, &arrived).await.unwrap();
        }
        assert_eq!(arrived.bytes(), 6 * MIB, "each byte is counted once");
        assert!(server.sent() <= 6 * MIB + 2 * 65_536, "{} bytes were sent", server.sent());
    });
}

#[test]
fn who_waits_for_a_server_is_told_for_how_long_and_can_leave() {
    run(async {
        let server =
            server(Manners { instead: Some((1..usize::MAX, 429, "Retry-After: 60\r\n", "")), ..Manners::default() });
        let traffic = Traffic::default();
        let source = source(&server, &traffic).await.unwrap();
        source.expect(&reads());
        let network = Network::default();
        let clock = platform(std::env::temp_dir(), &network).clock;
        let reading = read_all(&source);
        let told = async {
            loop {
                match traffic.waits(clock.now()) {
                    Some(seconds) => return seconds,
                    None => tokio::time::sleep(Duration::from_millis(5)).await,
                }
            }
        };
        let (reading, told) = (std::pin::pin!(reading), std::pin::pin!(told));
        let seconds = match futures::future::select(reading, told).await {
            futures::future::Either::Left((ended, _)) => panic!("the wait is not over: {ended:?}"),
            futures::future::Either::Right((seconds, _)) => seconds,
        };
        assert!((55..=67).contains(&seconds), "{seconds} s");
        assert!(
            server.requests() <= 7,
            "{} requests: nobody asks while the server wants to be left alone",
            server.requests()
        );
    });
}

#[test]
fn a_read_that_comes_late_or_twice_gets_its_bytes() {
    run(async {
        let server = server(Manners::default());
        let source = source(&server, &Traffic::default()).await.unwrap();
        let read = |index: u64| FileRange { file: 0, offset: index * MIB, len: MIB };
        source.expect(&(0..6).map(read).collect::<Vec<_>>());
        let file = file();
        for index in [0, 3, 1, 5, 2, 4, 4] {
            let bytes = source.read(read(index)).await.unwrap();
            assert!(bytes == file[(index * MIB) as usize..][..MIB as usize], "read {index}");
        }
    });
}
