//! `cargo lab trace`: writes what a model's routers choose for some prompts to a routing trace.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use potluck_engine::Gpu;
use potluck_gguf::quantization;
use potluck_model::LocalTime;
use potluck_node::ModelLanguage;
use potluck_node::native::ModelFile;
use potluck_predict::{Alignment, NoAlignment, TraceShape};
use potluck_protocol::{LogitOptions, Message, PromptRequest, RequestId, Role, Sampling, ToolOffer};
use potluck_swarm::Language;

use super::StudyError;
use super::all_cores::OnAllCores;
use super::on_cpu::OnCpu;
use super::on_gpu::OnGpu;
use super::runner::{Recording, Runner, shape_of};
use crate::routing::{Recorded, Sequence, Trace, recall};

/// Most prompts of a trace, far above what fits into one.
const MAX_PROMPTS: usize = 10_000;

/// A shadow model and its alignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShadowChoice {
    /// Its file.
    pub file: PathBuf,
    /// When it is aligned.
    pub alignment: Alignment,
}

impl FromStr for ShadowChoice {
    type Err = NoAlignment;

    /// A file, and perhaps its alignment: `small.gguf`, `small.gguf@T1`.
    fn from_str(text: &str) -> Result<Self, NoAlignment> {
        let (file, alignment) = text.trim().rsplit_once('@').unwrap_or((text.trim(), "unaligned"));
        Ok(Self { file: file.into(), alignment: alignment.parse()? })
    }
}

/// What to trace.
#[derive(Clone, Debug)]
pub struct TraceChoice {
    /// The base model.
    pub model: PathBuf,
    /// Shadow models.
    pub shadows: Vec<ShadowChoice>,
    /// Prompts.
    pub prompts: Vec<String>,
    /// Without the chat template.
    pub raw: bool,
    /// Most tokens of an answer.
    pub max_tokens: u32,
}

/// Prompts of a text file, one a line; empty lines do not count.
///
/// # Errors
/// The file cannot be read, or has no prompts.
pub fn read_prompts(path: &Path) -> Result<Vec<String>, StudyError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| StudyError::Prompts(format!("{} cannot be read: {error}.", path.display())))?;
    let prompts: Vec<String> = text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect();
    match prompts.len() {
        0 => Err(StudyError::Prompts(format!("{} has no prompts: write one a line.", path.display()))),
        many if many > MAX_PROMPTS => Err(StudyError::Prompts(format!("At most {MAX_PROMPTS} prompts are traced."))),
        _ => Ok(prompts),
    }
}

/// Traces a model, on a GPU or else on all cores of the CPU. `progress` gets a sentence for each prompt, and the recall of each channel
/// in the end. `keep` gets after each prompt what is there so far, in the order of the prompts.
///
/// # Errors
/// [`StudyError`], also that of `keep`.
pub fn trace(
    choice: &TraceChoice,
    gpu: Option<&Gpu>,
    progress: impl Fn(String),
    mut keep: impl FnMut(&Trace) -> Result<(), StudyError>,
) -> Result<Trace, StudyError> {
    let base = ModelFile::open(&choice.model)?;
    let mut files: Vec<&Path> = Vec::new();
    let mut channels = Vec::new();
    for shadow in &choice.shadows {
        let known = files.iter().position(|file| *file == shadow.file);
        channels.push((known.unwrap_or(files.len()), shadow.alignment));
        if known.is_none() {
            files.push(&shadow.file);
        }
    }
    let shadows = files.into_iter().map(ModelFile::open).collect::<Result<Vec<_>, _>>()?;
    let shape = shape_of(&base.spec()?.0).ok_or_else(|| StudyError::NoExperts(base.name.clone()))?;
    shadows.iter().try_for_each(|shadow| shadow.check_shadow_of(&base))?;
    let study = Study { choice, shape, base: &base, shadows: &shadows, channels: &channels, progress: &progress };
    let trace = match gpu {
        None => study.on_cpu(&mut keep)?,
        Some(gpu) => study.on_gpu(gpu, &mut keep)?,
    };
    for channel in &trace.channels[1..] {
        if let Some(mut recorded) = Recorded::new(&trace, channel) {
            progress(format!("{channel}: recall {:.2}%", 100.0 * recall(&trace, &mut recorded).overall()));
        }
    }
    Ok(trace)
}

/// The prompts as the model reads them.
struct Prompts {
    language: ModelLanguage,
    tokens: Vec<Vec<u32>>,
    /// What the longest needs with its answer.
    positions: u32,
}

struct Study<'a> {
    choice: &'a TraceChoice,
    shape: TraceShape,
    base: &'a ModelFile,
    shadows: &'a [ModelFile],
    channels: &'a [(usize, Alignment)],
    progress: &'a dyn Fn(String),
}

