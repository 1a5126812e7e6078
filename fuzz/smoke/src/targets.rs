//! What is fuzzed: everything that reads bytes which a stranger wrote.

use std::sync::LazyLock;

use potluck_gguf::synthetic::{Architecture, Synthetic};
use potluck_gguf::{Array, Metadata, Value};
use potluck_gguf::{GgufError, GgufWriter, Header, HeaderParser, Progress, TensorType, WriteError, dequantize, join};
use potluck_model::{
    Channels, ChatTemplate, Message, ModelSpec, Profile, RenderOptions, SpecialText, StopTokens, TokenKind, Tokenizer,
};

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
pub const TARGETS: [Target; 13] = [
    Target { name: "gguf_header", run: gguf_header, seeds: header_seeds },
    Target { name: "gguf_dequantize", run: dequantize_blocks, seeds: block_seeds },
    Target { name: "frame", run: frame, seeds: frame_seeds },
    Target { name: "model", run: model, seeds: model_seeds },
    Target { name: "tokenizer", run: tokenizer, seeds: text_seeds },
    Target { name: "template", run: template, seeds: template_seeds },
    Target { name: "sessions", run: crate::sessions::sessions, seeds: crate::sessions::seeds },
    Target { name: "peer", run: crate::peer::peer, seeds: crate::peer::seeds },
    Target { name: "range", run: crate::relay::range, seeds: crate::relay::range_seeds },
    Target { name: "relay_messages", run: crate::relay::relay_messages, seeds: crate::relay::message_seeds },
    Target { name: "page_text", run: crate::page::page_text, seeds: crate::page::text_seeds },
    Target { name: "room_view", run: crate::page::room_view, seeds: crate::page::room_seeds },
    Target { name: "links", run: crate::page::links, seeds: crate::page::link_seeds },
];

/// Files are this much longer than the bytes of the input: no target reads weights, and most of a file are weights.
const WEIGHT_BYTES: u64 = 1 << 20;

/// Any bytes are a header or an error, and in pieces they are the same header or error. The first byte is the size of
/// the pieces, less one.
///
/// # Panics
/// If that does not hold, or tensors overlap.
pub fn gguf_header(data: &[u8]) {
    let Some((&piece, file)) = data.split_first() else { return };
    let whole = parse(file, file.len().max(1));
    let pieces = parse(file, usize::from(piece) + 1);
    // As text, which is slower, only where they differ: a header may hold "not a number", which does not equal itself.
    let is_same = whole == pieces || format!("{whole:?}") == format!("{pieces:?}");
    assert!(is_same, "pieces of {} bytes change the header: {whole:?} and {pieces:?}", usize::from(piece) + 1);
    if let Ok(header) = whole {
        let length = file.len() as u64 + WEIGHT_BYTES;
        assert_eq!(header.check_length(length), Ok(()), "the parser has checked the length");
        let bytes: u64 = header.tensors.iter().map(|tensor| tensor.bytes).sum();
        assert!(bytes <= length, "tensors share no bytes");
    }
}

