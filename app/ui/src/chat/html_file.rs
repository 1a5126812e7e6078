//! A conversation as a web page of its own, without programs and without anything to load: to share, or to print.

use super::{markdown::parse, prose};
use crate::{
    browser,
    state::{Conversation, QuestionParts},
};

/// How the page looks. It has nothing but this.
const STYLE: &str = "body{max-width:44rem;margin:2rem auto;padding:0 1rem;font:1rem/1.6 system-ui,sans-serif;color:#2b2622;background:#fbf8f2}\
.question{margin:2rem 0 1rem;padding:.75rem 1rem;border-radius:.75rem;background:#f0e9dd;white-space:break-spaces}\
.model{color:#6b6058;font-size:.8rem}pre{padding:.75rem 1rem;overflow:auto;border:1px solid #ddd2c3;border-radius:.5rem}\
table{border-collapse:collapse}th,td{padding:.3rem .7rem;border-bottom:1px solid #ddd2c3}blockquote{margin:0;padding-left:1rem;border-left:3px solid #ddd2c3}\
h4,h5,h6{font-size:1.1rem;margin:1rem 0 .25rem}.code-name{color:#6b6058;font-size:.8rem}img,math{max-width:100%}\
@media(prefers-color-scheme:dark){body{color:#ece5db;background:#1a1613}.question{background:#2b2520}pre,th,td,blockquote{border-color:#4a4038}.model,.code-name{color:#b0a498}}";

/// The page, with the chosen branch. Needs an owner of signals, as all drawing does.
pub fn write(conversation: &Conversation) -> String {
    let title = escaped(&conversation.title);
    let mut page = format!(
        "<!doctype html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1 dir=\"auto\">{title}</h1>\n"
    );
    for turn in &conversation.turns {
        let QuestionParts { text, files } = QuestionParts::of(&turn.question);
        page.push_str(&format!("<section>\n<div class=\"question\" dir=\"auto\">{}</div>\n", escaped(&text)));
        for file in files {
            let (name, text) = (escaped(&file.name), escaped(&file.text));
            page.push_str(&format!("<details><summary>{name}</summary><pre>{text}</pre></details>\n"));
        }
        if !turn.answer.text.is_empty() {
            page.push_str(&format!("<div class=\"answer\">{}</div>\n", drawn(&turn.answer.text)));
            page.push_str(&format!("<p class=\"model\">{}</p>\n", escaped(&turn.answer.model)));
        }
        page.push_str("</section>\n");
    }
    page.push_str("</body>\n</html>\n");
    page
}

/// An answer as the page shows it, without its buttons. It is built from elements, so no text of a model becomes HTML.
fn drawn(text: &str) -> String {
    let document = browser::window().document();
    let Some(element) = document.and_then(|document| document.create_element("div").ok()) else { return escaped(text) };
    prose::draw(&element, &[], &parse(text));
    while let Some(button) = element.query_selector("button").ok().flatten() {
        button.remove();
    }
    // Not `innerHTML`: no program of the page may make elements of strings, and that name does both.
    let serialized = web_sys::XmlSerializer::new().and_then(|serializer| serializer.serialize_to_string(&element));
    serialized.unwrap_or_else(|_| escaped(text))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_becomes_html() {
        assert_eq!(escaped("<a href=\"x\">&amp;</a>"), "&lt;a href=&quot;x&quot;&gt;&amp;amp;&lt;/a&gt;");
    }
}
