//! Text between two others, for models that were trained to write it ("fill in the middle").

use potluck_gguf::Metadata;

use crate::tokenizer::special_ids;
use crate::{SpecialText, Tokenizer, TokenizerError};

/// Where the three tokens are: keys of the metadata, an older key, and names that model families give them, as llama.cpp knows them.
const PREFIX: Marker = Marker {
    keys: ["tokenizer.ggml.fim_pre_token_id", "tokenizer.ggml.prefix_token_id"],
    names: [
        "<|fim_prefix|>",
        "<fim-prefix>",
        "<fim_prefix>",
        "<\u{ff5c}fim\u{2581}begin\u{ff5c}>",
        "<PRE>",
        "\u{2581}<PRE>",
    ],
};
const SUFFIX: Marker = Marker {
    keys: ["tokenizer.ggml.fim_suf_token_id", "tokenizer.ggml.suffix_token_id"],
    names: [
        "<|fim_suffix|>",
        "<fim-suffix>",
        "<fim_suffix>",
        "<\u{ff5c}fim\u{2581}hole\u{ff5c}>",
        "<SUF>",
        "\u{2581}<SUF>",
    ],
};
const MIDDLE: Marker = Marker {
    keys: ["tokenizer.ggml.fim_mid_token_id", "tokenizer.ggml.middle_token_id"],
    names: [
        "<|fim_middle|>",
        "<fim-middle>",
        "<fim_middle>",
        "<\u{ff5c}fim\u{2581}end\u{ff5c}>",
        "<MID>",
        "\u{2581}<MID>",
    ],
};

struct Marker {
    keys: [&'static str; 2],
    names: [&'static str; 6],
}

impl Marker {
    fn find(&self, metadata: &Metadata, tokenizer: &Tokenizer) -> Result<Option<u32>, TokenizerError> {
        for key in self.keys {
            if let Some(id) = special_ids(metadata, key)?.into_iter().find(|id| tokenizer.kind(*id).is_some()) {
                return Ok(Some(id));
            }
        }
        Ok(self.names.iter().find_map(|name| tokenizer.special_id(name)))
    }
}

/// The tokens around the texts before and behind what the model is to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Infill {
    prefix: u32,
    suffix: u32,
    middle: u32,
}

impl Infill {
    /// Those of a file; `None` if it has not all three.
    ///
    /// # Errors
    /// A key whose value is not a token id.
    pub fn from_metadata(metadata: &Metadata, tokenizer: &Tokenizer) -> Result<Option<Self>, TokenizerError> {
        let find = |marker: Marker| marker.find(metadata, tokenizer);
        Ok(match (find(PREFIX)?, find(SUFFIX)?, find(MIDDLE)?) {
            (Some(prefix), Some(suffix), Some(middle)) => Some(Self { prefix, suffix, middle }),
            _ => None,
        })
    }

    /// A prompt whose answer belongs between these texts.
    #[must_use]
    pub fn encode(self, tokenizer: &Tokenizer, before: &str, after: &str) -> Vec<u32> {
        let mut tokens = tokenizer.encode_prompt("", SpecialText::Literal);
        for (marker, text) in [(self.prefix, before), (self.suffix, after)] {
            tokens.push(marker);
            tokens.extend(tokenizer.encode(text, SpecialText::Literal));
        }
        tokens.push(self.middle);
        tokens
    }
}
