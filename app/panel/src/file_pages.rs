//! Pages that show a file, on sites whose addresses tell where the file itself is.

/// The address of the file that a page shows; the same address if it is no such page. `address` begins with a scheme and has no fragment.
pub(crate) fn file_of_page(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    let name = host.to_ascii_lowercase();
    let name = name.strip_prefix("www.").unwrap_or(&name);
    let parts: Vec<&str> = path.split('/').collect();
    let file = match (name, parts.as_slice()) {
        ("github.com", [owner, repository, "blob", file @ ..]) => {
            format!("{owner}/{repository}/raw/{}", file.join("/"))
        }
        ("codeberg.org", [owner, repository, "src", file @ ..]) => {
            format!("{owner}/{repository}/raw/{}", file.join("/"))
        }
        ("hf-mirror.com", [owner, repository, "blob", file @ ..]) => {
            format!("{owner}/{repository}/resolve/{}", file.join("/"))
        }
        ("modelscope.cn" | "modelscope.ai", ["models", owner, repository, "file", "view", file @ ..]) => {
            format!("models/{owner}/{repository}/resolve/{}", file.join("/"))
        }
        // Without this the site shows a page about the file.
        ("dropbox.com", _) => {
            let kept = query.unwrap_or_default().split('&').filter(|part| !part.is_empty() && !part.starts_with("dl="));
            return format!("{scheme}://{host}/{path}?{}", kept.chain(["dl=1"]).collect::<Vec<_>>().join("&"));
        }
        // GitLab, on whatever host.
        _ if path.contains("/-/blob/") => path.replacen("/-/blob/", "/-/raw/", 1),
        _ => return address.to_owned(),
    };
    format!("{scheme}://{host}/{file}")
}

/// An address without blanks and without letters that addresses do not have: browsers and file managers show them as they are.
pub(crate) fn plain(address: &str) -> String {
    let path = address.find("://").and_then(|at| Some(at + 3 + address[at + 3..].find('/')?)).unwrap_or(address.len());
    format!("{}{}", &address[..path], plain_path(&address[path..]))
}

/// A path, likewise.
pub(crate) fn plain_path(path: &str) -> String {
    let mut plain = String::with_capacity(path.len());
    for letter in path.chars() {
        if letter.is_ascii_graphic() {
            plain.push(letter);
        } else {
            let mut bytes = [0; 4];
            letter.encode_utf8(&mut bytes).bytes().for_each(|byte| plain.push_str(&format!("%{byte:02X}")));
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_about_a_file_leads_to_the_file() {
        for (page, file) in [
            ("https://github.com/o/r/blob/main/a/m.gguf", "https://github.com/o/r/raw/main/a/m.gguf"),
            ("https://www.github.com/o/r/blob/v1/m.gguf?raw=true", "https://www.github.com/o/r/raw/v1/m.gguf"),
            ("https://codeberg.org/o/r/src/branch/main/m.gguf", "https://codeberg.org/o/r/raw/branch/main/m.gguf"),
            (
                "https://gitlab.com/g/s/r/-/blob/main/m.gguf?ref_type=heads",
                "https://gitlab.com/g/s/r/-/raw/main/m.gguf",
            ),
            ("https://git.example.org/g/r/-/blob/main/m.gguf", "https://git.example.org/g/r/-/raw/main/m.gguf"),
            ("https://hf-mirror.com/o/r/blob/main/m.gguf", "https://hf-mirror.com/o/r/resolve/main/m.gguf"),
            (
                "https://modelscope.cn/models/o/r/file/view/master/a/m.gguf?status=2",
                "https://modelscope.cn/models/o/r/resolve/master/a/m.gguf",
            ),
            (
                "https://www.dropbox.com/scl/fi/x/m.gguf?rlkey=k&st=s&dl=0",
                "https://www.dropbox.com/scl/fi/x/m.gguf?rlkey=k&st=s&dl=1",
            ),
            ("https://www.dropbox.com/s/x/m.gguf", "https://www.dropbox.com/s/x/m.gguf?dl=1"),
        ] {
            assert_eq!(file_of_page(page), file);
        }
    }

    #[test]
    fn the_address_of_a_file_stays() {
        for address in [
            "https://github.com/o/r/releases/download/v1/m.gguf",
            "https://github.com/o/r/raw/main/m.gguf",
            "https://gitlab.com/g/r/-/raw/main/m.gguf?inline=false",
            "https://modelscope.cn/models/o/r/resolve/master/m.gguf",
            "https://code.example/o/r/blob/main/m.gguf?raw=true",
            "https://example.org/m.gguf?X-Amz-Signature=a%2Fb&X-Amz-Expires=3600",
            "https://example.org",
        ] {
            assert_eq!(file_of_page(address), address);
        }
    }

    #[test]
    fn letters_that_addresses_do_not_have_are_escaped_once() {
        for (typed, address) in [
            ("https://example.org/my models/m.gguf", "https://example.org/my%20models/m.gguf"),
            ("https://example.org/my%20models/m.gguf", "https://example.org/my%20models/m.gguf"),
            ("https://example.org/modèle.gguf", "https://example.org/mod%C3%A8le.gguf"),
            ("https://bücher.example/m.gguf", "https://bücher.example/m.gguf"),
            ("https://example.org", "https://example.org"),
        ] {
            assert_eq!(plain(typed), address);
        }
    }
}
