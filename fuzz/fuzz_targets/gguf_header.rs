//! Any bytes are a header or an error, and in pieces they are the same header or error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use potluck_gguf::{GgufError, Header, HeaderParser, Progress};

fuzz_target!(|data: &[u8]| {
    let Some((&piece, file)) = data.split_first() else {
        return;
    };
    let whole = parse(file, file.len().max(1));
    let pieces = parse(file, usize::from(piece) + 1);
    // Compared as text: a header may hold "not a number", which does not equal itself.
    assert_eq!(format!("{whole:?}"), format!("{pieces:?}"));
    if let Ok(header) = whole {
        header.check_length(file.len() as u64).expect("the parser checked the length");
        let bytes: u64 = header.tensors.iter().map(|tensor| tensor.bytes).sum();
        assert!(bytes <= file.len() as u64, "tensors share no bytes");
    }
});

fn parse(file: &[u8], piece: usize) -> Result<Header, GgufError> {
    let mut parser = HeaderParser::with_length(file.len() as u64);
    for piece in file.chunks(piece) {
        if let Progress::Done(header) = parser.push(piece)? {
            return Ok(*header);
        }
    }
    match parser.push(&[])? {
        Progress::Done(header) => Ok(*header),
        Progress::NeedMore { .. } => unreachable!("a parser that knows the length says that the file is truncated"),
    }
}
