//! Architectures as data, tokenizer, chat template. No I/O.
//!
//! All of it is read from the header of a GGUF file, or from the headers of all files of a split:
//!
//! ```
//! use potluck_model::{Channels, ChatTemplate, Message, ModelError, ModelSpec, RenderOptions, StopTokens, Tokenizer};
//!
//! fn first_prompt(file: &potluck_gguf::Model) -> Result<Vec<u32>, Box<dyn std::error::Error>> {
//!     // What an engine and a planner need, or the reason why the model cannot run here.
//!     let (spec, units) = ModelSpec::from_gguf(file)?;
//!     let _shape = spec.shape(&units, potluck_plan::ModelId([0; 32]), potluck_plan::KvCacheType::F16);
//!     // What a coordinator needs.
//!     let tokenizer = Tokenizer::from_metadata(&file.metadata)?;
//!     let _stops = StopTokens::from_metadata(&file.metadata, &tokenizer)?;
//!     let template = ChatTemplate::from_metadata(&file.metadata, &tokenizer)?;
//!     let channels = Channels::new(&tokenizer, &template);
//!     Ok(template.encode(&tokenizer, &channels, &[Message::new("user", "Hello")], &RenderOptions::default())?)
//! }
//!
//! let empty = potluck_gguf::join([potluck_gguf::Header {
//!     version: 3,
//!     alignment: 32,
//!     metadata: [("general.architecture".to_string(), "nonesuch".into())].into_iter().collect(),
//!     tensors: Vec::new(),
//!     data_offset: 0,
//! }])?;
//! assert_eq!(ModelSpec::from_gguf(&empty), Err(ModelError::UnsupportedArchitecture("nonesuch".to_string())));
//! assert!(first_prompt(&empty).is_err());
//! # Ok::<(), potluck_gguf::GgufError>(())
//! ```
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod architecture;
mod calls;
mod channels;
mod error;
mod infill;
mod keys;
mod kind;
mod parts;
mod profile;
mod read;
mod recurrent;
mod requantized;
mod shape;
mod spec;
mod stop;
mod template;
mod tensors;
mod title;
mod tokenizer;
mod units;
mod unknown;

pub use architecture::Architecture;
pub use calls::{CallPart, CallStream};
pub use channels::{ChannelParser, Channels};
pub use error::ModelError;
pub use infill::Infill;
pub use parts::Part;
pub use profile::Profile;
pub use recurrent::{DeltaNetSpec, RecurrentSpec, Rule, StateSpaceSpec};
pub use spec::{
    Activation, AttentionSpec, BlockSpec, DenseSpec, ExpertsSpec, FeedForwardSpec, GroupsSpec, LatentSpec, ModelSpec,
    Norms, QkNorm, RopeFactors, RopePairs, RopeSpec, RouterSpec, Scales, Scoring, SharedSpec, Temperature,
    TokenMixerSpec, Yarn,
};
pub use stop::{StopStrings, StopTokens, Streamed};
pub use template::{
    CallForm, ChatTemplate, LocalTime, Message, PLAIN_CALL_OPENING, RenderOptions, TemplateChoice, TemplateError,
    TemplateFault, TemplateOrigin, ToolCall, ToolSupport, TurnFamily, plain_call, plain_offer, plain_result,
};
pub use title::title;
pub use tokenizer::{Detokenizer, SpecialText, SplitRule, TokenKind, Tokenizer, TokenizerError, TokenizerWarning};
pub use units::{FileRange, TensorRole, UnitMap, UnitTensor};
