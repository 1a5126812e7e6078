//! Encoding and decoding of frames. Every frame passes here.

use potluck_plan::WireType;
use thiserror::Error;

use crate::{Frame, values};

/// Version of the frames; peers of another version are asked to reload.
pub const VERSION: u16 = 28;

/// Largest frame we send or read, in bytes: sealed and with a route it stays under the relay's limit of 16 MiB.
pub const MAX_FRAME: usize = 16 * 1024 * 1024 - 64;

/// Largest head, in bytes: what takes little space in it may take much more in memory. The longest heads are those of
/// plans with thousands of experts, about a megabyte.
const MAX_HEAD: usize = 4 * 1024 * 1024;

const FIXED: usize = 2 + 4;

/// Why a frame cannot be read or sent.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FrameError {
    /// Shorter than its fixed part or its own lengths say.
    #[error("a frame of {0} bytes ended too early")]
    TooShort(usize),
    /// Longer than [`MAX_FRAME`], or its head than 4 MiB.
    #[error("a frame of {0} bytes is longer than frames may be")]
    TooLong(usize),
    /// Another version of Potluck.
    #[error("the other device runs another version of Potluck (frames {theirs}, here {VERSION}); reload both pages")]
    Version {
        /// Theirs.
        theirs: u16,
    },
    /// The head is not one of ours.
    #[error("a frame could not be read")]
    Head,
    /// The tail is not a whole number of values.
    #[error("a frame carries {0} bytes of numbers, which is not a whole number of them")]
    Tail(usize),
}

/// A frame's bytes, without the relay's route and unsealed. They do not name the sender: the session that a frame comes
/// over has proved it.
///
/// ```
/// use potluck_protocol::{Frame, FrameError, decode, encode};
///
/// let frame = Frame::Probe { sent: 12.5, bytes: vec![7; 1000] };
/// let mut bytes = encode(&frame)?;
/// assert!(bytes.ends_with(&[7; 1000]), "numbers and bytes lie behind the head as they are");
/// assert_eq!(decode(&bytes), Ok(frame));
///
/// // A device with another version is told so, whatever the rest of its frame says.
/// bytes[0] += 1;
/// assert!(matches!(decode(&bytes), Err(FrameError::Version { .. })));
/// # Ok::<(), FrameError>(())
/// ```
///
/// # Errors
/// [`FrameError::TooLong`].
pub fn encode(frame: &Frame) -> Result<Vec<u8>, FrameError> {
    let head = postcard::to_stdvec(frame).map_err(|_| FrameError::Head)?;
    if head.len() > MAX_HEAD {
        return Err(FrameError::TooLong(head.len()));
    }
    let mut bytes = Vec::with_capacity(FIXED + head.len() + tail_len(frame));
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&(head.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&head);
    match frame {
        Frame::Forward(forward) => values::push(&mut bytes, &forward.hidden, forward.wire),
        Frame::ExpertCall(call) => values::push(&mut bytes, &call.normed, call.wire),
        Frame::ExpertResult(result) => values::push(&mut bytes, &result.outputs, result.wire),
        Frame::Rows(rows) => values::push(&mut bytes, &rows.values, WireType::F32),
        Frame::Piece { bytes: tail, .. } | Frame::Probe { bytes: tail, .. } => bytes.extend_from_slice(tail),
        _ => {}
    }
    if bytes.len() > MAX_FRAME { Err(FrameError::TooLong(bytes.len())) } else { Ok(bytes) }
}

/// The frame of these bytes.
///
/// # Errors
/// Any [`FrameError`]: wrong, old or damaged frames never cause a panic, and never more memory to be allocated than
/// their values take: four bytes each, so up to four times the bytes of a tail of `int8`.
pub fn decode(bytes: &[u8]) -> Result<Frame, FrameError> {
    if bytes.len() > MAX_FRAME {
        return Err(FrameError::TooLong(bytes.len()));
    }
    let short = || FrameError::TooShort(bytes.len());
    let (version, rest) = bytes.split_first_chunk::<2>().ok_or_else(short)?;
    let theirs = u16::from_le_bytes(*version);
    if theirs != VERSION {
        return Err(FrameError::Version { theirs });
    }
    let (len, rest) = rest.split_first_chunk::<4>().ok_or_else(short)?;
    let len = u32::from_le_bytes(*len) as usize;
    let (head, tail) = rest.split_at_checked(len).ok_or_else(short)?;
    if len > MAX_HEAD {
        return Err(FrameError::TooLong(len));
    }
    let mut frame: Frame = postcard::from_bytes(head).map_err(|_| FrameError::Head)?;
    match &mut frame {
        Frame::Forward(forward) => forward.hidden = values::read(tail, forward.wire)?,
        Frame::ExpertCall(call) => call.normed = values::read(tail, call.wire)?,
        Frame::ExpertResult(result) => result.outputs = values::read(tail, result.wire)?,
        Frame::Rows(rows) => rows.values = values::read(tail, WireType::F32)?,
        Frame::Piece { bytes, .. } | Frame::Probe { bytes, .. } => *bytes = tail.to_vec(),
        _ if tail.is_empty() => {}
        _ => return Err(FrameError::Tail(tail.len())),
    }
    Ok(frame)
}

