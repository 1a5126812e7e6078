//! What people paste as a link to a model: as a browser, a chat, a mail or another program's command line has it.

use thiserror::Error;

use crate::hub::{HUB_NAMES, Repository, file_address, unescaped};

/// A link to a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelLink {
    /// The address of a file.
    File(String),
    /// A repository: one of its files is to be chosen.
    Repository(Repository),
}

/// Why a text is no link to a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BadModelLink {
    /// No address can be made out.
    #[error("no address")]
    NoAddress,
    /// The address is of something else.
    #[error("not a GGUF file")]
    NotGguf,
}

impl std::str::FromStr for ModelLink {
    type Err = BadModelLink;

    fn from_str(text: &str) -> Result<Self, BadModelLink> {
        let words = words(text);
        let mut wrong = BadModelLink::NoAddress;
        for (index, word) in words.iter().enumerate() {
            let after_option = index > 0 && OPTIONS.contains(&words[index - 1].as_str());
            match read(word, words.len() == 1 || after_option) {
                Err(BadModelLink::NoAddress) => {}
                // What is wrong with an address says more than that a word is none.
                Err(BadModelLink::NotGguf) => wrong = BadModelLink::NotGguf,
                link => return link,
            }
        }
        Err(wrong)
    }
}

impl ModelLink {
    /// True if a text that may also be a name or a path can only be a link.
    #[must_use]
    pub fn is_meant(text: &str) -> bool {
        let text = text.trim_start_matches(|letter: char| letter.is_whitespace() || WRAPPING.contains(&letter));
        text.contains("://") || hub_path(text).is_some()
    }
}

/// Options of other programs that name a repository.
const OPTIONS: [&str; 4] = ["-hf", "-hfr", "--hf-repo", "--hf"];
/// What texts put around a link.
const WRAPPING: [char; 18] =
    ['<', '>', '(', ')', '[', ']', '"', '\'', '`', '“', '”', '„', '‘', '’', '«', '»', ',', ';'];

/// The words of a text, without what is around links. A link that a mail has broken into lines is one word.
fn words(text: &str) -> Vec<String> {
    // Markdown: the address is in brackets behind the words.
    let text = text.split_once("](").map_or(text, |(_, rest)| rest.split(')').next().unwrap_or(rest));
    let has_blanks = text.trim().chars().any(|letter| letter.is_whitespace() && !matches!(letter, '\n' | '\r'));
    let lines: Vec<&str> = text.split_whitespace().collect();
    let is_broken = lines.len() > 1 && !has_blanks && !lines.iter().skip(1).any(|line| line.contains("://"));
    let parts = if is_broken { vec![lines.concat()] } else { lines.iter().map(ToString::to_string).collect() };
    // Blanks that cannot be seen come along when a link is copied from some pages.
    let visible = |letter: &char| !matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{ad}');
    let is_behind = |letter: char| letter == '.' || WRAPPING.contains(&letter);
    parts
        .iter()
        .map(|part| part.chars().filter(visible).collect::<String>())
        .map(|part| part.trim_start_matches(&WRAPPING[..]).trim_end_matches(is_behind).to_owned())
        .filter(|part| !part.is_empty())
        .collect()
}

/// What follows the Hub's name, if a text without a scheme begins with it.
fn hub_path(text: &str) -> Option<&str> {
    let (host, path) = text.split_once('/')?;
    HUB_NAMES.iter().any(|name| host.eq_ignore_ascii_case(name)).then_some(path)
}

