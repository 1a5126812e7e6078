//! The addresses in `index.html`: what the page loads first.

/// Attributes whose value is an address.
const ATTRIBUTES: [&str; 7] = ["src", "href", "srcset", "action", "formaction", "data", "poster"];
/// How quoted addresses begin.
const BEGINNINGS: [&str; 7] = ["/", "./", "../", "http:", "https:", "data:", "blob:"];

/// Everything in a page's HTML and in its inline scripts that reads as an address: values of attributes that hold one, and quoted
/// strings that begin like one. This is not a browser's parser: it finds what the bundler writes, and what is added in the same way.
pub(super) fn addresses(html: &str) -> Vec<&str> {
    let after = |mark: char| html.match_indices(mark).map(move |(at, _)| (mark, at));
    let quoted = ['"', '\'', '`'].into_iter().flat_map(after).filter_map(|(mark, at)| {
        let value = html[at + 1..].split(mark).next()?;
        // A closing quote is followed by markup.
        let is_one_word = !value.contains([' ', '\n', '\t', '<', '>']);
        (is_one_word && BEGINNINGS.iter().any(|beginning| starts_with(value, beginning))).then_some(value)
    });
    let attributes = after('=').filter_map(|(_, at)| {
        let name =
            html[..at].trim_end().rsplit(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-').next()?;
        let value = html[at + 1..].trim_start();
        let value = match value.chars().next()? {
            mark @ ('"' | '\'') => value[1..].split(mark).next()?,
            _ => value.split([' ', '\n', '\t', '>']).next()?,
        };
        ATTRIBUTES.iter().any(|known| name.eq_ignore_ascii_case(known)).then_some(value)
    });
    let mut found: Vec<&str> = quoted.chain(attributes).filter(|address| !address.is_empty()).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// The file of the page's folder that an address names, empty for the page itself; `None` if it leads elsewhere, as an address from
/// the root does where the relay is in a folder.
pub(super) fn file_of(address: &str, in_folder: bool) -> Option<&str> {
    let path = address.split(['?', '#']).next()?;
    let from_root = || path.strip_prefix('/').filter(|_| !in_folder);
    let path = path.strip_prefix("./").or_else(from_root).unwrap_or(path);
    (!path.contains(['/', ':', '\\'])).then_some(path)
}

fn starts_with(value: &str, beginning: &str) -> bool {
    value.get(..beginning.len()).is_some_and(|start| start.eq_ignore_ascii_case(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_bundlers_page_are_found() {
        let html = "<html lang=\"en\"><meta content=\"width=device-width, a=1\" /><base href=\"./\" />\n\
            <link rel=\"stylesheet\" href=\"base-0123.css\"/><link rel=\"icon\" href=\"favicon.svg\" />\n\
            <script type=\"module\">\nimport init from './page-45.js';\n\
            await init({ module_or_path: './page-45_bg.wasm' });\n</script><p>It isn't / here's none.</p>";
        assert_eq!(addresses(html), ["./", "./page-45.js", "./page-45_bg.wasm", "base-0123.css", "favicon.svg"]);
    }

    #[test]
    fn what_somebody_adds_is_found_however_it_is_written() {
        for (added, address) in [
            ("<script src=evil.js></script>", "evil.js"),
            ("<script SRC = 'evil.js'></script>", "evil.js"),
            ("<script>import(\"https://evil.example/a.js\")</script>", "https://evil.example/a.js"),
            ("<script>import(`//evil.example/a.js`)</script>", "//evil.example/a.js"),
            ("<meta http-equiv=\"refresh\" content=\"HTTPS://evil.example\">", "HTTPS://evil.example"),
            ("<img src=\"data:image/svg+xml,a\">", "data:image/svg+xml,a"),
        ] {
            assert!(addresses(added).contains(&address), "{added}: {:?}", addresses(added));
        }
    }

    #[test]
    fn an_address_names_a_file_of_the_folder_or_leads_elsewhere() {
        for (address, file) in [
            ("/", Some("")),
            ("/a.js", Some("a.js")),
            ("./a.js?v=1#x", Some("a.js")),
            ("a.js", Some("a.js")),
            ("//evil.example/a.js", None),
            ("https://evil.example", None),
            ("/models/a.js", None),
            ("data:text/javascript,a", None),
        ] {
            assert_eq!(file_of(address, false), file, "{address}");
        }
        assert_eq!(
            (file_of("/a.js", true), file_of("./a.js", true), file_of("../a.js", false)),
            (None, Some("a.js"), None)
        );
    }
}
