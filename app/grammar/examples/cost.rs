//! What it costs a host to hold answers to a form, with a model's own tokens and nothing computed:
//! `cargo run --release -p potluck-grammar --example cost -- MODEL.gguf`.

use std::error::Error;
use std::fs::File;
use std::io::Read;
use std::time::Instant;

use potluck_gguf::{Header, HeaderParser, Progress};
use potluck_grammar::{Rules, Vocabulary};
use potluck_model::{SpecialText, StopTokens, TokenKind, Tokenizer};
use potluck_plan::AllowedTokens;

/// A schema, and an answer that fits it.
const CASES: [(&str, &str, &str); 3] = [
    (
        "person",
        r#"{"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "tags": {"type": "array", "items": {"type": "string"}}}, "required": ["name", "age", "tags"], "additionalProperties": false}"#,
        r#"{"name": "Ada Lovelace", "age": 36, "tags": ["mathematics", "the analytical engine", "Übersetzung", "notes on a memoir by Menabrea"]}"#,
    ),
    (
        "any object",
        r#"{"type": "object"}"#,
        r#"{"city": "Rome", "weather": {"temperature": 21.5, "wind": [3, 4, null], "sunny": true}, "note": "Bring a hat, and water for the way."}"#,
    ),
    (
        "choice and pattern",
        r#"{"type": "object", "properties": {"unit": {"enum": ["celsius", "fahrenheit"]}, "date": {"type": "string", "format": "date"}, "code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{1,6}$"}}, "required": ["unit", "date", "code"], "additionalProperties": false}"#,
        r#"{"unit": "celsius", "date": "2026-11-30", "code": "AB-12345"}"#,
    ),
];
const RUNS: usize = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("Say which model's file to read.")?;
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let header = read_header(&mut file, length)?;
    let tokenizer = Tokenizer::from_metadata(&header.metadata)?;
    let stop = StopTokens::from_metadata(&header.metadata, &tokenizer)?;
    let count = tokenizer.len() as u32;
    let ends: Vec<u32> = (0..count).filter(|id| stop.contains(*id)).collect();
    let is_text =
        |id: u32| matches!(tokenizer.kind(id), Some(TokenKind::Normal | TokenKind::Byte | TokenKind::UserDefined));
    let begun = Instant::now();
    let vocabulary = Vocabulary::new((0..count).map(|id| is_text(id).then(|| tokenizer.piece(id))), &ends)?;
    println!("{count} tokens, made ready once in {:.1} ms", millis(begun));
    for (name, schema, answer) in CASES {
        let rules = Rules::Schema(schema.to_owned());
        let tokens = tokenizer.encode(answer, SpecialText::Literal);
        let (mut made, mut masks, mut bytes) = (Vec::new(), Vec::new(), 0);
        for _ in 0..RUNS {
            let begun = Instant::now();
            let mut matcher = vocabulary.matcher(&rules)?;
            made.push(millis(begun));
            for token in &tokens {
                let begun = Instant::now();
                let allowed = matcher.allowed()?;
                matcher.push(*token)?;
                masks.push(millis(begun));
                bytes += bytes_of(&allowed);
            }
        }
        made.sort_by(f64::total_cmp);
        let mean = masks.iter().sum::<f64>() / masks.len() as f64;
        let mean_bytes = bytes / masks.len();
        masks.sort_by(f64::total_cmp);
        let at = |share: f64| masks[((masks.len() - 1) as f64 * share) as usize];
        println!(
            "{name}: {} tokens, form read in {:.2} ms (median); a token {mean:.3} ms (mean), {:.3} (median), {:.3} (99%), {:.3} (most); \
             mask of at most {mean_bytes} bytes (mean)",
            tokens.len(),
            made[made.len() / 2],
            at(0.5),
            at(0.99),
            at(1.0),
        );
    }
    Ok(())
}

/// What a mask takes in a frame, at most.
fn bytes_of(allowed: &AllowedTokens) -> usize {
    let set: u32 = allowed.words().iter().map(|word| word.count_ones()).sum();
    let few = set.min(allowed.vocabulary() - set) as usize;
    (few * 3).min(allowed.vocabulary() as usize / 8)
}

fn millis(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

fn read_header(file: &mut File, length: u64) -> Result<Header, Box<dyn Error>> {
    let mut parser = HeaderParser::with_length(length);
    let mut piece = vec![0; 64 * 1024];
    loop {
        let read = file.read(&mut piece)?;
        if read == 0 {
            return Err("The file ends inside its header.".into());
        }
        if let Progress::Done(header) = parser.push(&piece[..read])? {
            return Ok(*header);
        }
    }
}