/// `may_be_name`: `OWNER/REPO` alone is a repository, too.
fn read(word: &str, may_be_name: bool) -> Result<ModelLink, BadModelLink> {
    if let Some((scheme, rest)) = word.split_once("://") {
        return match scheme.to_ascii_lowercase().as_str() {
            "hf" => of_hub(rest.strip_prefix("models/").unwrap_or(rest)),
            "http" | "https" => match hub_path(rest) {
                Some(path) => of_hub(path),
                None => of_server(&format!("{}://{rest}", scheme.to_ascii_lowercase())),
            },
            _ => Err(BadModelLink::NoAddress),
        };
    }
    if let Some(path) = hub_path(word) {
        return of_hub(path);
    }
    let (first, rest) = word.split_once('/').ok_or(BadModelLink::NoAddress)?;
    let host = first.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok()).map_or(first, |(host, _)| host);
    let is_this_device = host == "localhost" || host.starts_with("127.");
    if is_this_device || (host.contains('.') && names_gguf(rest)) {
        return of_server(&format!("{}://{word}", if is_this_device { "http" } else { "https" }));
    }
    let is_name = may_be_name && !first.is_empty() && !rest.is_empty() && !rest.contains('/') && !names_gguf(rest);
    if is_name { of_hub(word) } else { Err(BadModelLink::NoAddress) }
}

/// True if a file of weights is named somewhere: signed links name it in their query.
fn names_gguf(text: &str) -> bool {
    text.to_ascii_lowercase().contains(".gguf")
}

/// A link to a file on any server.
fn of_server(url: &str) -> Result<ModelLink, BadModelLink> {
    let url = url.split('#').next().unwrap_or(url);
    if !names_gguf(url) {
        return Err(BadModelLink::NotGguf);
    }
    Ok(ModelLink::File(url.to_owned()))
}

/// Words behind the name of a repository, before those of a revision.
const VIEWS: [&str; 4] = ["blob", "resolve", "raw", "tree"];

/// What follows the Hub's name.
fn of_hub(path: &str) -> Result<ModelLink, BadModelLink> {
    let path = path.split('#').next().unwrap_or(path);
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let (&[owner, repository], rest) = parts.split_first_chunk::<2>().ok_or(BadModelLink::NotGguf)?;
    // The oldest repositories have no owner.
    if VIEWS.contains(&repository) && !rest.is_empty() {
        return of_view(owner, &parts[1..]).unwrap_or(Err(BadModelLink::NotGguf));
    }
    if matches!(owner, "datasets" | "spaces" | "collections" | "models" | "docs" | "blog" | "papers" | "api") {
        // Files of data sets have addresses of the same form, one place farther.
        let path = path.replacen("/blob/", "/resolve/", 1);
        return of_server(&format!("https://{}/{path}", HUB_NAMES[0]));
    }
    let (repository, wanted) = match repository.split_once(':') {
        Some((repository, wanted)) => {
            (repository, Some(wanted).filter(|wanted| !wanted.is_empty() && *wanted != "latest"))
        }
        None => (repository, None),
    };
    let name = format!("{owner}/{repository}");
    // The page shows what is in a file beside the repository.
    let shown = query.split('&').find_map(|part| part.strip_prefix("show_file_info="));
    if let Some(file) = shown.filter(|file| names_gguf(file)) {
        return Ok(ModelLink::File(file_address(&name, "main", &file.replace("%2F", "/"))));
    }
    let whole = Repository {
        name: name.clone(),
        revision: "main".to_owned(),
        wanted: wanted.map(str::to_owned),
        ..Repository::default()
    };
    of_view(&name, rest).unwrap_or(Ok(ModelLink::Repository(whole)))
}

