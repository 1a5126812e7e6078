//! What people paste as a link to a model: as a browser, a chat, a mail or another program's command line has it.

use thiserror::Error;

use crate::file_pages::{file_of_page, plain, plain_path};
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
                Ok(link) => return Ok(link.with_file_named(&words[index + 1..])),
            }
        }
        // A file's name may have blanks.
        let text = text.trim_matches(|letter: char| letter.is_whitespace() || WRAPPING.contains(&letter));
        let is_one = text.matches("://").count() == 1 && text.to_ascii_lowercase().ends_with(".gguf");
        let has_blanks = text.contains(' ') && !text.contains(['\n', '\r']);
        let is_address = ["http://", "https://"].iter().any(|scheme| text.to_ascii_lowercase().starts_with(scheme));
        if is_one && has_blanks && is_address { read(&plain(text), false) } else { Err(wrong) }
    }
}

impl ModelLink {
    /// Where a repository alone was named, the file or quantization that is named behind it.
    fn with_file_named(self, words: &[String]) -> Self {
        let Self::Repository(repository @ Repository { wanted: None, .. }) = self else { return self };
        let is_file = |word: &&String| word.to_ascii_lowercase().ends_with(".gguf") && !word.contains("://");
        let behind = |option: &&str| words.iter().position(|word| word == option).and_then(|at| words.get(at + 1));
        let named = FILE_OPTIONS.iter().find_map(behind).or_else(|| words.iter().find(is_file));
        Self::Repository(Repository { wanted: named.and_then(|named| without_stars(named)), ..repository })
    }

    /// True if a text that may also be a name or a path can only be a link.
    #[must_use]
    pub fn is_meant(text: &str) -> bool {
        let text = text.trim_start_matches(|letter: char| letter.is_whitespace() || WRAPPING.contains(&letter));
        text.contains("://") || hub_path(text).is_some()
    }
}

/// Options of other programs that name a repository.
const OPTIONS: [&str; 6] = ["-hf", "-hfr", "--hf-repo", "--hf", "download", "repo_id"];
/// Options of other programs that name files of a repository.
const FILE_OPTIONS: [&str; 4] = ["-hff", "--hf-file", "--include", "filename"];
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
    // Python: `repo_id="OWNER/REPO"`.
    let named = |part: String| match part.split_once('=') {
        Some((name @ ("repo_id" | "filename"), value)) => vec![name.to_owned(), value.to_owned()],
        _ => vec![part],
    };
    parts
        .into_iter()
        .flat_map(named)
        .map(|part| part.chars().filter(visible).collect::<String>())
        .map(|part| part.trim_start_matches(&WRAPPING[..]).trim_end_matches(is_behind).to_owned())
        .filter(|part| !part.is_empty())
        .collect()
}

/// `Q4_K_M` of `*Q4_K_M*`, `q8_0` of `*q8_0.gguf`; the name of a file as it is.
fn without_stars(pattern: &str) -> Option<String> {
    let name = pattern.trim_matches(['*', '/', '.']);
    let name = if pattern.contains('*') { name.strip_suffix(".gguf").unwrap_or(name) } else { name };
    (!name.is_empty()).then(|| name.to_owned())
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
            // What the Hub's button for LM Studio opens.
            "lmstudio" => {
                let query = rest.split_once('?').map_or("", |(_, query)| query);
                let value = |name: &str| query.split('&').find_map(|part| part.strip_prefix(name)).map(unescaped);
                let model = value("model=").ok_or(BadModelLink::NoAddress)?;
                of_hub(&format!("{model}/{}", value("file=").unwrap_or_default()))
            }
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
    Ok(ModelLink::File(file_of_page(&plain(url))))
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
    // A file beside the repository's name: what is missing between them is known from the list.
    let is_file = rest.last().is_some_and(|file| names_gguf(file));
    let whole = if is_file { Repository { wanted: Some(unescaped(&rest.join("/"))), ..whole } } else { whole };
    of_view(&name, rest).unwrap_or(Ok(ModelLink::Repository(whole)))
}

/// What a page about a part of a repository leads to, by the words behind the repository's name; nothing if it is about all of it.
fn of_view(name: &str, rest: &[&str]) -> Option<Result<ModelLink, BadModelLink>> {
    match rest {
        ["blob" | "resolve" | "raw", revision, file @ ..] if !file.is_empty() => {
            let file = file.join("/");
            let is_gguf = names_gguf(&file);
            Some(
                is_gguf
                    .then(|| ModelLink::File(file_address(name, revision, &plain_path(&file))))
                    .ok_or(BadModelLink::NotGguf),
            )
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
mod tests;
