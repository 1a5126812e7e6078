//! What a GGUF file is, if it is not a whole model of language.

use potluck_gguf::{Metadata, Model, Value};

use crate::ModelError;

/// What a file is, by its article, and what to take instead.
type Kind = (&'static str, &'static str);

const ADAPTER: Kind = (
    "an adapter (LoRA), which changes another model a little",
    "choose the whole model, or one with the adapter merged in",
);
const IMATRIX: Kind =
    ("an importance matrix, which helps to quantize a model", "choose one of the models of the same repository");
const PROJECTOR: Kind = (
    "the part of a model that sees or hears (mmproj)",
    "choose the model itself, which lies beside it and answers text without this part",
);
const CONTROL_VECTOR: Kind = ("a control vector, which steers another model", "choose the whole model");
const VOCABULARY: Kind = ("a vocabulary without weights", "choose the whole model");
const DRAFTER: Kind = (
    "a small model that drafts for a larger one (MTP, EAGLE or DFlash) and cannot answer alone",
    "choose the larger model",
);
const IMAGES: Kind = ("a model that makes pictures or films", "choose a model of language");
const SPEECH: Kind = ("a model that hears or speaks", "choose a model of language");
const EMBEDDINGS: Kind = ("a model that turns texts into vectors to compare them", "choose a model that answers");
const RERANKER: Kind = ("a model that rates or sorts texts", "choose a model that answers");
const NOT_A_MODEL: Kind = ("no model: it names no architecture", "choose another file of this model");

/// `general.type` as llama.cpp and others write it.
const TYPES: &[(&str, Kind)] = &[
    ("adapter", ADAPTER),
    ("lora", ADAPTER),
    ("imatrix", IMATRIX),
    ("mmproj", PROJECTOR),
    ("clip", PROJECTOR),
    ("clip-vision", PROJECTOR),
    ("projector", PROJECTOR),
    ("controlvector", CONTROL_VECTOR),
    ("control_vector", CONTROL_VECTOR),
    ("vocab", VOCABULARY),
    ("diffusion", IMAGES),
    ("vae", IMAGES),
];

/// `general.architecture` of files that are no models of language. Those whose operations are missing are listed with the
/// architectures.
const ARCHITECTURES: &[(&[&str], Kind)] = &[
    (&["clip", "mmproj"], PROJECTOR),
    (&["controlvector"], CONTROL_VECTOR),
    (&["eagle3", "dflash", "dspark", "gemma4-assistant", "mtp"], DRAFTER),
    (
        &[
            "flux",
            "flux2",
            "sd1",
            "sd3",
            "sdxl",
            "aura",
            "chroma",
            "cosmos",
            "hidream",
            "hunyuan_video",
            "hyvid",
            "ltxv",
            "lumina2",
            "pig",
            "qwen_image",
            "wan",
            "z_image",
            "mochi",
            "pixart",
            "kolors",
        ],
        IMAGES,
    ),
    (
        &[
            "whisper",
            "parler-tts",
            "kokoro",
            "dia",
            "snac",
            "mimi",
            "qwen3tts",
            "pockettts",
            "wavtokenizer-dec",
            "parakeet",
        ],
        SPEECH,
    ),
];

/// Tensors by which a file without a type and an architecture is known.
const TENSORS: &[(&str, Kind)] = &[
    (".lora_a", ADAPTER),
    (".in_sum2", IMATRIX),
    ("direction.", CONTROL_VECTOR),
    ("model.diffusion_model.", IMAGES),
    ("first_stage_model.", IMAGES),
    ("double_blocks.", IMAGES),
    ("v.blk.", PROJECTOR),
];

/// `pooling_type` that makes one vector of a text (1 to 3), and that rates one.
const POOLED: std::ops::RangeInclusive<u32> = 1..=3;
const RANKED: u32 = 4;

/// Refuses files that are not a whole model of language.
///
/// # Errors
/// [`ModelError::OtherKind`]
pub(crate) fn check(file: &Model) -> Result<(), ModelError> {
    match kind(file) {
        None => Ok(()),
        Some((what, instead)) => Err(ModelError::OtherKind { what, instead }),
    }
}

fn kind(file: &Model) -> Option<Kind> {
    let metadata = &file.metadata;
    let text = |key: &str| metadata.str(key).unwrap_or_default().to_lowercase();
    let (of_type, architecture) = (text("general.type"), text("general.architecture"));
    let has = |name: &str| file.tensors.iter().any(|tensor| tensor.name.contains(name));
    if let Some((_, kind)) = TYPES.iter().find(|(name, _)| *name == of_type) {
        return Some(*kind);
    }
    if let Some((_, kind)) = ARCHITECTURES.iter().find(|(names, _)| names.contains(&architecture.as_str())) {
        return Some(*kind);
    }
    if metadata.contains("adapter.type") || has(".lora_a") {
        return Some(ADAPTER);
    }
    if architecture.is_empty() {
        let known = TENSORS.iter().find(|(name, _)| has(name)).map(|(_, kind)| *kind);
        return known.or(Some(NOT_A_MODEL));
    }
    if file.tensors.is_empty() && metadata.contains("tokenizer.ggml.tokens") {
        return Some(VOCABULARY);
    }
    if has("nextn.") && !has("blk.0.") {
        return Some(DRAFTER);
    }
    pooled(metadata, &architecture).or_else(|| has("cls.output.").then_some(RERANKER))
}

/// A model of a known architecture whose last block feeds something else than the choice of a token.
fn pooled(metadata: &Metadata, architecture: &str) -> Option<Kind> {
    let pooling = metadata.u32(&format!("{architecture}.pooling_type")).unwrap_or_default();
    let labels = metadata.contains(&format!("{architecture}.classifier.output_labels"));
    let causal = metadata.get(&format!("{architecture}.attention.causal"));
    if pooling == RANKED || labels {
        Some(RERANKER)
    } else if POOLED.contains(&pooling) || causal == Some(&Value::Bool(false)) {
        Some(EMBEDDINGS)
    } else {
        None
    }
}