impl Study<'_> {
    fn prompts(&self) -> Result<Prompts, StudyError> {
        let context = self.base.spec()?.0.context;
        let (language, _) = ModelLanguage::read(&self.base.model.metadata, context, LocalTime::from_unix(0))?;
        let tokens = self.choice.prompts.iter().map(|prompt| {
            let question = || PromptRequest {
                request: RequestId(0),
                conversation: String::new(),
                messages: vec![Message::new(Role::User, prompt.clone())],
                raw: false,
                max_tokens: self.choice.max_tokens,
                sampling: Sampling::greedy(),
                reasoning: None,
                tools: ToolOffer::default(),
                logits: LogitOptions::default(),
            };
            let tokens = if self.choice.raw { language.tokenize(prompt) } else { language.render(&question()) };
            tokens.map_err(StudyError::Prompts)
        });
        let tokens = tokens.collect::<Result<Vec<_>, _>>()?;
        let longest = tokens.iter().map(Vec::len).max().unwrap_or(0) as u32;
        let positions = longest.saturating_add(self.choice.max_tokens);
        if positions > context || tokens.iter().any(Vec::is_empty) {
            let why = format!(
                "Prompts need at least one token, and with their answers at most {context} (found {positions})."
            );
            return Err(StudyError::Prompts(why));
        }
        Ok(Prompts { language, tokens, positions })
    }

    fn on_gpu(&self, gpu: &Gpu, keep: &mut Keep<'_>) -> Result<Trace, StudyError> {
        let prompts = self.prompts()?;
        let load = |file| OnGpu::load(gpu, file, prompts.positions);
        let mut base = load(self.base)?;
        let mut shadows = self.shadows.iter().map(load).collect::<Result<Vec<_>, _>>()?;
        let mut done = self.done(base.foresight());
        for (number, prompt) in prompts.tokens.iter().enumerate() {
            let mut recording = Recording {
                base: &mut base,
                shadows: &mut shadows,
                channels: self.channels,
                max_tokens: self.choice.max_tokens,
            };
            let sequence = recording.record(prompt, |token| prompts.language.is_end(token))?;
            done.add(number, sequence, keep)?;
        }
        Ok(done.trace)
    }

    fn on_cpu(&self, keep: &mut Keep<'_>) -> Result<Trace, StudyError> {
        let prompts = self.prompts()?;
        let base = OnCpu::load(self.base)?;
        let shadows = self.shadows.iter().map(OnCpu::load).collect::<Result<Vec<_>, _>>()?;
        let mut done = self.done(base.foresight());
        let all = OnAllCores { base, shadows, channels: self.channels, max_tokens: self.choice.max_tokens };
        let is_end = |token| prompts.language.is_end(token);
        all.record(&prompts.tokens, is_end, |number, sequence| done.add(number, sequence, keep))?;
        Ok(done.trace)
    }

    fn done(&self, foresight: usize) -> Done<'_> {
        let channels = self.channel_names(foresight);
        let trace = Trace { shape: self.shape, channels, sequences: Vec::new() };
        Done { trace, numbers: Vec::new(), of: self.choice.prompts.len(), progress: self.progress }
    }

    fn channel_names(&self, foresight: usize) -> Vec<String> {
        let quantized = |file: &ModelFile| quantization(&file.model.metadata, &file.model.tensors).unwrap_or_default();
        let routers = (1..=foresight).map(|ahead| format!("router, {ahead} ahead"));
        let shadows = self
            .channels
            .iter()
            .map(|(shadow, alignment)| format!("{} {alignment}", quantized(&self.shadows[*shadow])));
        std::iter::once(quantized(self.base)).chain(routers).chain(shadows).collect()
    }
}

type Keep<'a> = dyn FnMut(&Trace) -> Result<(), StudyError> + 'a;

/// The conversations that are traced, in the order of the prompts, whichever ends first.
struct Done<'a> {
    trace: Trace,
    numbers: Vec<usize>,
    of: usize,
    progress: &'a dyn Fn(String),
}

impl Done<'_> {
    fn add(&mut self, number: usize, sequence: Sequence, keep: &mut Keep<'_>) -> Result<(), StudyError> {
        let answer = sequence.tokens(self.trace.shape) - sequence.prompt;
        (self.progress)(format!("{} of {}: {} + {answer} tokens", number + 1, self.of, sequence.prompt));
        let at = self.numbers.partition_point(|known| *known < number);
        self.numbers.insert(at, number);
        self.trace.sequences.insert(at, sequence);
        keep(&self.trace)
    }
}
