//! Joins what one event causes into as few WebSocket messages as may be: the calls of a block's experts go to many devices at once,
//! and each message has its price, here and at the relay.

use potluck_relay_api::{MAX_PARTS, Route, join_parts};

/// Longer messages go alone: copying them would cost more than a message.
const MAX_PART_BYTES: usize = 64 << 10;
/// Most bytes in one message of parts, so that the relay forwards the first ones while the last are on their way.
const MAX_BYTES: usize = 256 << 10;

/// The messages to send for these, each of which begins with its route; their order stays.
pub(super) fn join(messages: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let (mut joined, mut together, mut bytes) = (Vec::new(), Vec::new(), 0);
    for message in messages {
        let is_long = message.len() > MAX_PART_BYTES;
        if is_long || together.len() == MAX_PARTS || bytes + message.len() > MAX_BYTES {
            joined.extend(join_all(std::mem::take(&mut together)));
            bytes = 0;
        }
        if is_long {
            joined.push(message);
        } else {
            bytes += message.len();
            together.push(message);
        }
    }
    joined.extend(join_all(together));
    joined
}

fn join_all(mut messages: Vec<Vec<u8>>) -> Option<Vec<u8>> {
    match messages.len() {
        0 | 1 => messages.pop(),
        _ => Some(join_parts(messages.iter().filter_map(|message| Route::split(message)))),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use potluck_relay_api::split_parts;

    use super::*;

    /// The routes and lengths of frames, and those of the parts of each message that is sent for them.
    fn joined(frames: impl IntoIterator<Item = (u32, usize)>) -> Vec<Vec<(u32, usize)>> {
        let messages = frames.into_iter().map(|(route, len)| Route(route).prepend(&vec![0; len])).collect();
        let parts = |message: &Vec<u8>| match Route::split(message).unwrap() {
            (Route::PARTS, body) => {
                split_parts(body).unwrap().iter().map(|(route, frame)| (route.0, frame.len())).collect()
            }
            (route, frame) => vec![(route.0, frame.len())],
        };
        join(messages).iter().map(parts).collect()
    }

    #[test]
    fn messages_become_one() {
        assert_eq!(joined([(1, 10), (2, 10), (3, 10)]), [[(1, 10), (2, 10), (3, 10)]]);
        assert_eq!(joined([(1, 10)]), [[(1, 10)]]);
        assert_eq!(joined([]), [[]; 0]);
    }

    #[test]
    fn long_messages_go_alone_and_nothing_overtakes() {
        let joined = joined([(1, 10), (2, 10), (1, MAX_PART_BYTES), (1, 10)]);
        assert_eq!(joined, [vec![(1, 10), (2, 10)], vec![(1, MAX_PART_BYTES)], vec![(1, 10)]]);
    }

    #[test]
    fn a_message_has_no_more_parts_and_bytes_than_allowed() {
        let many = (0..MAX_PARTS + 1).map(|_| (1, 1));
        let counts: Vec<usize> = joined(many.chain([(2, MAX_PART_BYTES - 4); 5])).iter().map(Vec::len).collect();
        assert_eq!(counts, [MAX_PARTS, 1 + 3, 2]);
    }
}
