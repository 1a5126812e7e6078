//! File names of models, and the names of their tensors.

use potluck_gguf::TensorInfo;

/// The names of a model's tensors by where they lie.
#[derive(Clone, Debug, Default)]
pub struct TensorNames(Vec<(u16, u64, String)>);

impl TensorNames {
    /// The names of these tensors.
    pub fn new(tensors: &[TensorInfo]) -> Self {
        let mut names: Vec<_> =
            tensors.iter().map(|tensor| (tensor.file, tensor.offset, tensor.name.clone())).collect();
        names.sort();
        Self(names)
    }

    /// The name of the tensor with this byte of a file.
    pub fn of(&self, file: u16, offset: u64) -> Option<&str> {
        let after = self.0.partition_point(|(f, first, _)| (*f, *first) <= (file, offset));
        let (found, _, name) = self.0.get(after.checked_sub(1)?)?;
        (*found == file).then_some(name)
    }
}

/// The names of all files of a split model, from the name of the first. Any other name is returned as it is.
pub fn split_names(first: &str) -> Vec<String> {
    let (path, query) = first.split_at(first.find(['?', '#']).unwrap_or(first.len()));
    let split = || {
        let stem = path.strip_suffix(".gguf")?;
        let (stem, count) = stem.rsplit_once("-of-")?;
        let (stem, number) = stem.rsplit_once('-')?;
        let five = |text: &str| (text.len() == 5).then(|| text.parse::<u16>().ok()).flatten();
        let (number, count) = (five(number)?, five(count)?);
        let names = (1..=count).map(|number| format!("{stem}-{number:05}-of-{count:05}.gguf{query}"));
        (number == 1 && count > 0).then(|| names.collect())
    };
    split().unwrap_or_else(|| vec![first.to_owned()])
}

/// The file name without path and extension: `model` of `https://host/path/model.gguf?download=true`.
pub fn file_stem(path: &str) -> &str {
    let path = path.split(['?', '#']).next().unwrap_or(path);
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    name.strip_suffix(".gguf").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_name_of_a_split_gives_all_names() {
        let names = split_names("https://host/a/Model-Q4_K_M-00001-of-00003.gguf?download=true");
        assert_eq!(names.len(), 3);
        assert_eq!(names[2], "https://host/a/Model-Q4_K_M-00003-of-00003.gguf?download=true");
        for single in ["model.gguf", "model-00002-of-00003.gguf", "model-1-of-3.gguf", "a-of-b.gguf", "x"] {
            assert_eq!(split_names(single), [single]);
        }
    }

    #[test]
    fn a_file_stem_has_no_path_and_no_extension() {
        assert_eq!(file_stem("https://host/path/model.gguf?download=true"), "model");
        assert_eq!(file_stem("C:\\models\\tiny.gguf"), "tiny");
    }
}
