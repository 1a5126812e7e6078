//! Headers of GGUF files without bytes: metadata and a tensor directory.

use potluck_gguf::{GgufError, Header, Metadata, Model, TensorInfo, TensorType, Value, join};

/// Tensors begin here; headers are shorter.
const DATA_OFFSET: u64 = 4096;
/// Alignment of tensors, bytes.
const ALIGNMENT: u64 = 32;

/// The header of a GGUF file in the making.
#[derive(Clone, Debug)]
pub struct GgufFile {
    /// All metadata.
    pub metadata: Metadata,
    /// The tensor directory.
    pub tensors: Vec<TensorInfo>,
    end: u64,
}

impl GgufFile {
    /// A file of an architecture, without tensors.
    #[must_use]
    pub fn new(architecture: &str) -> Self {
        let mut metadata = Metadata::new();
        metadata.insert("general.architecture", architecture.into());
        Self { metadata, tensors: Vec::new(), end: DATA_OFFSET }
    }

    /// Sets a key with the architecture's prefix.
    pub fn set(&mut self, key: &str, value: impl Into<Value>) {
        let architecture = self.metadata.str("general.architecture").unwrap_or_default().to_owned();
        self.metadata.insert(format!("{architecture}.{key}"), value.into());
    }

    /// Adds a matrix (or a stack of them) in `Q8_0`; `dims` as GGUF orders them, the first a multiple of 32.
    pub fn matrix(&mut self, name: &str, dims: &[u64]) {
        self.tensor(name, TensorType::Q8_0, dims);
    }

    /// Adds a tensor in `F32`.
    pub fn vector(&mut self, name: &str, dims: &[u64]) {
        self.tensor(name, TensorType::F32, dims);
    }

    /// Adds a tensor after the last one.
    pub fn tensor(&mut self, name: &str, kind: TensorType, dims: &[u64]) {
        let bytes = dims.iter().product::<u64>() / kind.block_elements() * kind.block_bytes();
        let offset = self.end;
        self.end += bytes.next_multiple_of(ALIGNMENT);
        self.tensors.push(TensorInfo { name: name.into(), kind, dims: dims.into(), file: 0, offset, bytes });
    }

    /// A tensor by its name, to break it.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut TensorInfo> {
        self.tensors.iter_mut().find(|tensor| tensor.name == name)
    }

    /// The model of this one file.
    ///
    /// # Errors
    /// A directory that no file can have.
    pub fn model(&self) -> Result<Model, GgufError> {
        let (metadata, tensors) = (self.metadata.clone(), self.tensors.clone());
        join([Header { version: 3, alignment: ALIGNMENT, metadata, tensors, data_offset: DATA_OFFSET }])
    }
}
