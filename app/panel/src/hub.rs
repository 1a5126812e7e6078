//! Repositories on the Hub: their addresses and their lists of files.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Names of the Hub; the first one is used.
pub const HUB_NAMES: [&str; 3] = ["huggingface.co", "www.huggingface.co", "hf.co"];

/// A repository on the Hub.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repository {
    /// `OWNER/REPO`.
    pub name: String,
    /// Branch, tag or commit.
    pub revision: String,
    /// The folder that is meant; empty for all.
    pub folder: String,
    /// The quantization that is meant, such as `Q4_K_M`.
    pub wanted: Option<String>,
}

/// A GGUF file of a repository; of a split model, its first file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedFile {
    /// Its path in the repository.
    pub path: String,
    /// Its length; of a split model, the length of all its files.
    pub bytes: u64,
    /// Its address.
    pub address: String,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    path: String,
    #[serde(default)]
    size: u64,
}

impl Repository {
    /// Where the list of its files is.
    #[must_use]
    pub fn listing(&self) -> String {
        let folder = if self.folder.is_empty() { String::new() } else { format!("/{}", escaped(&self.folder)) };
        let (hub, name, revision) = (HUB_NAMES[0], escaped(&self.name), &self.revision);
        format!("https://{hub}/api/models/{name}/tree/{revision}{folder}?recursive=true")
    }

    /// The models in a list of its files, smallest first: those of the quantization that is meant, if there are any. None if the
    /// text is no list.
    #[must_use]
    pub fn files(&self, listing: &str) -> Option<Vec<ListedFile>> {
        let entries: Vec<Entry> = serde_json::from_str(listing).ok()?;
        // By the name without the number of a part: the first part, the bytes of all, how many there are and should be.
        let mut models: BTreeMap<String, (String, u64, usize, usize)> = BTreeMap::new();
        for Entry { path, size } in entries.into_iter().filter(|entry| is_model(&entry.path)) {
            let (model, number, parts) = split(&path);
            let (first, bytes, found, _) = models.entry(model).or_insert((String::new(), 0, 0, parts));
            if number == 1 {
                *first = path;
            }
            *bytes = bytes.saturating_add(size);
            *found += 1;
        }
        let complete = models.into_values().filter(|(first, _, found, parts)| !first.is_empty() && found == parts);
        let mut files: Vec<ListedFile> = complete
            .map(|(path, bytes, ..)| ListedFile {
                address: file_address(&self.name, &self.revision, &escaped(&path)),
                path,
                bytes,
            })
            .collect();
        files.sort_by(|a, b| (a.bytes, &a.path).cmp(&(b.bytes, &b.path)));
        if files.iter().any(|file| self.is_wanted(file)) {
            files.retain(|file| self.is_wanted(file));
        }
        Some(files)
    }
}

impl Repository {
    /// True if a file is what the link asked for; of a repository without more, every file is.
    #[must_use]
    pub fn is_wanted(&self, file: &ListedFile) -> bool {
        self.wanted.as_ref().is_none_or(|wanted| is_of(&file.path, wanted))
    }
}

/// The address of a file, whose path is escaped.
pub(crate) fn file_address(repository: &str, revision: &str, path: &str) -> String {
    format!("https://{}/{repository}/resolve/{revision}/{path}", HUB_NAMES[0])
}

/// Weights of a language model: no part of one that reads pictures, and no statistics for quantizing.
fn is_model(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    let name = path.rsplit('/').next().unwrap_or_default();
    name.ends_with(".gguf") && !name.contains("mmproj") && !name.contains("imatrix")
}

/// The name of a model, the number of this part of it, and how many parts it has.
fn split(path: &str) -> (String, usize, usize) {
    let parts = || {
        let (stem, count) = path.strip_suffix(".gguf")?.rsplit_once("-of-")?;
        let (stem, number) = stem.rsplit_once('-')?;
        let number_of = |text: &str| (text.len() == 5).then(|| text.parse::<usize>().ok()).flatten();
        Some((stem.to_owned(), number_of(number)?, number_of(count)?))
    };
    parts().unwrap_or_else(|| (path.to_owned(), 1, 1))
}

/// True if a path names a quantization as a whole word: `Q4_K` is not in `Q4_K_M`.
fn is_of(path: &str, wanted: &str) -> bool {
    let (path, wanted) = (path.to_ascii_lowercase(), wanted.to_ascii_lowercase());
    let name = path.strip_suffix(".gguf").unwrap_or(&path);
    let is_edge = |letter: Option<char>| letter.is_none_or(|letter| matches!(letter, '-' | '.' | '/'));
    name == wanted.strip_suffix(".gguf").unwrap_or(&wanted)
        || name
            .match_indices(&wanted)
            .any(|(at, _)| is_edge(name[..at].chars().next_back()) && is_edge(name[at + wanted.len()..].chars().next()))
}

