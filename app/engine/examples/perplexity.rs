//! Perplexity of texts by the arithmetics `exact` and `packed`:
//! `cargo run -p potluck-engine --example perplexity -- [--decode] MODEL.gguf TEXT…`
//!
//! Every position is computed as a prompt, with `--decode` as a token of an answer. A software adapter has packed decode only as
//! if it were a GPU: set `POTLUCK_TIER` to `full`.
//!
//! Documents are separated by lines of `---`; each has a context of its own, of at most 2,000 tokens. Every token after
//! a document's first counts. Prints the mean negative log-likelihood and the perplexity by arithmetic, how far the
//! perplexity is from the exact one, and for how many tokens the best guess is the same.

use std::cell::RefCell;
use std::error::Error;
use std::rc::Rc;

use futures::executor::block_on;
use potluck_engine::{Engine, Gpu, GpuOptions, Piece, Settings, Tier};
use potluck_gguf::{Model, join, parse};
use potluck_model::{ModelSpec, SpecialText, Tokenizer};
use potluck_plan::{
    Arithmetic, BatchToken, BlockRange, ConversationId, Input, KernelClass, LmHeadRequest, LmHeadTokens, LogitsRequest,
    Outcome, Position, Task, Then, Ticket, WeightUnit, Work,
};

/// Most tokens of a document.
const LONGEST: usize = 2000;
/// Tokens at a time: most rows of logits that an engine returns. The bits do not depend on it.
const CHUNK: usize = 16;
const CONVERSATION: ConversationId = ConversationId(0);

type Failure = Box<dyn Error>;

/// A model on the engine, with one arithmetic.
struct Loaded {
    engine: Engine,
    outcome: Rc<RefCell<Option<Outcome>>>,
    blocks: u16,
    vocabulary: usize,
    class: KernelClass,
}

impl Loaded {
    fn new(
        gpu: &Gpu,
        (model, file): (&Model, &[u8]),
        (arithmetic, class): (Arithmetic, KernelClass),
    ) -> Result<Self, Failure> {
        let (spec, units) = ModelSpec::from_gguf(model)?;
        let (blocks, vocabulary) = (spec.blocks.len() as u16, spec.vocabulary as usize);
        let outcome = Rc::new(RefCell::new(None));
        let inbox = outcome.clone();
        let receive = Box::new(move |computed: potluck_plan::Computed| {
            inbox.borrow_mut().replace(computed.outcome);
        });
        let settings = Settings { context: 2048, arithmetic, tuned: false, ..Settings::default() };
        let engine = Engine::new(gpu, spec, units.clone(), settings, receive)?;
        engine.reserve(&units.units().collect())?;
        for unit in engine.missing() {
            for tensor in (0..units.tensors(unit).len()).filter(|tensor| engine.needs(unit, *tensor)) {
                let range = units.tensors(unit)[tensor].range;
                let bytes = &file[range.offset as usize..(range.offset + range.len) as usize];
                upload(&engine, bytes, (unit, tensor))?;
            }
            engine.finish(unit)?;
        }
        engine.close_staging();
        Ok(Self { engine, outcome, blocks, vocabulary, class })
    }

    /// The logits after each token of a document.
    fn logits(&self, tokens: &[u32]) -> Result<Vec<f32>, Failure> {
        self.engine.forget(CONVERSATION);
        let mut all = Vec::with_capacity(tokens.len() * self.vocabulary);
        for (number, chunk) in tokens.chunks(CHUNK).enumerate() {
            let at = |index: usize| Position((number * CHUNK + index) as u32);
            let row = |index| BatchToken { conversation: CONVERSATION, position: at(index) };
            let task = Task::Forward {
                batch: (0..chunk.len()).map(row).collect(),
                class: self.class,
                input: Input::Tokens(chunk.to_vec()),
                blocks: BlockRange::new(0, self.blocks),
                then: Then::LmHead(LmHeadRequest { tokens: LmHeadTokens::All, logits: LogitsRequest::Logits }),
            };
            self.engine.submit(Work { ticket: Ticket(0), task })?;
            self.engine.wait();
            match self.outcome.borrow_mut().take() {
                Some(Outcome::Logits(logits)) => all.extend(logits),
                other => return Err(format!("no logits but {other:?}").into()),
            }
        }
        Ok(all)
    }
}

