//! What is fuzzed: everything that reads bytes which a stranger wrote.

use potluck_gguf::synthetic::{Architecture, Synthetic};
use potluck_gguf::{GgufError, Header, HeaderParser, Progress, TensorType, WriteError, dequantize, join};
use potluck_model::{ChatTemplate, Message, ModelSpec, Profile, RenderOptions, SpecialText, StopTokens, Tokenizer};

/// A fuzz target with the inputs that mutations start from.
pub struct Target {
    /// Its name, also that of the libFuzzer binary.
    pub name: &'static str,
    /// Takes any bytes; panics if it finds a fault.
    pub run: fn(&[u8]),
    /// Small valid inputs.
    pub seeds: fn() -> Result<Vec<Vec<u8>>, WriteError>,
}

/// All targets.
pub const TARGETS: [Target; 4] = [
    Target { name: "gguf_header", run: gguf_header, seeds: header_seeds },
    Target { name: "gguf_dequantize", run: dequantize_blocks, seeds: block_seeds },
    Target { name: "frame", run: frame, seeds: frame_seeds },
    Target { name: "model", run: model, seeds: model_seeds },
];

/// Any bytes are a header or an error, and in pieces they are the same header or error. The first byte is the size of
/// the pieces, less one.
///
/// # Panics
/// If that does not hold, or tensors overlap.
pub fn gguf_header(data: &[u8]) {
    let Some((&piece, file)) = data.split_first() else { return };
    let whole = parse(file, file.len().max(1));
    let pieces = parse(file, usize::from(piece) + 1);
    // Compared as text: a header may hold "not a number", which does not equal itself.
    assert_eq!(format!("{whole:?}"), format!("{pieces:?}"), "pieces of {} bytes change the header", piece);
    if let Ok(header) = whole {
        assert_eq!(header.check_length(file.len() as u64), Ok(()), "the parser has checked the length");
        let bytes: u64 = header.tensors.iter().map(|tensor| tensor.bytes).sum();
        assert!(bytes <= file.len() as u64, "tensors share no bytes");
    }
}

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

/// Blocks of any type and any bytes become floats. The first byte chooses the type.
pub fn dequantize_blocks(data: &[u8]) {
    let Some((&kind, bytes)) = data.split_first() else { return };
    let kind = TensorType::ALL[usize::from(kind) % TensorType::ALL.len()];
    let blocks = bytes.len() / kind.block_bytes() as usize;
    let mut out = vec![0.0; blocks * kind.block_elements() as usize];
    // Types without weights are errors, which is fine too.
    let _ = dequantize(kind, &bytes[..blocks * kind.block_bytes() as usize], &mut out);
}

/// Any bytes are a frame or an error, and a frame survives another trip.
///
/// # Panics
/// If that does not hold.
pub fn frame(data: &[u8]) {
    let Ok(frame) = potluck_protocol::decode(data) else { return };
    let again = potluck_protocol::encode(&frame).and_then(|bytes| potluck_protocol::decode(&bytes));
    // Compared as text, because numbers may be NaN.
    assert_eq!(format!("{again:?}"), format!("{:?}", Ok::<_, potluck_protocol::FrameError>(frame)));
}

/// A header that parses is a model, a tokenizer and a chat template, or an error each.
pub fn model(data: &[u8]) {
    let Ok(file) = parse(data, data.len().max(1)).and_then(|header| join([header])) else { return };
    Profile::from_gguf(&file);
    let _ = ModelSpec::from_gguf(&file);
    let Ok(tokenizer) = Tokenizer::from_metadata(&file.metadata) else { return };
    let ids = tokenizer.encode("The soup, 3 spoons <|im_end|>\n", SpecialText::Parse);
    tokenizer.decode(&ids);
    let _ = StopTokens::from_metadata(&file.metadata, &tokenizer);
    if let Ok(template) = ChatTemplate::from_metadata(&file.metadata, &tokenizer) {
        let _ = template.encode(&tokenizer, &[Message::new("user", "Hello")], &RenderOptions::default());
    }
}

/// One block, as narrow as a file can be.
fn small(architecture: Architecture) -> Synthetic {
    let (hidden, heads, head_dim, intermediate) = (32, 1, 32, 32);
    let (blocks, kv_heads, experts, used, vocabulary) = (1, 1, 2, 1, 300);
    let shape = Synthetic { hidden, heads, head_dim, intermediate, ..Synthetic::default() };
    Synthetic { architecture, blocks, kv_heads, experts, used, vocabulary, ..shape }
}

fn model_seeds() -> Result<Vec<Vec<u8>>, WriteError> {
    [Architecture::Llama, Architecture::Qwen3Moe].map(small).iter().map(Synthetic::to_bytes).collect()
}

fn header_seeds() -> Result<Vec<Vec<u8>>, WriteError> {
    let files = model_seeds()?.into_iter();
    Ok(files.map(|file| [&[99], &file[..]].concat()).collect())
}

fn block_seeds() -> Result<Vec<Vec<u8>>, WriteError> {
    let seed = |(index, kind): (usize, &TensorType)| {
        let mut seed = vec![0; 1 + 2 * kind.block_bytes() as usize];
        seed[0] = index as u8;
        seed
    };
    Ok(TensorType::ALL.iter().enumerate().map(seed).collect())
}

/// A head of zeros is a frame for most kinds: no text, no list, first variant. Postcard writes the kind first.
fn frame_seeds() -> Result<Vec<Vec<u8>>, WriteError> {
    const KINDS: u8 = 48;
    const HEAD: u32 = 96;
    let seed = |kind: u8| {
        let mut head = vec![0; HEAD as usize];
        head[0] = kind;
        [&potluck_protocol::VERSION.to_le_bytes()[..], &[7; 16], &HEAD.to_le_bytes(), &head].concat()
    };
    Ok((0..KINDS).map(seed).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_seed_passes_its_target() {
        for target in TARGETS {
            let seeds = (target.seeds)().expect("seeds are small valid files");
            assert!(!seeds.is_empty(), "{} has no seeds", target.name);
            seeds.iter().for_each(|seed| (target.run)(seed));
        }
    }

    #[test]
    fn seeds_reach_behind_the_first_checks() {
        let files = model_seeds().expect("synthetic models");
        for file in &files {
            let header = parse(file, file.len()).expect("a valid header");
            let model = join([header]).expect("one file");
            assert!(ModelSpec::from_gguf(&model).is_ok(), "{:?}", ModelSpec::from_gguf(&model));
            assert!(Tokenizer::from_metadata(&model.metadata).is_ok());
        }
        let frames = frame_seeds().expect("bytes");
        let decoded = frames.iter().filter(|frame| potluck_protocol::decode(frame).is_ok()).count();
        assert!(decoded >= 5, "only {decoded} of the seeds are frames");
    }
}
