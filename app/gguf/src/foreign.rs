//! Names files that are not GGUF by how they begin, so that a person learns which file to take instead.

use std::fmt;

/// Bytes that [`ForeignFile::identify`] looks at; of a shorter file all of them.
pub(crate) const LOOKED_AT: u64 = 512;

/// What a file is that is not GGUF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignFile {
    /// The web page beside a download, or a server's error page.
    WebPage,
    /// What Git stores in place of a large file.
    GitLfsPointer,
    /// `ggml`, `ggmf`, `ggjt`: llama.cpp's files before GGUF, and whisper.cpp's.
    OldGgml,
    /// `ggla`: llama.cpp's adapters before GGUF.
    OldAdapter,
    /// Hugging Face's weights, with a JSON header behind its length.
    Safetensors,
    /// PyTorch's weights: an archive of pickled objects, or a bare pickle.
    PyTorch,
    /// A list, a configuration or an answer of a server.
    Json,
    /// ONNX: a protocol buffer that begins with its version and its producer.
    Onnx,
    /// An archive or a compressed file, by its usual extension.
    Packed(&'static str),
    /// A program that has a model inside.
    Llamafile,
    /// A picture, document or program.
    Other(&'static str),
    /// Space that a download reserved.
    Zeros,
    /// Text of any kind.
    Text,
}

/// Beginnings that need no second look.
const BEGINNINGS: &[(&[u8], ForeignFile)] = &[
    (b"version https://git-lfs", ForeignFile::GitLfsPointer),
    (b"lmgg", ForeignFile::OldGgml),
    (b"fmgg", ForeignFile::OldGgml),
    (b"tjgg", ForeignFile::OldGgml),
    (b"algg", ForeignFile::OldAdapter),
    (b"\x1f\x8b", ForeignFile::Packed("gz")),
    (b"\x28\xb5\x2f\xfd", ForeignFile::Packed("zst")),
    (b"\xfd7zXZ\0", ForeignFile::Packed("xz")),
    (b"7z\xbc\xaf\x27\x1c", ForeignFile::Packed("7z")),
    (b"BZh", ForeignFile::Packed("bz2")),
    (b"Rar!", ForeignFile::Packed("rar")),
    (b"\x04\x22\x4d\x18", ForeignFile::Packed("lz4")),
    (b"MZqFpD", ForeignFile::Llamafile),
    (b"MZ", ForeignFile::Other("a program")),
    (b"\x7fELF", ForeignFile::Other("a program")),
    (b"%PDF", ForeignFile::Other("a PDF document")),
    (b"\x89PNG", ForeignFile::Other("a picture")),
    (b"\xff\xd8\xff", ForeignFile::Other("a picture")),
    (b"\x89HDF", ForeignFile::Other("an HDF5 file, as Keras writes them")),
    (b"\x93NUMPY", ForeignFile::Other("a NumPy array")),
];
/// In the first local name of PyTorch's archives.
const PICKLE_NAME: &[u8] = b"data.pkl";
/// Where a tar archive names itself.
const TAR_NAME: std::ops::Range<usize> = 257..262;

impl ForeignFile {
    /// What a file that begins so is; `None` if nobody knows.
    pub fn identify(head: &[u8]) -> Option<Self> {
        let head = &head[..head.len().min(LOOKED_AT as usize)];
        if !head.is_empty() && head.iter().all(|byte| *byte == 0) {
            return Some(Self::Zeros);
        }
        if let Some((_, file)) = BEGINNINGS.iter().find(|(beginning, _)| head.starts_with(beginning)) {
            return Some(*file);
        }
        match head {
            [b'P', b'K', 3, 4, ..] if head.windows(PICKLE_NAME.len()).any(|part| part == PICKLE_NAME) => {
                Some(Self::PyTorch)
            }
            [b'P', b'K', 3, 4, ..] => Some(Self::Packed("zip")),
            // A pickle of protocol 2 to 5 begins with a list or with its length.
            [0x80, 2..=5, ..] => Some(Self::PyTorch),
            [_, _, _, _, _, 0, 0, 0, b'{', b'"' | b' ' | b'}', ..] => Some(Self::Safetensors),
            [_, _, _, _, b'T', b'F', b'L', b'3', ..] => Some(Self::Other("a TensorFlow Lite model")),
            [8, 1..=20, 0x12, ..] => Some(Self::Onnx),
            _ if head.get(TAR_NAME).is_some_and(|name| name == b"ustar") => Some(Self::Packed("tar")),
            _ => text(head),
        }
    }
}

/// A kind of text, if all of it is text.
fn text(head: &[u8]) -> Option<ForeignFile> {
    // The last character may be cut.
    let whole = match std::str::from_utf8(head) {
        Ok(whole) => whole,
        Err(error) if error.error_len().is_none() => std::str::from_utf8(&head[..error.valid_up_to()]).ok()?,
        Err(_) => return None,
    };
    if whole.chars().any(|c| c.is_control() && !c.is_whitespace()) {
        return None;
    }
    let start = whole.trim_start_matches('\u{feff}').trim_start();
    Some(match start.chars().next() {
        Some('<') => ForeignFile::WebPage,
        Some('{' | '[') => ForeignFile::Json,
        _ => ForeignFile::Text,
    })
}

impl fmt::Display for ForeignFile {
    /// What it is and what to do, as the end of a sentence that says what it is not.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = match self {
            Self::WebPage => "a web page; use the link of the download itself, which ends in \".gguf\"",
            Self::GitLfsPointer => {
                "the note that Git keeps in place of a large file; download the file itself, for example with \"git lfs pull\""
            }
            Self::OldGgml => {
                "a file of the time before GGUF, or one of whisper.cpp; choose a newer file of this model, which ends in \
                 \".gguf\""
            }
            Self::OldAdapter => "an adapter (LoRA) of the time before GGUF; choose a whole model",
            Self::Safetensors => {
                "weights in the format safetensors; choose a GGUF file of this model, or convert it with llama.cpp"
            }
            Self::PyTorch => {
                "weights in PyTorch's format; choose a GGUF file of this model, or convert it with llama.cpp"
            }
            Self::Json => {
                "a JSON text, such as a configuration, a list of files or a server's message; choose the model's \
                 file, which ends in \".gguf\""
            }
            Self::Onnx => "a model in the format ONNX; choose a GGUF file of this model",
            Self::Packed(extension) => {
                return write!(f, "a packed file (.{extension}); unpack it, and choose the .gguf file in it");
            }
            Self::Llamafile => "a llamafile, a program with a model inside; choose the model's own .gguf file",
            Self::Other(what) => return write!(f, "{what}; choose a file that ends in \".gguf\""),
            Self::Zeros => "filled with zeros, so its download has not finished; download it again",
            Self::Text => "a text; choose the model's file, which ends in \".gguf\"",
        };
        f.write_str(said)
    }
}
