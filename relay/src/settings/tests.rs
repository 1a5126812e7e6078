#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;
use std::time::Duration;

use super::*;

/// A file with this text; it goes away with the test.
struct Written(PathBuf);

impl Written {
    fn new(test: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("potluck-settings-{test}-{}.toml", std::process::id()));
        std::fs::write(&path, text).unwrap();
        Self(path)
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn parse_with(arguments: &[&str], variables: &[(&str, &str)]) -> Result<Options, SettingsError> {
    let arguments = std::iter::once("potluck-relay").chain(arguments.iter().copied()).map(OsString::from).collect();
    let value = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
    parse(arguments, value)
}

fn complaint(test: &str, text: &str) -> String {
    let file = Written::new(test, text);
    let error = parse_with(&["--config", file.0.to_str().unwrap()], &[]).err().unwrap().to_string();
    error.replace(file.0.to_str().unwrap(), "relay.toml")
}

#[test]
fn the_command_line_counts_before_variables_and_these_before_the_file() {
    let text = "# A relay.\nport = 1\nmodels = [\"a\", \"b\"]\nhost = \"file.example\"\nlocal = true\ndrain = 7\n";
    let file = Written::new("order", text);
    let path = file.0.to_str().unwrap();
    let variables = [("POTLUCK_RELAY_PORT", "2"), ("POTLUCK_RELAY_HOST", "a.example, b.example")];
    let options = parse_with(&["--config", path, "--host", "typed.example"], &variables).unwrap();
    assert_eq!(options.drain_grace(), Duration::from_secs(7));
    let config = options.relay_config();
    assert_eq!((config.port, &config.hosts[..]), (2, &["typed.example".to_owned()][..]));
    assert_eq!(config.models, [Path::new("a"), Path::new("b")]);
    assert!(config.ip.is_loopback());
    let variables = [variables[1], ("POTLUCK_RELAY_CONFIG", path), ("POTLUCK_RELAY_LOCAL", "false")];
    let config = parse_with(&[], &variables).unwrap().relay_config();
    assert_eq!((config.port, &config.hosts[..]), (1, &["a.example".to_owned(), "b.example".to_owned()][..]));
    assert!(config.ip.is_unspecified(), "a variable also turns off what the file turns on");
}

#[test]
fn a_mistake_in_the_file_is_named_with_its_line() {
    assert_eq!(
        complaint("unknown", "port = 1\n\nprot = 2\n"),
        "relay.toml, line 3: there is no setting \"prot\"; --help lists them as options"
    );
    let value = complaint("value", "local = true\nport = \"many\"");
    assert!(value.starts_with("relay.toml, line 2: port: invalid value 'many'"), "{value}");
    assert_eq!(complaint("switch", "local = \"yes\""), "relay.toml, line 1: local: expected true or false");
    assert_eq!(complaint("many", "host = 1.5"), "relay.toml, line 1: host: expected a value or a list of values");
    assert!(complaint("syntax", "port = 1\nhost = [\"a\"").starts_with("relay.toml, line 2: "));
    assert!(complaint("twice", "port = 1\nport = 2").starts_with("relay.toml, line 2: "));
    let contradiction = complaint("contradiction", "local = true\ntls-cert = \"c\"\ntls-key = \"k\"");
    assert!(contradiction.contains("cannot be used with"), "{contradiction}");
}

#[test]
fn a_mistake_in_a_variable_is_named_with_it() {
    let error = |name, value| parse_with(&[], &[(name, value)]).err().unwrap().to_string();
    // Kubernetes sets this for a service of this name.
    let port = error("POTLUCK_RELAY_PORT", "tcp://10.0.0.1:8787");
    assert!(port.starts_with("the variable POTLUCK_RELAY_PORT: port: invalid value"), "{port}");
    assert_eq!(
        error("POTLUCK_RELAY_LOCAL", "on"),
        "the variable POTLUCK_RELAY_LOCAL: local: expected true or false, not \"on\""
    );
    assert!(parse_with(&[], &[("POTLUCK_RELAY_PORT", "")]).is_ok(), "an empty variable says nothing");
}
