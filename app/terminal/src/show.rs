//! `potluck-node show`: what is known of a model, without a GPU.

use std::path::PathBuf;

use potluck_node::LanguageFacts;
use potluck_node::native::{platform, read_language};
use potluck_node::open::{MemoryNeed, Model, Opener};
use potluck_panel::{KvCacheType, ModelSource};
use potluck_text::{bytes, parameters, texts};
use serde::Serialize;

use crate::chosen_model::ChosenModel;
use crate::failure::Failure;
use crate::options::{AccessOptions, CacheOptions, DEFAULT_BUDGET, ModelOptions};
use crate::output::print;
use crate::printable::Printable;
use crate::signals::Stop;
use crate::values::parse_budget;

/// Options of `show`.
#[derive(Clone, Debug, PartialEq, clap::Args)]
pub struct ShowOptions {
    /// The model: a GGUF file, a link, or the name of a stored model, as for run. Of a link only the beginning is fetched
    pub model: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// The context that memory is needed for.
    #[command(flatten)]
    pub model_options: ModelOptions,
    /// How much GPU memory may be used, in bytes, such as 900M or 4G
    #[arg(long, value_name = "BYTES", help_heading = "This device", default_value = DEFAULT_BUDGET, value_parser = parse_budget)]
    pub budget: u64,
    /// Where models are stored.
    #[command(flatten)]
    pub cache: CacheOptions,
    /// As whom a link's file is fetched.
    #[command(flatten)]
    pub access: AccessOptions,
}

/// What is printed with `--json`. Sizes are bytes.
#[derive(Serialize)]
struct Facts<'a> {
    id: String,
    name: &'a str,
    architecture: &'a str,
    parameters: u64,
    active_parameters: u64,
    quantization: &'a str,
    types: Vec<(&'static str, u64)>,
    size: u64,
    blocks: u16,
    experts: u16,
    context: u32,
    tokenizer: &'a str,
    tokens: usize,
    own_template: bool,
    functions: bool,
    infill: bool,
    licence: &'a str,
    /// What follows is for one device.
    kv_cache_type: &'static str,
    context_chosen: u32,
    needs: u64,
    budget: u64,
    fits: bool,
}

/// Prints what is known.
///
/// # Errors
/// The model cannot be opened, or cannot run here.
pub(crate) async fn show(options: &ShowOptions, stop: &Stop) -> Result<(), Failure> {
    let mut stop = stop.clone();
    tokio::select! {
        biased;
        signal = stop.stopped() => Err(Failure::Stopped(signal)),
        shown = print_facts(options) => shown,
    }
}

async fn print_facts(options: &ShowOptions) -> Result<(), Failure> {
    let folder = options.cache.made_folder()?;
    let reach = |link: &str| platform(folder.clone(), &options.access.network_of_links(link));
    let given = reach(&options.model.to_string_lossy());
    let chosen = ChosenModel::of_path(&options.model, &given).await?;
    let platform = match &chosen {
        ChosenModel::File(_) => given,
        ChosenModel::Link(url) => reach(url),
    };
    let (source, files) = chosen.open()?;
    let opened = Opener::without_room(platform).open(&source, &files, |_, _| {}).await;
    let (model, metadata) = opened.map_err(|error| Failure::Failed(error.to_string()))?;
    let supported = model.kv_cache_types();
    if let Some(chosen) = options.model_options.cache_type.filter(|chosen| !supported.contains(chosen)) {
        let names: Vec<&str> = supported.iter().map(|kv_cache| kv_cache.name()).collect();
        return Err(Failure::Failed(texts().show.no_such_cache(chosen.name(), names.join(", "))));
    }

    let language = read_language(&metadata);
    let (language, remarks) = language.map_err(|error| Failure::Failed(error.to_string()))?;
    let kind = metadata.str("tokenizer.ggml.model").unwrap_or_default();
    let facts = facts(&model, language.facts(), kind, options);
    if options.json {
        let json = serde_json::to_string(&facts).map_err(|error| Failure::Failed(error.to_string()))?;
        return print(&Printable::json(&format!("{json}\n")));
    }
    let mut page = rows(&facts, &source, memory(&model, options).1);
    page.extend(remarks.iter().map(|remark| ("", remark.clone())));
    print(&Printable::lines(&aligned(&page)))
}

