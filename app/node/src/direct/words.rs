//! What two tabs tell each other about the way between them: words on the channel, marks through the relay.

use serde::{Deserialize, Serialize};

/// A number that nobody can guess.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nonce(pub [u8; 16]);

/// A text message on the channel; binary ones are frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Word {
    /// The first one: what [`Mark::Proof`] says as well.
    Hello(Nonce),
    /// Who says this reads the channel, and knows whose it is.
    Ready,
    /// The next frames come through the relay.
    ByRelay,
    /// So many bytes of frames were taken from the channel since it is there.
    Taken(u64),
}

impl Word {
    /// As it travels.
    pub fn write(self) -> String {
        // Numbers only: they can always be written as JSON.
        serde_json::to_string(&self).unwrap_or_default()
    }

    /// `None` if it is none.
    pub fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

/// A message through the relay from one member to another that is no frame. Only tabs of one browser with one build send
/// them to each other, so nobody else has to know them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Who holds the sender's route also holds the end of the channel that said [`Word::Hello`] with this number.
    Proof(Nonce),
    /// The next frames come on the channel. What comes through the relay meanwhile, to everyone, comes there as well.
    Directly,
    /// What comes through the relay counts again.
    ByRelay,
}

/// Where a frame has its version; no version is this one.
const NO_VERSION: [u8; 2] = [0xff; 2];

impl Mark {
    /// As it travels, without the route.
    pub fn write(self) -> Vec<u8> {
        let mut bytes = NO_VERSION.to_vec();
        match self {
            Self::Proof(Nonce(nonce)) => {
                bytes.push(0);
                bytes.extend_from_slice(&nonce);
            }
            Self::Directly => bytes.push(1),
            Self::ByRelay => bytes.push(2),
        }
        bytes
    }

    /// `None` if it is a frame, or nothing that this build knows.
    pub fn read(message: &[u8]) -> Option<Self> {
        let (kind, rest) = message.strip_prefix(&NO_VERSION)?.split_first()?;
        match (kind, rest) {
            (0, nonce) => Some(Self::Proof(Nonce(nonce.try_into().ok()?))),
            (1, []) => Some(Self::Directly),
            (2, []) => Some(Self::ByRelay),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use potluck_plan::PeerId;
    use potluck_protocol::{Frame, encode};

    use super::*;

    #[test]
    fn words_and_marks_come_back_as_they_were() {
        let nonce = Nonce([7; 16]);
        for word in [Word::Hello(nonce), Word::Ready, Word::ByRelay, Word::Taken(u64::MAX)] {
            assert_eq!(Word::read(&word.write()), Some(word));
        }
        for mark in [Mark::Proof(nonce), Mark::Directly, Mark::ByRelay] {
            assert_eq!(Mark::read(&mark.write()), Some(mark));
        }
    }

    #[test]
    fn no_frame_and_no_rubbish_is_taken_for_a_mark() {
        let frame = encode(PeerId([0xff; 16]), &Frame::Bye).unwrap();
        for other in [frame.as_slice(), &[], &[0xff], &[0xff, 0xff], &[0xff, 0xff, 0, 1], &[0xff, 0xff, 1, 0]] {
            assert_eq!(Mark::read(other), None, "{other:?}");
        }
        assert_eq!(Word::read("hello"), None);
    }
}
