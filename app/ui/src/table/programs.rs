//! How other programs ask this room's model.

use leptos::prelude::*;
use potluck_panel::API_ADDRESS;
use potluck_text::texts;

use crate::common::CopyButton;

/// What programs are given.
fn address() -> String {
    format!("http://{API_ADDRESS}/v1")
}

/// The command that answers programs on the computer where it runs. The link is quoted, as shells have a meaning for `#` and `&`.
fn command(link: &str) -> String {
    format!("potluck-node serve \"{link}\"")
}

/// A question with curl, as bash, zsh and cmd take it: without `!`, which the first two expand between these quotes.
fn question() -> String {
    let address = address();
    format!(
        r#"curl {address}/chat/completions -H "Content-Type: application/json" -d "{{\"messages\":[{{\"role\":\"user\",\"content\":\"Hello\"}}]}}""#
    )
}

/// What to run and set up, with an invite to chat.
#[component]
pub(super) fn Programs(
    /// The whole link.
    link: String,
    /// What the link allows.
    words: String,
) -> impl IntoView {
    let says = &texts().programs;
    view! {
        <section class="programs" aria-label=says.title()>
            <p class="hint">{says.run()}</p>
            <Line text=command(&link) label=says.copy_command() />
            <p class="hint">{says.set_up()}</p>
            <Line text=address() label=says.copy_address() />
            <p class="hint">{says.ask()}</p>
            <Line text=question() label=says.copy_question() />
            <p class="hint">{words}</p>
        </section>
    }
}

/// A line to copy.
#[component]
fn Line(text: String, label: &'static str) -> impl IntoView {
    view! {
        <p class="invite-link mono">{text.clone()}</p>
        <div class="row row-centre"><CopyButton text=text label=label class="button" /></div>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_takes_the_link_as_one_word() {
        let command = command("https://h/r/k3v9#00ff&fp=ab");
        assert_eq!(command, "potluck-node serve \"https://h/r/k3v9#00ff&fp=ab\"");
        assert!(question().contains(r#"-d "{\"messages\":[{\"role\":\"user\","#), "{}", question());
        assert!(!question().contains(['!', '$', '`']), "{}", question());
    }
}
