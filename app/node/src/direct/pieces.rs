//! Messages in pieces. A browser sends a long message of a data channel in bursts of four packets, and waits a round trip after each;
//! messages of four packets do not wait for one another.

use crate::platform::SocketMessage;

/// Bytes of a piece: four packets.
const PIECE: usize = 4_600;
/// Bytes of a message at most: the longest frame.
const MAX_MESSAGE: usize = 16 << 20;
/// Bytes of a control message at most: the longest, a ping, has a little more than two kilobytes.
const MAX_TEXT: usize = 4 << 10;

/// The first byte of a piece.
const MORE: u8 = 0;
const LAST_OF_FRAME: u8 = 1;
const LAST_OF_TEXT: u8 = 2;

/// The pieces of a message, in order.
pub fn cut(message: &SocketMessage) -> Vec<Vec<u8>> {
    let (bytes, last) = match message {
        SocketMessage::Binary(bytes) => (bytes.as_slice(), LAST_OF_FRAME),
        SocketMessage::Text(text) => (text.as_bytes(), LAST_OF_TEXT),
    };
    let piece = |kind: u8, bytes: &[u8]| [&[kind], bytes].concat();
    let (head, tail) = bytes.split_at(bytes.len().saturating_sub(1) / (PIECE - 1) * (PIECE - 1));
    head.chunks(PIECE - 1).map(|bytes| piece(MORE, bytes)).chain([piece(last, tail)]).collect()
}

/// Puts pieces together again.
#[derive(Default)]
pub struct Assembler(Vec<u8>);

/// The other side sends what is no piece, or too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadPiece;

impl Assembler {
    /// The message that ends with this piece, if one does.
    ///
    /// # Errors
    /// No correct device sends that.
    pub fn push(&mut self, piece: &[u8]) -> Result<Option<SocketMessage>, BadPiece> {
        let (kind, bytes) = piece.split_first().ok_or(BadPiece)?;
        if self.0.len() + bytes.len() > MAX_MESSAGE || (bytes.is_empty() && *kind == MORE) {
            return Err(BadPiece);
        }
        self.0.extend_from_slice(bytes);
        match *kind {
            MORE => Ok(None),
            LAST_OF_FRAME => Ok(Some(SocketMessage::Binary(std::mem::take(&mut self.0)))),
            LAST_OF_TEXT => {
                let bytes =
                    Some(std::mem::take(&mut self.0)).filter(|bytes| bytes.len() <= MAX_TEXT).ok_or(BadPiece)?;
                let text = String::from_utf8(bytes).map_err(|_| BadPiece)?;
                Ok(Some(SocketMessage::Text(text)))
            }
            _ => Err(BadPiece),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_comes_together_again_and_no_piece_is_longer_than_four_packets() {
        let mut assembler = Assembler::default();
        for len in [0, 1, MAX_TEXT, PIECE - 2, PIECE - 1, PIECE, 2 * PIECE - 2, 2 * PIECE - 1, 100_000] {
            let text = (len <= MAX_TEXT).then(|| SocketMessage::Text("a".repeat(len)));
            for message in [SocketMessage::Binary(vec![7; len])].into_iter().chain(text) {
                let pieces = cut(&message);
                assert!(pieces.iter().all(|piece| piece.len() <= PIECE), "{len}");
                let mut come: Vec<_> = pieces.iter().map(|piece| assembler.push(piece)).collect();
                assert_eq!(come.pop(), Some(Ok(Some(message))), "{len}");
                assert!(come.iter().all(|come| *come == Ok(None)), "{len}");
            }
        }
    }

    #[test]
    fn what_is_no_piece_is_refused() {
        for piece in [&[][..], &[MORE], &[9, 1], &[LAST_OF_TEXT, 0xff]] {
            assert_eq!(Assembler::default().push(piece), Err(BadPiece), "{piece:?}");
        }
        let mut assembler = Assembler::default();
        let long = [&[MORE][..], &vec![0; MAX_MESSAGE / 2]].concat();
        assert!(assembler.push(&long).is_ok() && assembler.push(&long).is_ok());
        assert_eq!(assembler.push(&[MORE, 1]), Err(BadPiece), "endless");
        let text = [&[LAST_OF_TEXT][..], &[b'a'; MAX_TEXT + 1]].concat();
        assert_eq!(Assembler::default().push(&text), Err(BadPiece), "no control message is as long");
    }
}