fn facts<'a>(model: &'a Model, language: LanguageFacts, tokenizer: &'a str, options: &ShowOptions) -> Facts<'a> {
    let card = &model.card;
    let (kv_cache, need) = memory(model, options);
    Facts {
        id: card.id.to_string(),
        name: &card.name,
        architecture: &card.architecture,
        parameters: card.parameters,
        active_parameters: card.active_parameters,
        quantization: &card.quantization,
        types: model.bytes_by_type().into_iter().map(|(name, bytes)| (name, bytes.0)).collect(),
        size: card.bytes.0,
        blocks: card.blocks,
        experts: card.experts,
        context: card.context,
        tokenizer,
        tokens: language.tokens,
        own_template: language.own_template,
        functions: language.offers_functions,
        infill: language.infill,
        licence: &card.licence,
        kv_cache_type: kv_cache.name(),
        context_chosen: context(model, options),
        needs: need.total().0,
        budget: options.budget,
        fits: need.total().0 <= options.budget,
    }
}

/// What the model supports, if that is less than what is asked for.
fn context(model: &Model, options: &ShowOptions) -> u32 {
    match model.card.context {
        0 => options.model_options.context,
        most => options.model_options.context.min(most),
    }
}

/// The type of the KV cache that `run` would choose, and what is needed with it.
fn memory(model: &Model, options: &ShowOptions) -> (KvCacheType, MemoryNeed) {
    let context = context(model, options);
    let with = |kv_cache| (kv_cache, model.memory(kv_cache, context));
    if let Some(chosen) = options.model_options.cache_type {
        return with(chosen);
    }
    let supported = model.kv_cache_types();
    let automatic = KvCacheType::AUTOMATIC.into_iter().filter(|kv_cache| supported.contains(kv_cache)).map(with);
    let all: Vec<_> = automatic.collect();
    let fits = all.iter().find(|(_, need)| need.total().0 <= options.budget);
    fits.or(all.last()).copied().unwrap_or_else(|| with(KvCacheType::F32))
}

fn rows(facts: &Facts<'_>, source: &ModelSource, need: MemoryNeed) -> Vec<(&'static str, String)> {
    let text = &texts().show;
    let (budget, blocks) = (facts.budget, u64::from(facts.blocks));
    let architecture = match facts.experts {
        0 => text.blocks(blocks, facts.architecture),
        experts => text.blocks_of_experts(facts.architecture, blocks, u64::from(experts)),
    };
    let count = match facts.active_parameters {
        active if active == facts.parameters => parameters(active),
        active => text.active(facts.parameters, active),
    };
    let types: Vec<String> = facts.types.iter().map(|(name, size)| format!("{name} {}", bytes(*size))).collect();
    let template = [
        Some(if facts.own_template { text.own_template() } else { text.other_template() }),
        facts.functions.then(|| text.with_functions()),
        facts.infill.then(|| text.with_infill()),
    ];
    let verdict = match (facts.fits, facts.experts) {
        (true, _) => text.fits(budget),
        (false, 0) => text.too_large(budget, facts.needs),
        (false, _) => text.on_demand(budget, facts.needs),
    };
    let chosen = u64::from(facts.context_chosen);
    let kind = facts.kv_cache_type;
    let mut rows = vec![
        (text.name(), facts.name.to_owned()),
        (text.architecture(), architecture),
        (text.parameters(), count),
        (text.quantization(), format!("{}: {}", facts.quantization, types.join(", "))),
        (text.size(), bytes(facts.size)),
        (text.context(), text.tokens(u64::from(facts.context))),
        (text.tokenizer(), text.vocabulary(facts.tokenizer, facts.tokens)),
        (text.template(), template.into_iter().flatten().collect::<Vec<_>>().join(", ")),
        (text.licence(), facts.licence.to_owned()),
        (text.memory(), text.needs(need.weights.0, need.kv_cache.0, kind, chosen, need.besides.0, facts.needs)),
        (text.verdict(), verdict),
    ];
    if let ModelSource::Link { url } = source {
        rows.insert(1, (texts().stored.link(), url.clone()));
    }
    rows.retain(|(_, value)| !value.is_empty());
    rows
}

fn aligned(rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
    rows.iter().map(|(label, value)| format!("{label:width$}  {value}\n")).collect()
}
