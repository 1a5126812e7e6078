//! JSON bodies of the HTTP endpoints.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// Bytes of a group: the unit in which a file's content is hashed and checked. A power of two of BLAKE3's 1024-byte
/// chunks, so that a group is a subtree. Smaller groups make the hash list long; larger ones make small reads expensive,
/// because only whole groups can be checked.
pub const GROUP_BYTES: u64 = 64 * 1024;

/// `GET /models`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelList {
    /// [`GROUP_BYTES`].
    pub group_bytes: u64,
    /// The models that the relay serves.
    pub models: Vec<ModelEntry>,
}

/// A model that the relay serves: one file, or the parts of a split one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelEntry {
    /// The file name without its extension and part number.
    pub name: String,
    /// Bytes of all its files.
    pub bytes: u64,
    /// BLAKE3 root as 64 hexadecimal digits; `None` until all files are hashed.
    pub root: Option<String>,
    /// Whether it can be used.
    pub state: ModelState,
    /// `general.name`.
    pub title: Option<String>,
    /// `general.architecture`.
    pub architecture: Option<String>,
    /// As people name it: `Q4_K_M`, `F16`.
    pub quantization: Option<String>,
    /// Blocks (layers).
    pub blocks: Option<u32>,
    /// Experts per block; `None` for a dense model.
    pub experts: Option<u32>,
    /// Experts that a token uses per block.
    pub experts_used: Option<u32>,
    /// Tokens of context it was trained for.
    pub context: Option<u32>,
    /// The licence, as the file spells it.
    pub licence: Option<String>,
    /// All parameters.
    pub parameters: u64,
    /// Bytes of KV cache in 32-bit floats per token, over all blocks: lets the page say what fits before it reads a file.
    /// `None` where the header does not say.
    #[serde(rename = "state_bytes_per_position")]
    pub kv_cache_bytes_per_position: Option<u64>,
    /// Its files, in the order of the split.
    pub files: Vec<FileEntry>,
}

impl ModelEntry {
    /// Whether it is the small model that comes with this project.
    pub fn is_bundled(&self) -> bool {
        self.name.starts_with("potluck")
    }
}

/// Whether a model can be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "kebab-case")]
pub enum ModelState {
    /// Yes.
    Ready,
    /// Not yet: the relay is hashing its files.
    Hashing {
        /// Bytes hashed so far.
        done: u64,
        /// Bytes to hash.
        total: u64,
    },
    /// No.
    Broken {
        /// Why, as a sentence.
        message: String,
    },
}

/// A file of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Its file name.
    pub name: String,
    /// Its path on the relay, percent-encoded.
    pub url: String,
    /// Its length.
    pub bytes: u64,
    /// Its BLAKE3 hash as 64 hexadecimal digits; `None` until it is hashed.
    pub root: Option<String>,
    /// The path of its group hashes, 32 bytes each.
    pub groups: String,
}

/// `GET /rooms`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoomList {
    /// Visible rooms with their owner in them, newest first.
    pub rooms: Vec<RoomEntry>,
}

/// A room in the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoomEntry {
    /// Its id, for the link.
    pub id: String,
    /// What its host calls it.
    pub title: String,
    /// How many members are in it.
    pub members: u32,
    /// Seconds since it was opened.
    pub age_seconds: u64,
}

/// `GET /addresses`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Addresses {
    /// Where other devices reach the relay; empty if they cannot.
    pub urls: Vec<String>,
    /// Whether it listens for this machine only.
    pub local_only: bool,
    /// Whether an authority of its own signed its certificate, so that browsers warn until they trust that.
    pub self_signed: bool,
    /// SHA-256 as hexadecimal digits, for native peers: of its own authority, or of the certificate that its owner gave it; empty
    /// without TLS.
    #[serde(default)]
    pub fingerprint: String,
    /// Where another device learns to trust its own authority, over plain HTTP; empty if it has none or nobody reaches it.
    #[serde(default)]
    pub help: String,
}

/// The body of every answer that is not 2xx.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// What went wrong, for programs: `no-such-model`.
    pub error: Cow<'static, str>,
    /// The same as a sentence.
    pub message: String,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    #[test]
    fn a_model_list_keeps_its_json() {
        let json = r#"{"group_bytes":65536,"models":[{"name":"a","bytes":7,"root":null,
            "state":{"phase":"hashing","done":1,"total":7},"title":null,"architecture":"llama","quantization":"Q8_0",
            "blocks":4,"experts":null,"experts_used":null,"context":512,"licence":null,"parameters":9,
            "state_bytes_per_position":64,"files":[{"name":"a.gguf","url":"/models/a.gguf","bytes":7,"root":null,
            "groups":"/models/a.gguf.b3"}]}]}"#;
        let list: ModelList = serde_json::from_str(json).unwrap();
        assert_eq!(list.models[0].state, ModelState::Hashing { done: 1, total: 7 });
        assert_eq!(list.models[0].kv_cache_bytes_per_position, Some(64));
        let compact: String = json.split_whitespace().collect();
        assert_eq!(serde_json::to_string(&list).unwrap(), compact);
    }
}
