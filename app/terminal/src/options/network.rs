//! Whom this program talks to.

use std::path::Path;

use potluck_node::links::leads_to_the_internet;
use potluck_node::native::{BadRelayToken, Fingerprint, Network, RelayToken};
use potluck_panel::AccessTokens;

use crate::setup::NO_RELAY;

/// The network, as a room needs it.
#[derive(Clone, Debug, PartialEq, clap::Args)]
#[command(next_help_heading = "Network")]
pub struct NetworkOptions {
    /// The name under which others see this device
    #[arg(long, default_value = NetworkOptions::DEFAULT_NAME)]
    pub name: String,
    /// SHA-256 fingerprint of the relay's certificate authority, or of its certificate, as the relay shows it. Needed if no public
    /// authority vouches for the relay, unless the room's link contains the fingerprint
    #[arg(long, value_name = "HEX")]
    pub relay_fingerprint: Option<Fingerprint>,
    /// The token with which you may open rooms on this relay, if it asks for one: a file with one line
    #[arg(long, value_name = "FILE", value_parser = read_relay_token)]
    pub relay_token_file: Option<RelayToken>,
    /// Also follow links to models that use http, or that lead to this device or its private network. Without this option, only links
    /// to the relay and https links to public addresses are followed, because a room's host chooses the link for all its devices
    #[arg(long)]
    pub allow_private_links: bool,
    /// As whom it fetches files.
    #[command(flatten)]
    pub access: AccessOptions,
}

/// As whom this program fetches files.
#[derive(Clone, Debug, Default, PartialEq, clap::Args)]
#[command(next_help_heading = "Network")]
pub struct AccessOptions {
    /// Access tokens for files that a server gives only to those it knows. Each line of the file names a server and its token:
    /// "huggingface.co hf_…". A token is sent to its server only, never to the room. For huggingface.co, the environment variable
    /// HF_TOKEN will do
    #[arg(long, value_name = "FILE", value_parser = read_access_tokens)]
    pub access_tokens: Option<AccessTokens>,
}

/// The variable in which programs for the Hub expect its token.
const HUB_TOKEN: &str = "HF_TOKEN";

impl NetworkOptions {
    /// The name of a device that was given none.
    pub const DEFAULT_NAME: &str = "Native peer";

    /// The network with a relay.
    pub fn network(&self, relay: &str) -> Network {
        Network {
            relay: relay.to_owned(),
            relay_fingerprint: self.relay_fingerprint,
            relay_token: self.relay_token_file.clone(),
            allow_private_links: self.allow_private_links,
            access_tokens: self.access.tokens(),
        }
    }
}

impl AccessOptions {
    /// The access tokens.
    pub(crate) fn tokens(&self) -> AccessTokens {
        with_hub_token(self.access_tokens.clone().unwrap_or_default(), std::env::var(HUB_TOKEN).ok())
    }

    /// The network of who chooses the links it follows. A link that leads to the internet leads nowhere else, whatever its server
    /// says.
    pub(crate) fn network_of_links(&self, given: &str) -> Network {
        Network {
            relay: NO_RELAY.to_owned(),
            allow_private_links: given.contains("://") && !leads_to_the_internet(given),
            access_tokens: self.tokens(),
            ..Network::default()
        }
    }
}

/// The Hub's token from the environment counts unless a file has another one.
fn with_hub_token(mut tokens: AccessTokens, variable: Option<String>) -> AccessTokens {
    let is_known = tokens.servers().any(|server| server == AccessTokens::HUB);
    let variable = variable.filter(|token| !is_known && !token.trim().is_empty());
    if let Some(Err(error)) = variable.map(|token| tokens.keep(AccessTokens::HUB, &token)) {
        log::warn!("{HUB_TOKEN} is not used: {error}");
    }
    tokens
}

fn read_relay_token(path: &str) -> Result<RelayToken, String> {
    let text = std::fs::read_to_string(Path::new(path)).map_err(|error| error.to_string())?;
    text.parse().map_err(|error: BadRelayToken| error.to_string())
}

fn read_access_tokens(path: &str) -> Result<AccessTokens, String> {
    let text = std::fs::read_to_string(Path::new(path)).map_err(|error| error.to_string())?;
    parse_access_tokens(&text)
}

/// A server and its token in each line; empty lines and those that begin with # are left out. Says of a wrong line only its number.
fn parse_access_tokens(text: &str) -> Result<AccessTokens, String> {
    let mut tokens = AccessTokens::default();
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (server, token) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        tokens.keep(server, token).map_err(|error| format!("line {number}: {error}"))?;
    }
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use super::*;

    const HUB_FILE: &str = "https://huggingface.co/owner/repo/resolve/main/model.gguf";

    #[test]
    fn a_file_of_access_tokens_has_a_server_and_a_token_in_each_line() {
        let tokens = parse_access_tokens("# mine\n\n hf.co\thf_abc \nexample.org:8443 secret\n").unwrap();
        assert_eq!(tokens.of(HUB_FILE).unwrap().header(), "Bearer hf_abc");
        assert_eq!(tokens.of("https://example.org:8443/a.gguf").unwrap().header(), "Bearer secret");
    }

    #[test]
    fn a_wrong_line_is_named_and_its_token_is_not_shown() {
        for (text, line) in [("huggingface.co", 1), ("\n# a\nexample.org two words", 3), ("hf_secret", 1)] {
            let error = parse_access_tokens(text).unwrap_err();
            assert!(error.starts_with(&format!("line {line}: ")) && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn the_variable_of_the_hub_counts_unless_a_file_names_it() {
        let of_hub = |tokens: AccessTokens| Some(tokens.of(HUB_FILE)?.header());
        let own = || parse_access_tokens("huggingface.co own").unwrap();
        assert_eq!(of_hub(with_hub_token(own(), Some("other".to_owned()))).as_deref(), Some("Bearer own"));
        assert_eq!(
            of_hub(with_hub_token(AccessTokens::default(), Some("other\n".to_owned()))).as_deref(),
            Some("Bearer other")
        );
        for nothing in [None, Some(String::new()), Some("two words".to_owned())] {
            assert_eq!(of_hub(with_hub_token(AccessTokens::default(), nothing)), None);
        }
    }
}