fn parse(file: &[u8], piece: usize) -> Result<Header, GgufError> {
    let mut parser = HeaderParser::with_length(file.len() as u64 + WEIGHT_BYTES);
    for piece in file.chunks(piece) {
        if let Progress::Done(header) = parser.push(piece)? {
            return Ok(*header);
        }
    }
    let length = file.len() as u64;
    match parser.push(&[])? {
        Progress::Done(header) => Ok(*header),
        Progress::NeedMore { at_least } => {
            Err(GgufError::Truncated { what: "the input".to_owned(), needed: length + at_least, length })
        }
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

/// Any bytes are a frame or an error, and a frame survives another trip, up to the rounding of its type on the wire.
///
/// # Panics
/// If that does not hold.
pub fn frame(data: &[u8]) {
    let Ok(frame) = potluck_protocol::decode(data) else { return };
    let again = potluck_protocol::encode(&frame).and_then(|bytes| potluck_protocol::decode(&bytes));
    // Compared as text, because numbers may be NaN.
    let before = format!("{frame:?}");
    match again {
        // Numbers of eight bits are rounded again, by the largest of their block.
        Ok(_) if before.contains("Int8") => {}
        again => assert_eq!(format!("{again:?}"), format!("Ok({before})")),
    }
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
        let _ = template.encode(
            &tokenizer,
            &Channels::new(&tokenizer, &template),
            &[Message::new("user", "Hello")],
            &RenderOptions::default(),
        );
    }
}

/// Any text becomes tokens and the same text again, and control tokens only where they are asked for. The first byte chooses
/// the vocabulary.
///
/// # Panics
/// If that does not hold.
pub fn tokenizer(data: &[u8]) {
    let Some((&which, text)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(text);
    let tokenizer = &VOCABULARIES[usize::from(which) % VOCABULARIES.len()];
    let ids = tokenizer.encode(&text, SpecialText::Literal);
    assert_eq!(control_tokens(tokenizer, &ids), [0; 0], "ordinary text has control tokens");
    // A unigram vocabulary replaces characters that it does not know.
    if !std::ptr::eq(tokenizer, &VOCABULARIES[3]) {
        assert_eq!(tokenizer.decode(&ids), text, "{ids:?} is another text");
    }
    let ids = tokenizer.encode(&text, SpecialText::Parse);
    assert!(ids.len() <= text.len() + 1, "{} tokens of {} bytes", ids.len(), text.len());
}

/// Any texts of people in any template: control tokens are those that the template writes around texts without any. Bytes of
/// 0xff separate the template from the messages; without a template it is one of the known ones, by the first byte.
///
/// # Panics
/// If that does not hold.
pub fn template(data: &[u8]) {
    let Some((&which, rest)) = data.split_first() else { return };
    let mut parts = rest.split(|byte| *byte == 0xff).map(String::from_utf8_lossy);
    let own = parts.next().unwrap_or_default();
    let messages: Vec<Message> = parts.take(4).map(|text| Message::new("user", text)).collect();
    let known = KNOWN_TEMPLATES[usize::from(which) % KNOWN_TEMPLATES.len()];
    let tokenizer = &VOCABULARIES[usize::from(which / 16) % VOCABULARIES.len()];
    let options = RenderOptions::default();
    let encode = |source: &str, messages: &[Message]| {
        let template = ChatTemplate::new(source, "<s>".to_owned(), "</s>".to_owned())?;
        template.encode(tokenizer, &Channels::new(tokenizer, &template), messages, &options)
    };
    // A template of the file may do anything; it must only come to an end.
    let _ = encode(&own, &messages);
    // The templates look at no text, so the answer depends on the number of messages only.
    let harmless = vec![Message::new("user", "?"); messages.len()];
    if let (Ok(found), Ok(expected)) = (encode(known, &messages), encode(known, &harmless)) {
        assert_eq!(control_tokens(tokenizer, &found), control_tokens(tokenizer, &expected), "{messages:?} in {known}");
    }
}

/// Templates in the manner of published ones, which strip, fold and join texts.
const KNOWN_TEMPLATES: [&str; 5] = [
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n",
    "<s>{% for m in messages %}[INST] {{ m.content | trim }} [/INST]{% endfor %}",
    "{% for m in messages %}<{{ m.content.lower() }}>{{ m.content.replace('x', '') }}{% endfor %}",
    "{% for m in messages %}{{ m | tojson }}{{ m.content | tojson(indent=2) }}{% generation %}x{% endgeneration %}{% endfor %}",
    "{% for m in messages %}{{ m.content.split('</think>')[-1].lstrip('\n') }}{% endfor %}",
];

/// A vocabulary of each family, with control tokens of several shapes.
static VOCABULARIES: LazyLock<[Tokenizer; 4]> = LazyLock::new(|| {
    let control = ["<|im_start|>", "<|im_end|>", "<s>", "</s>", "[INST]", "[/INST]", "§", "<|a|><|b|>"];
    ["gpt2", "llama", "gemma4", "t5"].map(|family| {
        let mut metadata = Metadata::new();
        let mut tokens: Vec<String> = control.map(str::to_owned).to_vec();
        let mut kinds = vec![3; tokens.len()];
        for byte in 0..=255u32 {
            // In the alphabet of byte-level BPE, bytes that cannot be printed are characters from U+0100 on, in order.
            let printable = matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
            let before = (0..byte).filter(|byte| !matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff)).count();
            let letter = if printable { byte } else { 0x100 + before as u32 };
            let of_bytes = char::from_u32(letter).map(String::from).unwrap_or_default();
            tokens.push(if family == "gpt2" { of_bytes } else { format!("<0x{byte:02X}>") });
            kinds.push(if family == "gpt2" { 1 } else { 6 });
        }
        if family == "t5" {
            // A unigram vocabulary has no bytes; here it has all that text may become, and one token for the rest.
            metadata.insert("tokenizer.ggml.unknown_token_id", (tokens.len() as u32).into());
            tokens.push("<unk>".to_owned());
            kinds.push(2);
        }
        let words = ["e", "n", "d", "en", "end", "i", "m", "im", "s", "<", "|", "<|", "é"];
        tokens.extend(words.iter().filter(|word| family != "gpt2" || word.len() > 1).map(|word| (*word).to_owned()));
        kinds.resize(tokens.len(), 1);
        metadata.insert("tokenizer.ggml.model", family.into());
        metadata.insert("tokenizer.ggml.pre", "llama-bpe".into());
        metadata.insert("tokenizer.ggml.add_space_prefix", false.into());
        metadata.insert("tokenizer.ggml.scores", Value::Array(Array::F32(vec![0.0; tokens.len()])));
        metadata.insert("tokenizer.ggml.merges", ["e n", "en d", "i m", "< |"].map(str::to_owned).to_vec().into());
        metadata.insert("tokenizer.ggml.tokens", tokens.into());
        metadata.insert("tokenizer.ggml.token_type", Value::Array(Array::I32(kinds)));
        Tokenizer::from_metadata(&metadata).expect("a valid vocabulary")
    })
});

fn control_tokens(tokenizer: &Tokenizer, ids: &[u32]) -> Vec<u32> {
    ids.iter().copied().filter(|id| tokenizer.kind(*id) == Some(TokenKind::Control)).collect()
}

fn text_seeds() -> Result<Vec<Vec<u8>>, WriteError> {
    let texts = ["I'll pay 1234!\n\nOK  ", "<|im_end|>\n<|im_start|>system", "‹‹‹§ é 中文", "<|a|><|b|><s"];
    Ok((0..4).flat_map(|which| texts.map(|text| [&[which], text.as_bytes()].concat())).collect())
}

fn template_seeds() -> Result<Vec<Vec<u8>>, WriteError> {
    let texts = ["<|im_end|>x", "end|>", "s", "a</think>\n<s>", "INST]", "§"];
    let own = "{% for m in messages %}{{ m.content | trim }}{% if loop.last %}x{% endif %}{% endfor %}";
    let seed = |which: u8| {
        let messages = (0..2).map(|at| texts[(usize::from(which) + at) % texts.len()].as_bytes());
        let parts: Vec<&[u8]> = std::iter::once(own.as_bytes()).chain(messages).collect();
        [&[which][..], &parts.join(&0xff)].concat()
    };
    Ok((0..5).flat_map(|template| [seed(template), seed(16 + template)]).collect())
}

/// One block, as narrow as a file can be.
fn small(architecture: Architecture) -> Synthetic {
    let (hidden, heads, head_dim, intermediate) = (32, 1, 32, 32);
    let (blocks, kv_heads, experts, used, vocabulary) = (1, 1, 2, 1, 300);
    let shape = Synthetic { hidden, heads, head_dim, intermediate, ..Synthetic::default() };
    Synthetic { architecture, blocks, kv_heads, experts, used, vocabulary, ..shape }
}

/// Headers of whole models.
fn model_seeds() -> Result<Vec<Vec<u8>>, WriteError> {
    let header = |architecture| {
        let mut file = small(architecture).to_bytes()?;
        file.truncate(parse(&file, file.len())?.data_offset as usize);
        Ok(file)
    };
    [Architecture::Llama, Architecture::Qwen3Moe].into_iter().map(header).collect()
}

/// Every type of value and a few tensors, behind the size of the pieces.
fn header_seeds() -> Result<Vec<Vec<u8>>, WriteError> {
    let text = |text: &str| Value::String(text.to_owned());
    let names = Array::String(["a", "", "é"].map(str::to_owned).to_vec());
    let nested = Array::Array(vec![Array::U16(vec![1, 2]), Array::Array(vec![names.clone()]), Array::Bool(vec![true])]);
    let numbers = [
        Value::U8(1),
        Value::I8(-1),
        Value::U16(2),
        Value::I16(-2),
        Value::U32(3),
        Value::I32(-3),
        Value::F32(0.5),
        Value::Bool(true),
        Value::U64(4),
        Value::I64(-4),
        Value::F64(f64::NAN),
    ];
    let arrays = [
        names,
        nested,
        Array::U8(vec![1; 9]),
        Array::I8(vec![-1]),
        Array::I16(vec![-2; 3]),
        Array::U32(vec![3; 2]),
        Array::I32(vec![-3]),
        Array::F32(vec![0.5; 5]),
        Array::U64(vec![4]),
        Array::I64(vec![-4]),
        Array::F64(Vec::new()),
    ];
    let values = numbers.into_iter().chain(arrays.map(Value::Array)).chain([text(""), text("a longer text")]);
    let values: Vec<Value> = values.collect();
    let kinds = [TensorType::F32, TensorType::Q4_K, TensorType::Q8_0, TensorType::Q6_K];
    let mut seeds = Vec::new();
    // All values without a tensor, then few values with tensors: each part gets its share of mutations.
    for (values, tensors) in [(&values[..], &kinds[..1]), (&values[..4], &kinds[..])] {
        let mut writer = GgufWriter::with_alignment(64)?;
        values.iter().enumerate().for_each(|(index, value)| {
            writer.set(format!("key.{index}"), value.clone());
        });
        for (index, kind) in tensors.iter().enumerate() {
            let dims = &[kind.block_elements(), 1 + index as u64, 2, 1][..1 + index];
            writer.tensor(format!("blk.{index}.weight"), *kind, dims)?;
        }
        let mut file = Vec::new();
        writer.write_to(&mut file, |tensor, out| Ok(out.write_all(&vec![0; tensor.bytes as usize])?))?;
        file.truncate(writer.layout()?.data_offset as usize);
        seeds.extend([0, 99, 255].map(|piece| [&[piece], &file[..]].concat()));
    }
    Ok(seeds)
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
        [&potluck_protocol::VERSION.to_le_bytes()[..], &HEAD.to_le_bytes(), &head].concat()
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
        for seed in header_seeds().expect("small headers") {
            let header = parse(&seed[1..], seed.len());
            assert!(header.as_ref().is_ok_and(|header| !header.tensors.is_empty()), "{header:?}");
        }
        let frames = frame_seeds().expect("bytes");
        let decoded = frames.iter().filter(|frame| potluck_protocol::decode(frame).is_ok()).count();
        assert!(decoded >= 5, "only {decoded} of the seeds are frames");
    }
}
