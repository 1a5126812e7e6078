//! Tests of `model_link.rs`.

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
        "curl -L -o model.gguf 'https://huggingface.co/owner/Model-GGUF/resolve/main/Model-Q4_K_M.gguf'",
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
        ("https://cdn.example/3f?filename=model.gguf&sign=%2B", "https://cdn.example/3f?filename=model.gguf&sign=%2B"),
        ("https://example.org/model.gguf#part", "https://example.org/model.gguf"),
        ("https://code.example/o/r/blob/main/m.gguf?raw=true", "https://code.example/o/r/blob/main/m.gguf?raw=true"),
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
fn blanks_are_escaped_and_pages_about_a_file_lead_to_it() {
    for (text, address) in [
        (" https://example.org/my models/Model Q4.gguf\n", "https://example.org/my%20models/Model%20Q4.gguf"),
        ("<https://example.org/modèle.gguf>", "https://example.org/mod%C3%A8le.gguf"),
        ("https://www.dropbox.com/s/x/m.gguf?dl=0", "https://www.dropbox.com/s/x/m.gguf?dl=1"),
        ("See https://github.com/o/r/blob/main/m.gguf", "https://github.com/o/r/raw/main/m.gguf"),
        (
            "https://huggingface.co/o/r/blob/main/Model Q4.gguf",
            "https://huggingface.co/o/r/resolve/main/Model%20Q4.gguf",
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
        ("https://huggingface.co/owner/Model-GGUF/tree/main/sub", Repository { folder: "sub".into(), ..main(None) }),
        ("https://huggingface.co/owner/Model-GGUF/tree/main/a%20b", Repository { folder: "a b".into(), ..main(None) }),
        ("git clone https://huggingface.co/owner/Model-GGUF", main(None)),
        ("hf download owner/Model-GGUF M-Q8_0.gguf --local-dir .", main(Some("M-Q8_0.gguf"))),
        ("huggingface-cli download owner/Model-GGUF --include \"*Q4_K_M*\" --local-dir .", main(Some("Q4_K_M"))),
        ("llama-cli --hf-repo owner/Model-GGUF --hf-file M-Q8_0.gguf -p Hello", main(Some("M-Q8_0.gguf"))),
        ("Llama.from_pretrained(\n  repo_id=\"owner/Model-GGUF\",\n  filename=\"*q8_0.gguf\",\n)", main(Some("q8_0"))),
        ("lmstudio://open_from_hf?model=owner/Model-GGUF", main(None)),
        ("lmstudio://open_from_hf?model=owner%2FModel-GGUF&file=M-Q8_0.gguf", main(Some("M-Q8_0.gguf"))),
        ("docker model run hf.co/owner/Model-GGUF:Q4_K_M", main(Some("Q4_K_M"))),
        ("huggingface.co/owner/Model-GGUF/M-Q8_0.gguf", main(Some("M-Q8_0.gguf"))),
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
        ("https://drive.google.com/file/d/1aB2c/view?usp=sharing", BadModelLink::NotGguf),
        ("https://example.org/a page about models", BadModelLink::NotGguf),
        ("ipfs://bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi", BadModelLink::NoAddress),
        ("lmstudio://open", BadModelLink::NoAddress),
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
