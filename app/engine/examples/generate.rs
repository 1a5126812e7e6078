//! From a GGUF file to text, on this device alone:
//! `cargo run --release -p potluck-engine --example generate -- public/models/potluck-small-Q4_K_M.gguf "Why is the sky blue?"`.

use std::error::Error;
use std::io::Write;
use std::sync::mpsc;

use futures::executor::block_on;
use potluck_engine::{Engine, Gpu, GpuOptions, Settings};
use potluck_gguf::{join, parse};
use potluck_model::{Channels, ChatTemplate, Message, ModelSpec, RenderOptions, StopTokens, Tokenizer};
use potluck_plan::{
    BatchToken, BlockRange, ConversationId, Input, KernelClass, LmHeadRequest, LmHeadTokens, Outcome, Position,
    Sampling, Task, Then, Ticket, Work,
};

const MAX_TOKENS: usize = 48;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, question] = arguments.as_slice() else { return Err("Name a model and ask a question.".into()) };

    // What the file says of itself.
    let file = std::fs::read(path)?;
    let model = join([parse(&file)?])?;
    let (spec, units) = ModelSpec::from_gguf(&model)?;
    let tokenizer = Tokenizer::from_metadata(&model.metadata)?;
    let stops = StopTokens::from_metadata(&model.metadata, &tokenizer)?;
    let template = ChatTemplate::from_metadata(&model.metadata, &tokenizer)?;

    // All weights to the GPU. In a room, each device reserves the units that the plan gives it.
    let (blocks, all) = (BlockRange::new(0, spec.blocks.len() as u16), units.units().collect());
    let gpu = block_on(Gpu::open(GpuOptions::default()))?;
    let (sink, results) = mpsc::channel();
    let on_result = Box::new(move |computed| drop(sink.send(computed)));
    let engine = Engine::new(&gpu, spec, units, Settings::default(), on_result)?;
    engine.reserve(&all)?;
    block_on(engine.load_from(&file))?;

    // One piece of work for the prompt, and one for each token.
    let channels = Channels::new(&tokenizer, &template);
    let mut log =
        template.encode(&tokenizer, &channels, &[Message::new("user", question)], &RenderOptions::default())?;
    let (sampling, mut computed) = (Sampling::default(), 0);
    let mut text = tokenizer.detokenizer();
    for number in 0..MAX_TOKENS {
        let row = |at| BatchToken { conversation: ConversationId(1), position: Position(at as u32) };
        let class = if number == 0 { KernelClass::Prefill } else { KernelClass::Decode };
        let then = Then::LmHead(LmHeadRequest { tokens: LmHeadTokens::Last, logits: sampling.request() });
        let (batch, input) = ((computed..log.len()).map(row).collect(), Input::Tokens(log[computed..].to_vec()));
        engine.submit(Work {
            ticket: Ticket(number as u64),
            task: Task::Forward { batch, class, input, blocks, then, biases: Vec::new() },
        })?;
        engine.wait();
        let Outcome::Candidates(candidates) = results.recv()?.outcome else { return Err("The GPU failed.".into()) };
        let token = candidates.first().and_then(|best| sampling.sample(best, &log)).ok_or("There is no token.")?;
        if stops.contains(token) {
            break;
        }
        computed = log.len();
        log.push(token);
        print!("{}", text.push(&tokenizer, token));
        std::io::stdout().flush()?;
    }
    println!("{}", text.finish());
    Ok(())
}