fn tail_len(frame: &Frame) -> usize {
    match frame {
        Frame::Forward(forward) => forward.hidden.len() * 4,
        Frame::ExpertCall(call) => call.normed.len() * 4,
        Frame::ExpertResult(result) => result.outputs.len() * 4,
        Frame::Rows(rows) => rows.values.len() * 4,
        Frame::Piece { bytes, .. } | Frame::Probe { bytes, .. } => bytes.len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]

    use potluck_plan::{
        BlockIndex, Channel, ConversationId, ExpertId, KernelClass, LmHeadRequest, LmHeadTokens, LogitBias,
        LogitsRequest, PeerId, PlanEpoch, Position, StageId,
    };
    use proptest::prelude::*;

    use super::*;
    use crate::{
        AnswerPart, AttemptId, Checkers, ExpertCall, ExpertCancel, ExpertFailure, ExpertHint, ExpertResult, Forward,
        Hold, Leaving, Lineage, PassId, RequestId, Residency, ResidencyChange, RowHashes, RowRange, Rows, RowsRequest,
        Signal, StageHashes,
    };

    fn forward(wire: WireType, hidden: Vec<f32>) -> Frame {
        Frame::Forward(Forward {
            epoch: PlanEpoch(4),
            stage: StageId(1),
            pass: PassId(7),
            live: vec![ConversationId(9)],
            conversation: ConversationId(9),
            base: Position(100),
            class: KernelClass::Decode,
            count: 1,
            tokens: vec![17],
            further_steps: 0,
            sampling: None,
            lm_head: Some(LmHeadRequest { tokens: LmHeadTokens::Last, logits: LogitsRequest::Top(1) }),
            bias: LogitBias::default(),
            allowed: Vec::new(),
            stage_millis: vec![1.5],
            wire,
            hidden,
        })
    }

    #[test]
    fn activations_keep_every_bit_in_f32() {
        let frame = forward(WireType::F32, vec![1.0, -0.0, f32::MIN_POSITIVE, 3.0e38]);
        assert_eq!(decode(&encode(&frame).unwrap()).unwrap(), frame);
    }

    #[test]
    fn a_probe_keeps_its_bytes() {
        let frame = Frame::Probe { sent: 5.0, bytes: vec![7; 1000] };
        assert_eq!(decode(&encode(&frame).unwrap()).unwrap(), frame);
    }

    #[test]
    fn f16_halves_the_bytes() {
        let long = vec![0.5; 512];
        let (full, half) = (forward(WireType::F32, long.clone()), forward(WireType::F16, long));
        assert_eq!(encode(&full).unwrap().len() - encode(&half).unwrap().len(), 512 * 2);
    }

    #[test]
    fn another_version_is_asked_to_reload() {
        let mut bytes = encode(&Frame::Bye).unwrap();
        bytes[0] = 99;
        let error = decode(&bytes).unwrap_err();
        assert_eq!(error, FrameError::Version { theirs: 99 });
        assert!(error.to_string().contains("reload"), "the sentence must say what to do: {error}");
    }

    #[test]
    fn a_frame_names_nobody() {
        assert_eq!(encode(&Frame::Bye).unwrap(), [28, 0, 1, 0, 0, 0, 7], "version, length of the head, head");
    }

    #[test]
    fn a_host_says_what_becomes_of_its_room() {
        for (leaving, number) in [(Leaving::ForGood, 0), (Leaving::ForNow, 1)] {
            let bytes = encode(&Frame::Closed(leaving)).unwrap();
            assert_eq!(bytes[6..], [36, number], "kind, what becomes of it");
            assert_eq!(decode(&bytes).unwrap(), Frame::Closed(leaving));
        }
        let mut bytes = encode(&Frame::Closed(Leaving::ForNow)).unwrap();
        bytes[7] = 2;
        assert_eq!(decode(&bytes), Err(FrameError::Head), "a leave that nobody knows");
    }

    #[test]
    fn text_of_an_answer_says_what_it_is_for() {
        for (channel, number) in [(Channel::Reasoning, 0), (Channel::Answer, 1), (Channel::ToolCall, 2)] {
            let (delta, tokens, logprobs) = ("hm".into(), vec![300], Vec::new());
            let text = AnswerPart::Text { index: 3, channel, delta, tokens, logprobs };
            let frame = Frame::Answer(RequestId(5), text);
            let bytes = encode(&frame).unwrap();
            let of_text = [5, 2, 3, number, 2, b'h', b'm', 1, 0xac, 2, 0];
            assert_eq!(bytes[7..], of_text, "request, kind of part, index, channel, text, tokens, log-probabilities");
            assert_eq!(decode(&bytes).unwrap(), frame);
        }
    }

    #[test]
    fn a_bias_that_breaks_its_limits_is_no_frame() {
        let Frame::Forward(plain) = forward(WireType::F32, vec![1.0]) else { unreachable!() };
        let biased = Frame::Forward(Forward { bias: LogitBias::new([(3, -100.0), (300, 1.5)]).unwrap(), ..plain });
        let bytes = encode(&biased).unwrap();
        assert_eq!(decode(&bytes).unwrap(), biased);
        let pairs = [&[2u8, 3][..], &(-100.0f32).to_le_bytes(), &[0xac, 2], &1.5f32.to_le_bytes()].concat();
        let at = bytes.windows(pairs.len()).position(|window| window == pairs).expect("number, tokens and biases");
        let mut twice = bytes.clone();
        // The second token becomes 3 in two bytes.
        twice[at + 6..at + 8].copy_from_slice(&[0x83, 0]);
        assert_eq!(decode(&twice), Err(FrameError::Head), "a token is named twice");
        let mut large = bytes;
        large[at + 2..at + 6].copy_from_slice(&f32::NAN.to_le_bytes());
        assert_eq!(decode(&large), Err(FrameError::Head), "no number");
    }

    fn call() -> Frame {
        Frame::ExpertCall(ExpertCall {
            epoch: PlanEpoch(4),
            call: 300,
            block: BlockIndex(2),
            class: KernelClass::Decode,
            rows: vec![vec![ExpertId(5), ExpertId(127)]],
            weights: Vec::new(),
            wire: WireType::F32,
            normed: vec![1.0],
        })
    }

    fn result() -> Frame {
        let (epoch, call, wire) = (PlanEpoch(4), 300, WireType::F16);
        Frame::ExpertResult(ExpertResult { epoch, call, millis: 0.5, failed: None, wire, outputs: vec![1.0, -2.0] })
    }

    /// What the bytes of expert frames are, field by field.
    #[test]
    fn expert_frames_are_compact() {
        let head = |frame: &Frame| encode(frame).unwrap()[6..].to_vec();
        let of_call = [17, 4, 0xac, 2, 2, 0, 1, 2, 5, 127, 0, 0, 0, 0, 0x80, 0x3f];
        assert_eq!(head(&call()), of_call, "kind, epoch, call, block, class, rows, no weights, wire; then the vector");
        let of_result = [18, 4, 0xac, 2, 0, 0, 0, 0, 0, 0, 0xe0, 0x3f, 0, 1, 0, 0x3c, 0, 0xc0];
        assert_eq!(head(&result()), of_result, "kind, epoch, call, milliseconds, no failure, wire; then the vectors");
        let cancel = Frame::ExpertCancel(ExpertCancel { epoch: PlanEpoch(4), call: 300 });
        assert_eq!(head(&cancel), [30, 4, 0xac, 2]);
        let experts = vec![(BlockIndex(2), ExpertId(127)), (BlockIndex(300), ExpertId(1))];
        let hint = Frame::ExpertHint(ExpertHint { epoch: PlanEpoch(4), experts });
        assert_eq!(head(&hint), [34, 4, 2, 2, 127, 0xac, 2, 1], "kind, epoch, number, block and expert of each");
    }

    #[test]
    fn expert_frames_survive_the_way() {
        let (epoch, version, block, expert) = (PlanEpoch(4), 7, BlockIndex(2), ExpertId(5));
        let changes =
            vec![ResidencyChange::Add { block, expert, peer: PeerId([3; 16]) }, ResidencyChange::Drop(PeerId([4; 16]))];
        let failed = Some(ExpertFailure::NotHere);
        let (call_id, wire) = (1, WireType::F32);
        for frame in [
            call(),
            result(),
            Frame::ExpertResult(ExpertResult { epoch, call: call_id, millis: 0.0, failed, wire, outputs: Vec::new() }),
            Frame::Residency(Residency { epoch, version, changes }),
            Frame::Hold(Hold { epoch, version, experts: vec![(block, expert)] }),
            Frame::Checkers(Checkers { secret: u64::MAX, lineages: vec![(PeerId([3; 16]), Lineage(300))] }),
        ] {
            assert_eq!(decode(&encode(&frame).unwrap()).unwrap(), frame);
        }
    }

    #[test]
    fn what_stages_show_survives_the_way() {
        let (epoch, stage, conversation) = (PlanEpoch(4), StageId(1), ConversationId(9));
        let range = RowRange { epoch, stage, conversation, through: PassId(7), positions: 65 };
        let hashes = Some(StageHashes { inputs: vec![[1; 32], [2; 32]], outputs: Vec::new() });
        let request = RowsRequest { range, page: 1 };
        assert_eq!((range.pages(), range.page(1)), (2, 64..65));
        for frame in [
            Frame::CommitRows(range),
            Frame::RowHashes(RowHashes { range, hashes }),
            Frame::RowHashes(RowHashes { range, hashes: None }),
            Frame::RowsRequest(request),
            Frame::Rows(Rows { request, values: vec![-0.0, f32::MIN_POSITIVE] }),
        ] {
            assert_eq!(decode(&encode(&frame).unwrap()).unwrap(), frame);
        }
        assert_eq!(encode(&Frame::CommitRows(range)).unwrap()[6..], [38, 4, 1, 9, 7, 65], "kind, then the range");
    }

    #[test]
    fn words_about_a_connection_survive_the_way() {
        let (id, description) = (AttemptId(7), "v=0".to_owned());
        for signal in [
            Signal::Allowed(true),
            Signal::Offer(id, description.clone()),
            Signal::Answer(id, description),
            Signal::Declined(id),
        ] {
            let frame = Frame::Signal(signal);
            assert_eq!(decode(&encode(&frame).unwrap()).unwrap(), frame);
        }
        assert_eq!(encode(&Frame::Signal(Signal::Declined(id))).unwrap()[6..], [42, 3, 7], "kind, then the signal");
    }

    #[test]
    fn an_unknown_wire_type_or_failure_is_refused() {
        let mut bytes = encode(&call()).unwrap();
        bytes[16] = 9;
        assert_eq!(decode(&bytes), Err(FrameError::Head), "a wire type that nobody knows");
        let mut bytes = encode(&result()).unwrap();
        bytes[18..20].copy_from_slice(&[1, 200]);
        assert_eq!(decode(&bytes), Err(FrameError::Head), "a failure that nobody knows");
    }

    #[test]
    fn a_head_that_would_take_much_more_memory_is_refused() {
        let mut bytes = encode(&Frame::Bye).unwrap();
        bytes[2..6].copy_from_slice(&(MAX_HEAD as u32 + 1).to_le_bytes());
        bytes.resize(FIXED + MAX_HEAD + 1, 0);
        assert_eq!(decode(&bytes), Err(FrameError::TooLong(MAX_HEAD + 1)));
    }

    #[test]
    fn an_unexpected_tail_is_refused() {
        let mut bytes = encode(&Frame::Bye).unwrap();
        bytes.push(0);
        assert_eq!(decode(&bytes), Err(FrameError::Tail(1)));
    }

    proptest! {
        #[test]
        fn damaged_frames_never_panic(hidden in prop::collection::vec(-1e3f32..1e3, 0..40), at in 0usize..400, to in any::<u8>(), cut in 0usize..400) {
            let mut bytes = encode(&forward(WireType::F32, hidden)).unwrap();
            let len = bytes.len();
            bytes[at % len] = to;
            let _ = decode(&bytes);
            let _ = decode(&bytes[..cut % len]);
        }

        #[test]
        fn damaged_expert_frames_never_panic(at in 6usize..64, to in any::<u8>(), cut in 0usize..64) {
            for frame in [call(), result()] {
                let mut bytes = encode(&frame).unwrap();
                let len = bytes.len();
                bytes[6 + at % (len - 6)] = to;
                let _ = decode(&bytes);
                let _ = decode(&bytes[..cut % len]);
            }
        }

        #[test]
        fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes);
        }
    }
}
