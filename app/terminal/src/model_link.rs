//! The model's link on the command line.

use potluck_node::platform::{HttpRequest, Platform};
use potluck_panel::{ListedFile, ModelLink, Repository};
use potluck_text::{bytes, texts};

use crate::failure::Failure;
use crate::output::print;
use crate::printable::Printable;

/// The address of the file that a text means, if the text is a link.
///
/// # Errors
/// It is the link of a repository whose files cannot be listed, or of which one is to be chosen.
pub(crate) async fn address(text: &str, platform: &Platform) -> Result<Option<String>, Failure> {
    if !ModelLink::is_meant(text) {
        return Ok(None);
    }
    match text.parse::<ModelLink>() {
        Ok(ModelLink::File(address)) => Ok(Some(address)),
        Ok(ModelLink::Repository(repository)) => {
            let files = list(&repository, platform).await?;
            choose(&repository, files).map(Some)
        }
        // Who gives a link of another form knows what is there.
        Err(_) if text.contains("://") => Ok(None),
        Err(_) => Err(Failure::Usage(texts().terminal.no_model_link(text))),
    }
}

async fn list(repository: &Repository, platform: &Platform) -> Result<Vec<ListedFile>, Failure> {
    let reply = platform.transport.request(HttpRequest::get(repository.listing())).await;
    let reply = reply.map_err(|error| Failure::Failed(error.to_string()))?;
    let listing = String::from_utf8_lossy(&reply.body);
    let files = repository.files(&listing).filter(|_| reply.status == 200);
    files.ok_or_else(|| Failure::Failed(texts().terminal.no_repository(&repository.name, reply.status)))
}

/// The only file, or a list of them to choose from.
fn choose(repository: &Repository, files: Vec<ListedFile>) -> Result<String, Failure> {
    match files.as_slice() {
        [] => Err(Failure::Failed(texts().host.no_models(&repository.name))),
        [file] if repository.is_wanted(file) => Ok(file.address.clone()),
        files => {
            print(&Printable::lines(&lines(files)))?;
            let missing = repository.wanted.as_ref().filter(|_| !files.iter().any(|file| repository.is_wanted(file)));
            Err(Failure::Usage(match missing {
                Some(wanted) => texts().host.not_in_list(&repository.name, wanted),
                None => texts().terminal.choose_a_file(&repository.name, files.len()),
            }))
        }
    }
}

/// "     2.5 GB  https://…/model.gguf"
fn lines(files: &[ListedFile]) -> String {
    files.iter().map(|file| format!("{:>10}  {}\n", bytes(file.bytes), file.address)).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use std::rc::Rc;

    use futures::future::LocalBoxFuture;
    use potluck_node::native::{Network, platform};
    use potluck_node::platform::{HttpReply, NetError, Socket, Transport};

    use super::*;

    /// A Hub with one repository.
    struct Hub;

    const LISTING: &str =
        r#"[{"path": "M-Q4_K_M.gguf", "size": 2500000000}, {"path": "M-Q8_0.gguf", "size": 4300000000}]"#;

    impl Transport for Hub {
        fn connect(&self, url: String) -> LocalBoxFuture<'static, Result<Socket, NetError>> {
            Box::pin(async move { Err(NetError::unreachable(&url, "no sockets here")) })
        }

        fn request(&self, request: HttpRequest) -> LocalBoxFuture<'static, Result<HttpReply, NetError>> {
            let is_known = request.url.ends_with("/api/models/owner/M-GGUF/tree/main?recursive=true");
            let (status, body) = if is_known { (200, LISTING) } else { (401, r#"{"error": "no such repository"}"#) };
            Box::pin(async move { Ok(HttpReply { status, body: body.into(), ..HttpReply::default() }) })
        }
    }

    async fn read(text: &str) -> Result<Option<String>, Failure> {
        let native = platform(std::env::temp_dir(), &Network::default());
        address(text, &potluck_node::platform::Platform { transport: Rc::new(Hub), ..native }).await
    }

    #[tokio::test]
    async fn a_repository_and_a_quantization_name_a_file() {
        let file = "https://huggingface.co/owner/M-GGUF/resolve/main/M-Q8_0.gguf";
        assert_eq!(read("hf.co/owner/M-GGUF:Q8_0").await, Ok(Some(file.to_owned())));
        let page = "https://huggingface.co/owner/M-GGUF/blob/main/M-Q8_0.gguf?download=true";
        assert_eq!(read(page).await, Ok(Some(file.to_owned())));
    }

    #[tokio::test]
    async fn what_a_repository_leaves_open_is_asked_for() {
        let asked = read("https://huggingface.co/owner/M-GGUF").await.unwrap_err();
        assert!(matches!(&asked, Failure::Usage(sentence) if sentence.contains("owner/M-GGUF")), "{asked}");
        let missing = read("hf.co/owner/M-GGUF:Q2_K").await.unwrap_err();
        assert!(matches!(&missing, Failure::Usage(sentence) if sentence.contains("has no file for Q2_K")), "{missing}");
        let only = [ListedFile { path: "M-Q8_0.gguf".to_owned(), bytes: 1, address: String::new() }];
        let other = Repository { wanted: Some("Q4_K_M".to_owned()), ..Repository::default() };
        choose(&other, only.to_vec()).expect_err("the only file is not the one that was asked for");
        let unknown = read("hf.co/owner/Other").await.unwrap_err();
        assert!(matches!(&unknown, Failure::Failed(sentence) if sentence.contains("401")), "{unknown}");
        let listed = Repository { name: "owner/M-GGUF".to_owned(), ..Repository::default() }.files(LISTING).unwrap();
        assert!(lines(&listed).lines().next().unwrap().starts_with("    2.5 GB  https://"), "{}", lines(&listed));
    }

    #[tokio::test]
    async fn names_and_paths_and_other_links_are_left_alone() {
        for text in ["embedded", "./model.gguf", "folder/model.gguf", "https://example.org/download?id=5"] {
            assert_eq!(read(text).await, Ok(None), "{text}");
        }
    }
}