/// What a page about a part of a repository leads to, by the words behind the repository's name; nothing if it is about all of it.
fn of_view(name: &str, rest: &[&str]) -> Option<Result<ModelLink, BadModelLink>> {
    match rest {
        ["blob" | "resolve" | "raw", revision, file @ ..] if !file.is_empty() => {
            let file = file.join("/");
            let is_gguf = names_gguf(&file);
            Some(is_gguf.then(|| ModelLink::File(file_address(name, revision, &file))).ok_or(BadModelLink::NotGguf))
        }
        ["tree", revision, folder @ ..] => Some(Ok(ModelLink::Repository(Repository {
            name: name.to_owned(),
            revision: (*revision).to_owned(),
            folder: unescaped(&folder.join("/")),
            wanted: None,
        }))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "https://huggingface.co/owner/Model-GGUF/resolve/main/Model-Q4_K_M.gguf";

    fn file(text: &str) -> Option<String> {
        match text.parse::<ModelLink>() {
            Ok(ModelLink::File(address)) => Some(address),
            _ => None,
        }
    }

    #[test]
    fn links_of_files_lead_to_the_file_however_they_were_copied() {
        for text in [
            FILE,
            "https://huggingface.co/owner/Model-GGUF/blob/main/Model-Q4_K_M.gguf",
            "https://huggingface.co/owner/Model-GGUF/raw/main/Model-Q4_K_M.gguf",
            "https://huggingface.co/owner/Model-GGUF/resolve/main/Model-Q4_K_M.gguf?download=true",
            "https://huggingface.co/owner/Model-GGUF/blob/main/Model-Q4_K_M.gguf?library=x#L1",
            "https://huggingface.co/owner/Model-GGUF?show_file_info=Model-Q4_K_M.gguf",
            "https://www.huggingface.co/owner/Model-GGUF/blob/main/Model-Q4_K_M.gguf",
            "HTTPS://HuggingFace.co/owner/Model-GGUF/blob/main/Model-Q4_K_M.gguf",
            "http://huggingface.co/owner/Model-GGUF/blob/main/Model-Q4_K_M.gguf",
            "huggingface.co/owner/Model-GGUF/blob/main/Model-Q4_K_M.gguf",
            "hf.co/owner/Model-GGUF/resolve/main/Model-Q4_K_M.gguf",
            "hf://owner/Model-GGUF/blob/main/Model-Q4_K_M.gguf",
            "  https://huggingface.co/owner/Model-GGUF/resolve/main/Model-Q4_K_M.gguf \r\n",
            "<https://huggingface.co/owner/Model-GGUF/resolve/main/Model-Q4_K_M.gguf>",
            "\"https://huggingface.co/owner/Model-GGUF/resolve/main/Model-Q4_K_M.gguf\"",
            "“https://huggingface.co/owner/Model-GGUF/resolve/main/Model-Q4_K_M.gguf”.",
            "`https://huggingface.co/owner/Model-GGUF/resolve/main/Model-Q4_K_M.gguf`,",
            "[Model](https://huggingface.co/owner/Model-GGUF/resolve/main/Model-Q4_K_M.gguf)",
            "https://huggingface.co/owner/Model-GGUF/resolve/\nmain/Model-Q4_K_M.gguf",
            "\u{200b}https://huggingface.co/owner/Model-GGUF/resolve/main/Model-Q4_K_M.gguf\u{feff}",
            "wget -c https://huggingface.co/owner/Model-GGUF/resolve/main/Model-Q4_K_M.gguf?download=true",
            "Try this one: https://huggingface.co/owner/Model-GGUF/blob/main/Model-Q4_K_M.gguf, it is good.",
        ] {
            assert_eq!(file(text).as_deref(), Some(FILE), "{text:?}");
        }
    }

    #[test]
    fn links_of_other_servers_stay_as_they_are() {
        for (text, address) in [
            ("https://example.org/a/model.gguf", "https://example.org/a/model.gguf"),
            ("example.org/a/model.gguf", "https://example.org/a/model.gguf"),
            ("localhost:8080/model.gguf", "http://localhost:8080/model.gguf"),
            ("http://192.168.1.9:8080/M.GGUF", "http://192.168.1.9:8080/M.GGUF"),
            ("https://me:word@example.org/model.gguf?a=1&b=2", "https://me:word@example.org/model.gguf?a=1&b=2"),
            (
                "https://cdn.example/3f?filename=model.gguf&sign=%2B",
                "https://cdn.example/3f?filename=model.gguf&sign=%2B",
            ),
            ("https://example.org/model.gguf#part", "https://example.org/model.gguf"),
            (
                "https://code.example/o/r/blob/main/m.gguf?raw=true",
                "https://code.example/o/r/blob/main/m.gguf?raw=true",
            ),
            (
                "https://huggingface.co/gpt2/blob/main/x.gguf?download=true",
                "https://huggingface.co/gpt2/resolve/main/x.gguf",
            ),
            (
                "https://huggingface.co/datasets/o/r/blob/main/x.gguf",
                "https://huggingface.co/datasets/o/r/resolve/main/x.gguf",
            ),
        ] {
            assert_eq!(file(text).as_deref(), Some(address), "{text:?}");
        }
    }

    #[test]
    fn links_of_repositories_keep_what_was_wanted_of_them() {
        let main = |wanted: Option<&str>| Repository {
            name: "owner/Model-GGUF".to_owned(),
            revision: "main".to_owned(),
            folder: String::new(),
            wanted: wanted.map(str::to_owned),
        };
        for (text, repository) in [
            ("https://huggingface.co/owner/Model-GGUF", main(None)),
            ("huggingface.co/owner/Model-GGUF/", main(None)),
            ("https://huggingface.co/owner/Model-GGUF/discussions/3", main(None)),
            ("hf.co/owner/Model-GGUF:Q4_K_M", main(Some("Q4_K_M"))),
            ("hf.co/owner/Model-GGUF:latest", main(None)),
            ("owner/Model-GGUF:Q4_K_M", main(Some("Q4_K_M"))),
            ("ollama run hf.co/owner/Model-GGUF:Q4_K_M", main(Some("Q4_K_M"))),
            ("llama-server -hf owner/Model-GGUF:Q4_K_M -c 4096", main(Some("Q4_K_M"))),
            (
                "https://huggingface.co/owner/Model-GGUF/tree/main/sub",
                Repository { folder: "sub".into(), ..main(None) },
            ),
            (
                "https://huggingface.co/owner/Model-GGUF/tree/main/a%20b",
                Repository { folder: "a b".into(), ..main(None) },
            ),
            ("https://huggingface.co/gpt2/tree/main", Repository { name: "gpt2".into(), ..main(None) }),
            ("https://huggingface.co/owner/Model-GGUF/tree/v2", Repository { revision: "v2".into(), ..main(None) }),
        ] {
            assert_eq!(text.parse::<ModelLink>(), Ok(ModelLink::Repository(repository)), "{text:?}");
        }
    }

    #[test]
    fn other_texts_are_no_links() {
        for (text, error) in [
            ("", BadModelLink::NoAddress),
            ("model.gguf", BadModelLink::NoAddress),
            ("folder/model.gguf", BadModelLink::NoAddress),
            ("a model about whales/and dolphins", BadModelLink::NoAddress),
            ("ftp://example.org/model.gguf", BadModelLink::NoAddress),
            ("https://example.org/model.safetensors", BadModelLink::NotGguf),
            ("https://huggingface.co/owner/Model/blob/main/README.md", BadModelLink::NotGguf),
            ("https://huggingface.co/models?search=gguf", BadModelLink::NotGguf),
            ("https://huggingface.co/owner", BadModelLink::NotGguf),
        ] {
            assert_eq!(text.parse::<ModelLink>(), Err(error), "{text:?}");
        }
    }

    #[test]
    fn a_name_of_the_relay_or_a_path_is_not_taken_for_a_link() {
        for text in ["https://example.org/m.gguf", "hf.co/owner/repo", "<https://example.org/m.gguf>", "hf://o/r"] {
            assert!(ModelLink::is_meant(text), "{text}");
        }
        for text in ["embedded", "owner/repo", "./model.gguf", "C:\\model.gguf"] {
            assert!(!ModelLink::is_meant(text), "{text}");
        }
    }
}
