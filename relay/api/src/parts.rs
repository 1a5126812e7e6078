//! Several messages in one: a call of experts goes to many holders at once, and each WebSocket message has its price.

use crate::{BadFrame, Route};

/// Most parts in one message: as many as a room has members.
pub const MAX_PARTS: usize = 64;

/// Bytes in front of each part: the receiver's route and the part's length, both big-endian.
const HEAD_BYTES: usize = 8;

/// Writes [`Route::PARTS`] and then each part. At most [`MAX_PARTS`] parts; the relay forwards each as if it had come
/// alone, in their order.
pub fn join_parts<'a>(parts: impl IntoIterator<Item = (Route, &'a [u8])>) -> Vec<u8> {
    let mut message = Route::PARTS.0.to_be_bytes().to_vec();
    for (route, frame) in parts {
        message.extend_from_slice(&route.0.to_be_bytes());
        message.extend_from_slice(&(frame.len() as u32).to_be_bytes());
        message.extend_from_slice(frame);
    }
    message
}

/// The parts behind [`Route::PARTS`], in their order.
///
/// # Errors
/// No part, more than [`MAX_PARTS`], or one that is cut short or has no receiver. Then none of them is forwarded.
pub fn split_parts(mut bytes: &[u8]) -> Result<Vec<(Route, &[u8])>, BadFrame> {
    let mut parts = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<HEAD_BYTES>() {
        let [a, b, c, d, length @ ..] = *head;
        let route = Route(u32::from_be_bytes([a, b, c, d]));
        let (frame, rest) = rest.split_at_checked(u32::from_be_bytes(length) as usize).ok_or(BadFrame::Parts)?;
        if route == Route::RESERVED || route == Route::PARTS || parts.len() == MAX_PARTS {
            return Err(BadFrame::Parts);
        }
        parts.push((route, frame));
        bytes = rest;
    }
    if bytes.is_empty() && !parts.is_empty() { Ok(parts) } else { Err(BadFrame::Parts) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_keep_their_bytes() {
        let message = join_parts([(Route(258), b"one".as_slice()), (Route(7), b"")]);
        assert_eq!(message[..15], *b"\xff\xff\xff\xfe\0\0\x01\x02\0\0\0\x03one");
        assert_eq!(split_parts(&message[4..]), Ok(vec![(Route(258), b"one".as_slice()), (Route(7), b"")]));
    }

    #[test]
    fn a_message_that_is_cut_anywhere_has_no_parts() {
        let message = join_parts([(Route(258), b"one".as_slice()), (Route(7), b"two")]);
        let whole_first = 4 + HEAD_BYTES + 3;
        for end in (4..message.len()).filter(|end| *end != whole_first) {
            assert_eq!(split_parts(&message[4..end]), Err(BadFrame::Parts), "cut after {end} bytes");
        }
    }

    #[test]
    fn a_part_names_one_receiver_and_there_are_not_too_many() {
        let nested = join_parts([(Route::PARTS, b"x".as_slice())]);
        assert_eq!(split_parts(&nested[4..]), Err(BadFrame::Parts));
        let many = join_parts((0..=MAX_PARTS as u32).map(|route| (Route(route + 1), b"".as_slice())));
        assert_eq!(split_parts(&many[4..]), Err(BadFrame::Parts));
        assert_eq!(split_parts(&many[4..many.len() - HEAD_BYTES]).map(|parts| parts.len()), Ok(MAX_PARTS));
        assert_eq!(split_parts(&[]), Err(BadFrame::Parts));
    }
}
