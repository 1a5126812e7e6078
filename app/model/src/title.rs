//! What people call a model: its own name or its file's.

/// Names of files that say nothing.
const NAMELESS: [&str; 4] = ["model", "ggmlmodel", "gguf", "unnamed"];
/// Hexadecimal digits that make a name a hash.
const HASH: usize = 32;

/// A model's title. Publishers write what they call a model into the file's name; `general.name` often has the name of a training run
/// (`own`; SmolLM2 says "Smollm2 135M 8k Lc100K Mix1 Ep2"). So it counts only if it has the file's name in it, or if the
/// file's name says nothing. `file` is the file's name without a folder; it may end with `.gguf`.
///
/// ```
/// use potluck_model::title;
///
/// assert_eq!(title(Some("Qwen2.5 Coder 0.5B Instruct"), "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"), "Qwen2.5 Coder 0.5B Instruct");
/// assert_eq!(title(Some("Smollm2 135M 8k Lc100K Mix1 Ep2"), "SmolLM2-135M-Instruct-Q4_K_M.gguf"), "SmolLM2-135M-Instruct");
/// ```
#[must_use]
pub fn title(own: Option<&str>, file: &str) -> String {
    let stem = without_types(file.strip_suffix(".gguf").unwrap_or(file));
    let Some(own) = own.map(str::trim).filter(|own| !own.is_empty()) else { return stem.to_owned() };
    let (of_own, of_file) = (letters(own), letters(stem));
    let is_hash = of_file.len() >= HASH && of_file.chars().rev().take(HASH).all(|letter| letter.is_ascii_hexdigit());
    let says_nothing = of_file.is_empty() || is_hash || NAMELESS.contains(&of_file.as_str());
    if says_nothing || of_own.contains(&of_file) { own.to_owned() } else { stem.to_owned() }
}

/// A file's name without the types of its weights and its place among the parts of a model at the end.
fn without_types(stem: &str) -> &str {
    let mut stem = stem;
    while let Some((rest, end)) = stem.rsplit_once(['-', '.']).filter(|(rest, _)| !rest.is_empty()) {
        if !is_type(end) && !is_part(end) {
            break;
        }
        stem = rest;
    }
    stem
}

/// `Q4_K_M`, `IQ2_XXS`, `UD`, `F16`, `MXFP4`.
fn is_type(text: &str) -> bool {
    let text = text.to_ascii_uppercase();
    let digits = ["IQ", "TQ", "Q"].iter().find_map(|start| text.strip_prefix(start));
    let is_quantized =
        digits.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()) && rest.contains('_'));
    is_quantized || ["F16", "F32", "BF16", "FP16", "MXFP4", "UD", "IMAT"].contains(&text.as_str())
}

/// `00001`, `of`, `00003`.
fn is_part(text: &str) -> bool {
    text == "of" || text.len() == 5 && text.bytes().all(|digit| digit.is_ascii_digit())
}

/// Letters and digits alone, small.
fn letters(text: &str) -> String {
    text.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_models_own_name_counts_if_it_says_what_the_files_does() {
        for (own, file, expected) in [
            ("Potluck small", "potluck-small-Q4_K_M.gguf", "Potluck small"),
            ("Meta Llama 3.1 8B Instruct", "Llama-3.1-8B-Instruct-IQ2_XXS", "Meta Llama 3.1 8B Instruct"),
            ("Gemma", "gemma-3-1b-it-BF16.gguf", "gemma-3-1b-it"),
            ("checkpoint-12000", "Mistral-7B-v0.3-00001-of-00003.gguf", "Mistral-7B-v0.3"),
            ("hf_out", "Qwen3-30B-A3B-UD-Q4_K_XL.gguf", "Qwen3-30B-A3B"),
        ] {
            assert_eq!(title(Some(own), file), expected);
        }
    }

    #[test]
    fn a_file_whose_name_says_nothing_has_the_models_own() {
        let hash = format!("sha256-{}", "0a".repeat(32));
        for file in ["model.gguf", "ggml-model-Q4_0.gguf", "Q8_0", hash.as_str()] {
            let expected = if file == "Q8_0" { "Q8_0" } else { "Tiny" };
            assert_eq!(title(Some("Tiny"), file), expected, "{file}");
        }
        assert_eq!(title(None, "model-F16.gguf"), "model", "there is no other name");
        assert_eq!(title(Some("  "), "soup.gguf"), "soup");
    }
}