fn upload(engine: &Engine, bytes: &[u8], (unit, tensor): (WeightUnit, usize)) -> Result<(), Failure> {
    let mut offset = 0;
    while offset < bytes.len() {
        let mut staging = block_on(engine.staging())?;
        let part = &bytes[offset..bytes.len().min(offset + staging.len() as usize)];
        staging.write(0, part);
        let piece = Piece { unit, tensor, tensor_offset: offset as u64, staging_offset: 0, len: part.len() as u64 };
        engine.upload(staging, &[piece])?;
        offset += part.len();
    }
    Ok(())
}

/// Negative log-likelihood of a token, and the best token.
fn judge(logits: &[f32], token: u32) -> (f64, usize) {
    let (best, top) =
        logits.iter().enumerate().fold((0, f32::MIN), |best, (id, &v)| if v > best.1 { (id, v) } else { best });
    let sum: f64 = logits.iter().map(|&v| f64::from(v - top).exp()).sum();
    (sum.ln() + f64::from(top) - f64::from(logits[token as usize]), best)
}

fn main() -> Result<(), Failure> {
    let (flags, paths): (Vec<String>, Vec<String>) = std::env::args().skip(1).partition(|text| text == "--decode");
    let class = if flags.is_empty() { KernelClass::Prefill } else { KernelClass::Decode };
    let [model, texts @ ..] = paths.as_slice() else { return Err("name a model and texts".into()) };
    let file = std::fs::read(model)?;
    let header = join([parse(&file)?])?;
    let tokenizer = Tokenizer::from_metadata(&header.metadata)?;
    let tier = std::env::var("POTLUCK_TIER").is_ok_and(|tier| tier == "full").then_some(Tier::Full);
    let gpu = block_on(Gpu::open(GpuOptions { tier, ..GpuOptions::default() }))?;
    let of = |arithmetic| Loaded::new(&gpu, (&header, &file), (arithmetic, class));
    let loaded = [Arithmetic::Exact, Arithmetic::Packed].map(of);
    let loaded = loaded.into_iter().collect::<Result<Vec<_>, _>>()?;
    println!("{model} on {}", gpu.capabilities().name);
    println!("| text | tokens | exact | packed | difference | same best token |\n|---|---|---|---|---|---|");
    for path in texts {
        let text = std::fs::read_to_string(path)?;
        let (mut sums, mut same, mut count) = ([0.0; 2], 0, 0);
        for document in text.split("\n---\n").map(str::trim).filter(|document| !document.is_empty()) {
            let mut tokens = tokenizer.encode_prompt(document, SpecialText::Parse);
            tokens.truncate(LONGEST);
            let rows = loaded.iter().map(|loaded| loaded.logits(&tokens)).collect::<Result<Vec<_>, _>>()?;
            for (at, &token) in tokens.iter().enumerate().skip(1) {
                let width = loaded[0].vocabulary;
                let judged: Vec<(f64, usize)> =
                    rows.iter().map(|rows| judge(&rows[(at - 1) * width..at * width], token)).collect();
                sums.iter_mut().zip(&judged).for_each(|(sum, (nll, _))| *sum += nll);
                same += usize::from(judged[0].1 == judged[1].1);
                count += 1;
            }
        }
        let [exact, packed] = sums.map(|sum| (sum / f64::from(count.max(1))).exp());
        let (difference, share) = ((packed / exact - 1.0) * 100.0, 100.0 * same as f64 / f64::from(count.max(1)));
        println!("| {path} | {count} | {exact:.4} | {packed:.4} | {difference:+.2}% | {share:.2}% |");
    }
    Ok(())
}