/// The path that an address has; the text itself if it is none.
pub(crate) fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, others @ ..] = rest {
        let digits = others.get(..2).filter(|_| *first == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &others[2..];
            }
            None => {
                bytes.push(*first);
                rest = others;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// A path as addresses have it.
fn escaped(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/+=,@!$&'()*:;".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTING: &str = r#"[
        {"type": "directory", "oid": "1", "size": 0, "path": "Q8_0"},
        {"type": "file", "oid": "2", "size": 1519, "path": ".gitattributes"},
        {"type": "file", "oid": "3", "size": 400, "path": "Model-Q4_K_M.gguf", "lfs": {"oid": "a", "size": 400}},
        {"type": "file", "oid": "4", "size": 300, "path": "Model-UD-Q4_K_XL.gguf"},
        {"type": "file", "oid": "5", "size": 200, "path": "Model Q2_K #1.gguf"},
        {"type": "file", "oid": "6", "size": 50, "path": "mmproj-Model-F16.gguf"},
        {"type": "file", "oid": "7", "size": 60, "path": "imatrix_unsloth.gguf"},
        {"type": "file", "oid": "8", "size": 500, "path": "Q8_0/Model-Q8_0-00002-of-00002.gguf"},
        {"type": "file", "oid": "9", "size": 600, "path": "Q8_0/Model-Q8_0-00001-of-00002.gguf"},
        {"type": "file", "oid": "a", "size": 600, "path": "BF16/Model-BF16-00001-of-00003.gguf"}
    ]"#;

    fn repository(wanted: Option<&str>) -> Repository {
        Repository {
            name: "owner/Model-GGUF".to_owned(),
            revision: "main".to_owned(),
            folder: String::new(),
            wanted: wanted.map(str::to_owned),
        }
    }

    fn listed(wanted: Option<&str>) -> Vec<(String, u64)> {
        let files = repository(wanted).files(LISTING).unwrap_or_default();
        files.into_iter().map(|file| (file.path, file.bytes)).collect()
    }

    #[test]
    fn models_are_listed_by_size_with_all_their_parts() {
        let expected = [
            ("Model Q2_K #1.gguf", 200),
            ("Model-UD-Q4_K_XL.gguf", 300),
            ("Model-Q4_K_M.gguf", 400),
            ("Q8_0/Model-Q8_0-00001-of-00002.gguf", 1_100),
        ];
        assert_eq!(listed(None), expected.map(|(path, bytes)| (path.to_owned(), bytes)));
    }

    #[test]
    fn a_quantization_is_found_by_its_whole_name() {
        for (wanted, path) in [
            ("Q4_K_M", "Model-Q4_K_M.gguf"),
            ("q4_k_m", "Model-Q4_K_M.gguf"),
            ("Q4_K_XL", "Model-UD-Q4_K_XL.gguf"),
            ("Q8_0", "Q8_0/Model-Q8_0-00001-of-00002.gguf"),
            ("Model-Q4_K_M.gguf", "Model-Q4_K_M.gguf"),
        ] {
            let found = listed(Some(wanted));
            assert_eq!(found.iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>(), [path], "{wanted}");
        }
        for unknown in ["Q4_K", "Q5_K_M"] {
            assert_eq!(listed(Some(unknown)).len(), 4, "all are shown where {unknown} is missing");
            let repository = repository(Some(unknown));
            let files = repository.files(LISTING).unwrap_or_default();
            assert!(!files.iter().any(|file| repository.is_wanted(file)), "but none is {unknown}");
        }
    }

    #[test]
    fn addresses_of_listed_files_are_escaped() {
        let files = repository(None).files(LISTING).unwrap_or_default();
        assert_eq!(files[0].address, "https://huggingface.co/owner/Model-GGUF/resolve/main/Model%20Q2_K%20%231.gguf");
        let folder = Repository { folder: unescaped("a%20b/%C3%A4"), ..repository(None) };
        let expected = "https://huggingface.co/api/models/owner/Model-GGUF/tree/main/a%20b/%C3%A4?recursive=true";
        assert_eq!(folder.listing(), expected);
    }

    #[test]
    fn what_is_no_escape_stays() {
        for (text, path) in
            [("a%20b", "a b"), ("100%", "100%"), ("%2", "%2"), ("%+1", "%+1"), ("%FF", "%FF"), ("ä", "ä")]
        {
            assert_eq!(unescaped(text), path, "{text}");
        }
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for text in ["", "<html>", "{\"error\": \"Repository not found\"}"] {
            assert_eq!(repository(None).files(text), None, "{text}");
        }
        assert_eq!(repository(None).files("[]"), Some(Vec::new()));
    }
}
