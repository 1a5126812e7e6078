//! What can be done with a block of code: wrap its lines, save it, copy it.

use leptos::prelude::*;
use potluck_text::texts;

use crate::{
    browser,
    common::{CopyButton, Icon, Symbol},
};

/// Ends of file names for the names of languages. A model chooses the name, so no other end is possible.
const ENDS: [(&str, &[&str]); 20] = [
    ("c", &["c"]),
    ("cpp", &["cpp", "c++"]),
    ("cs", &["csharp", "cs", "c#"]),
    ("css", &["css"]),
    ("csv", &["csv"]),
    ("go", &["go", "golang"]),
    ("html", &["html"]),
    ("java", &["java"]),
    ("js", &["javascript", "js", "jsx"]),
    ("json", &["json"]),
    ("kt", &["kotlin", "kt"]),
    ("md", &["markdown", "md"]),
    ("py", &["python", "py", "python3"]),
    ("rb", &["ruby", "rb"]),
    ("rs", &["rust", "rs"]),
    ("sh", &["bash", "sh", "shell", "zsh"]),
    ("sql", &["sql"]),
    ("toml", &["toml"]),
    ("ts", &["typescript", "ts", "tsx"]),
    ("yml", &["yaml", "yml"]),
];

/// The name of a file with code in this language.
fn file_name(language: &str) -> String {
    let language = language.to_lowercase();
    let end = ENDS.iter().find(|(_, names)| names.contains(&language.as_str())).map_or("txt", |(end, _)| end);
    format!("code.{end}")
}

/// The buttons above a block of code.
#[component]
pub fn CodeButtons(
    /// The code.
    #[prop(into)]
    text: Signal<String>,
    /// The name of its language.
    #[prop(into)]
    language: Signal<String>,
    /// Wraps its lines, or does not.
    #[prop(into)]
    wrap: Callback<bool>,
) -> impl IntoView {
    let wraps = RwSignal::new(false);
    let toggle = move |_| {
        wraps.update(|wraps| *wraps = !*wraps);
        wrap.run(wraps.get_untracked());
    };
    let save = move |_| {
        browser::save_text(&file_name(&language.get_untracked()), "text/plain", &text.get_untracked());
    };
    view! {
        <span class="code-buttons">
            <button
                type="button"
                class="button button-icon button-small"
                aria-pressed=move || wraps.get().to_string()
                aria-label=texts().answer.wrap()
                title=texts().answer.wrap()
                on:click=toggle
            >
                <Icon symbol=Symbol::Wrap />
            </button>
            <button type="button" class="button button-icon button-small" aria-label=texts().answer.save_code() title=texts().answer.save_code() on:click=save>
                <Icon symbol=Symbol::Save />
            </button>
            <CopyButton text class="button button-quiet button-small" />
        </span>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_after_a_known_language_only() {
        assert_eq!(file_name("Python"), "code.py");
        assert_eq!(file_name("c++"), "code.cpp");
        for unknown in ["", "exe", "../../x.sh", "lnk"] {
            assert_eq!(file_name(unknown), "code.txt", "{unknown}");
        }
    }
}
