//! What a stranger sends to the relay: `Range` headers, control messages, messages of several parts.

use potluck_gguf::WriteError;
use potluck_relay::models::range::{RangeRequest, parse};
use potluck_relay_api::{Binary, DoorCertificate, EntryProof, Request, Route, Term, join_parts, split_parts};

/// Bytes of the file that ranges are cut from.
const FILE_BYTES: u64 = 1_000;

/// Any `Range` header names parts of the file, all of it, or nothing.
///
/// # Panics
/// If an answer would be empty, longer than the file, or would have bytes twice.
pub fn range(data: &[u8]) {
    let Ok(header) = std::str::from_utf8(data) else { return };
    let parts = match parse(Some(header), FILE_BYTES) {
        RangeRequest::Whole | RangeRequest::Unsatisfiable => return,
        RangeRequest::Part(part) => vec![part],
        RangeRequest::Parts(parts) => parts,
    };
    assert!(parts.iter().all(|part| part.start < part.end && part.end <= FILE_BYTES), "{header:?} asks for {parts:?}");
    assert!(parts.windows(2).all(|two| two[0].end < two[1].start), "{header:?} asks twice in {parts:?}");
}

/// Any text is a request or an error, and a request survives another trip; any binary message has parts that lie in it, or
/// none.
///
/// # Panics
/// If that does not hold.
pub fn relay_messages(data: &[u8]) {
    if let Ok(request) = serde_json::from_slice::<Request>(data) {
        let again = serde_json::to_string(&request).map(|text| serde_json::from_str::<Request>(&text).ok());
        assert_eq!(again.ok().flatten(), Some(request), "a request changes on the way");
    }
    let Ok(parts) = split_parts(data) else { return };
    assert!(
        parts.iter().map(|(_, frame)| frame.len()).sum::<usize>() < data.len(),
        "parts are longer than the message"
    );
    let again = join_parts(parts);
    assert_eq!(Route::split(&again), Some((Route::PARTS, data)), "the parts are another message");
}

pub fn range_seeds() -> Result<Vec<Vec<u8>>, WriteError> {
    let headers =
        ["bytes=0-99", "bytes=500-", "bytes=-1", "bytes=0-,0-", "bytes= 5 - 6", "bytes=18446744073709551615-"];
    Ok(headers.iter().map(|header| header.as_bytes().to_vec()).collect())
}

pub fn message_seeds() -> Result<Vec<Vec<u8>>, WriteError> {
    let owner = EntryProof::Owner {
        key: Binary([1; 32]),
        join_key: Binary([2; 32]),
        title: "Kitchen".into(),
        visible: true,
        term: Term(3),
        signature: Binary([3; 64]),
    };
    let certificate = DoorCertificate { terms: Binary([1; 11]), door: Binary([2; 32]), signature: Binary([3; 64]) };
    let requests = [
        Request::Enter { proof: owner },
        Request::Enter { proof: EntryProof::Link { key: Binary([2; 32]), signature: Binary([3; 64]) } },
        Request::Enter { proof: EntryProof::Invite { certificate, signature: Binary([3; 64]) } },
        Request::Enter { proof: EntryProof::Visitor },
        Request::Ping { nonce: 7 },
        Request::Listing { title: "Kitchen".into(), visible: false },
        Request::Revoked { invites: vec![7] },
        Request::TakenBack { invites: vec![7] },
        Request::Links {
            join_key: Binary([2; 32]),
            for_returning: vec![Binary([1; 32])],
            for_nobody: vec![Binary([4; 32])],
        },
        Request::LetIn { route: Route(7) },
        Request::PutOut { route: Route(7) },
        Request::Mute { route: Route(7) },
    ];
    let mut seeds: Vec<Vec<u8>> = requests.iter().filter_map(|request| serde_json::to_vec(request).ok()).collect();
    seeds.push(join_parts([(Route(1), b"one".as_slice()), (Route(2), b""), (Route(1), b"two")])[4..].to_vec());
    Ok(seeds)
}
