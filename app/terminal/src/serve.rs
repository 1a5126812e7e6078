//! `potluck-node serve`: an HTTP API for other programs, which ask the model of a room, or one on this device alone.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use potluck_node::native::{Fingerprint, ModelFile, Network};
use potluck_panel::{API_ADDRESS, AnswerPart, KvCacheType, RequestId, ToNode, ToPage};
use potluck_plan::Arithmetic;
use potluck_serve::{Access, ApiKey, Order, Origin, Parts, RoomState, Server, TextSide, Words};
use potluck_text::texts;

use crate::failure::Failure;
use crate::join::{LinkArgument, VARIABLE as LINK_VARIABLE, find_link, line_of_file};
use crate::link::{BadLink, RoomLink};
use crate::model_path::{self, reason};
use crate::options::{AccessOptions, DEFAULT_BUDGET, DEFAULT_CONTEXT, DeviceOptions, ModelOptions, NetworkOptions};
use crate::output::{print, say};
use crate::printable::Printable;
use crate::run::{send_alone, source_of};
use crate::session::Session;
use crate::setup::{NO_RELAY, Setup};
use crate::signals::Stop;
use crate::values::{parse_arithmetic, parse_budget, parse_bytes, parse_cache_type};
use crate::waiting::Purpose;

/// The place for the key besides arguments, which other users of the machine can see.
const KEY_VARIABLE: &str = "POTLUCK_API_KEY";

/// Options of `serve`.
#[derive(Clone, Debug, PartialEq, clap::Args)]
pub struct ServeOptions {
    /// A model's GGUF file, which this device then runs alone, or a room's link, or - to read the link from standard input. Other users
    /// of this machine can see the command line. To hide the link from them, use -, --link-file or the environment variable POTLUCK_LINK
    #[arg(value_name = "MODEL|LINK")]
    pub target: Option<ServeTarget>,
    /// Read the room's link from this file
    #[arg(long, value_name = "FILE", conflicts_with = "target")]
    pub link_file: Option<PathBuf>,
    /// Who may ask, and where.
    #[command(flatten)]
    pub api: ApiOptions,
    /// A model's file.
    #[command(flatten)]
    pub own: OwnModelOptions,
    /// A room.
    #[command(flatten)]
    pub room: RoomOptions,
    /// This device.
    #[command(flatten)]
    pub device: DeviceOptions,
}

/// What is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServeTarget {
    /// The model of a room.
    Room(LinkArgument),
    /// A model's file on this device.
    Model(PathBuf),
}

impl FromStr for ServeTarget {
    type Err = BadLink;

    fn from_str(text: &str) -> Result<Self, BadLink> {
        if text == "-" || text.contains("://") {
            return text.parse().map(Self::Room);
        }
        Ok(Self::Model(text.into()))
    }
}

/// Who may ask, and where.
#[derive(Clone, Debug, PartialEq, clap::Args)]
#[command(next_help_heading = "API")]
pub struct ApiOptions {
    /// Answer requests at this address and port. At an address that other machines can reach, requests need a key
    #[arg(long, value_name = "ADDRESS", default_value = API_ADDRESS)]
    pub listen: SocketAddr,
    /// Answer only requests with this key. Other users of this machine can see the command line: to hide the key from them, use
    /// --api-key-file or the environment variable POTLUCK_API_KEY
    #[arg(long, value_name = "KEY")]
    pub api_key: Option<GivenKey>,
    /// Read the key from this file
    #[arg(long, value_name = "FILE", conflicts_with = "api_key")]
    pub api_key_file: Option<PathBuf>,
    /// Also answer web pages of this origin: scheme, name and port, as browsers send it. May be given several times. * allows every page,
    /// and needs a key
    #[arg(long, value_name = "ORIGIN")]
    pub allow_origin: Vec<Origin>,
}

/// A key on the command line, which no debug output shows.
#[derive(Clone, PartialEq)]
pub struct GivenKey(String);

impl FromStr for GivenKey {
    type Err = Infallible;

    fn from_str(key: &str) -> Result<Self, Infallible> {
        Ok(Self(key.to_owned()))
    }
}

impl fmt::Debug for GivenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GivenKey(…)")
    }
}

/// How a model's file is opened. In a room, its host decides that.
#[derive(Clone, Debug, PartialEq, clap::Args)]
#[command(next_help_heading = "With a model's file")]
pub struct OwnModelOptions {
    /// Number type of the KV cache: f32 (exact), f16, q8_0 or q4_0 (smallest) [default: the largest that fits, but not q4_0]
    #[arg(long = "kv", value_name = "TYPE", value_parser = parse_cache_type)]
    pub cache_type: Option<KvCacheType>,
    /// Length of the context in tokens, from 64 to what the model supports. All requests share it [default: 4096]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(64..))]
    pub context: Option<u32>,
    /// How to compute matrix products: exact, packed or matrix, as for run [default: exact]
    #[arg(long, value_name = "HOW", value_parser = parse_arithmetic)]
    pub arithmetic: Option<Arithmetic>,
    /// How much GPU memory may be used, in bytes, such as 900M or 4G [default: 4G]
    #[arg(long, value_name = "BYTES", value_parser = parse_budget)]
    pub budget: Option<u64>,
}

/// How a room is entered.
#[derive(Clone, Debug, PartialEq, clap::Args)]
#[command(next_help_heading = "With a room's link")]
pub struct RoomOptions {
    /// The name under which others see this device [default: Native peer]
    #[arg(long)]
    pub name: Option<String>,
    /// SHA-256 fingerprint of the relay's certificate authority, or of its certificate, as the relay shows it. Needed if no public
    /// authority vouches for the relay, unless the room's link contains the fingerprint
    #[arg(long, value_name = "HEX")]
    pub relay_fingerprint: Option<Fingerprint>,
}

impl ApiOptions {
    /// Who may ask.
    ///
    /// # Errors
    /// The key cannot be read or is none, or everybody could ask.
    fn access(&self, variable: Option<String>) -> Result<Access, Failure> {
        let key = match (&self.api_key, &self.api_key_file, variable) {
            (Some(key), ..) => Some(key.0.clone()),
            (None, Some(path), _) => Some(line_of_file(path)?),
            (None, None, key) => key,
        };
        let usage = |error: potluck_serve::BadAccess| Failure::Usage(error.to_string());
        let key = key.map(|key| key.parse::<ApiKey>()).transpose().map_err(usage)?;
        Access::new(self.listen, key, self.allow_origin.clone()).map_err(usage)
    }
}

/// What is served, once it is clear.
enum Target<'a> {
    Model(&'a Path),
    Room(RoomLink),
}

impl Target<'_> {
    /// Tokenizer and chat template of a file. Those of a room are with its host.
    fn text_side(&self) -> Option<TextSide> {
        let Self::Model(path) = self else { return None };
        let path = path.to_path_buf();
        Some(TextSide::read_by(move || words(&path)))
    }
}

fn words(path: &Path) -> Result<Words, String> {
    let file = ModelFile::open(path).map_err(|error| error.to_string())?;
    let language = file.language().map_err(|error| error.to_string())?;
    Ok((language.tokenizer().clone(), Arc::new(language)))
}

impl ServeOptions {
    async fn target(&self, variable: Option<String>, stop: &Stop) -> Result<Target<'_>, Failure> {
        let argument = match &self.target {
            Some(ServeTarget::Model(path)) => {
                self.refuse_room_options()?;
                return Ok(Target::Model(path));
            }
            Some(ServeTarget::Room(link)) => Some(link),
            None => None,
        };
        let link = find_link(argument, self.link_file.as_deref(), variable, stop).await?;
        let link = link.ok_or_else(|| Failure::Usage(texts().serve.what_to_serve().to_owned()))?;
        self.refuse_model_options()?;
        Ok(Target::Room(link))
    }

    fn refuse_room_options(&self) -> Result<(), Failure> {
        let RoomOptions { name, relay_fingerprint } = &self.room;
        let given = [("--name", name.is_some()), ("--relay-fingerprint", relay_fingerprint.is_some())];
        refuse(&given, |option| texts().serve.not_alone(option))
    }

    fn refuse_model_options(&self) -> Result<(), Failure> {
        let OwnModelOptions { cache_type, context, arithmetic, budget } = &self.own;
        let given = [
            ("--kv", cache_type.is_some()),
            ("--context", context.is_some()),
            ("--arithmetic", arithmetic.is_some()),
            ("--budget", budget.is_some()),
        ];
        refuse(&given, |option| texts().serve.not_in_a_room(option))
    }

    /// How the node is set up for it.
    fn setup(&self, target: &Target<'_>) -> Result<Setup, Failure> {
        match target {
            Target::Model(_) => {
                let network = Network { relay: NO_RELAY.to_owned(), ..Network::default() };
                Setup::alone(&network, &self.device, self.own.arithmetic.unwrap_or_default())
            }
            Target::Room(link) => {
                let relay_fingerprint = self.room.relay_fingerprint.or(link.fingerprint);
                let name = self.room.name.clone().unwrap_or_else(|| NetworkOptions::DEFAULT_NAME.to_owned());
                let network = NetworkOptions {
                    name,
                    relay_fingerprint,
                    relay_token_file: None,
                    allow_private_links: false,
                    access: AccessOptions::default(),
                };
                Setup::of_this_device(&network, &link.relay, &self.device)
            }
        }
    }

    /// Opens the model, or enters the room.
    fn enter(&self, target: &Target<'_>, session: &mut Session) -> Result<(), Failure> {
        match target {
            Target::Model(path) => {
                session.set_purpose(Purpose::Alone);
                let OwnModelOptions { cache_type, context, arithmetic, budget } = self.own;
                let options = ModelOptions { cache_type, context: context.unwrap_or(DEFAULT_CONTEXT) };
                let budget = budget.or(parse_bytes(DEFAULT_BUDGET)).unwrap_or_default();
                let files = model_path::open(path)?;
                send_alone(session, source_of(&files), files, &options, arithmetic.unwrap_or_default(), budget);
            }
            Target::Room(RoomLink { room, key, .. }) => {
                session.set_purpose(Purpose::Visit);
                session.page(ToNode::Join { room: room.clone(), key: key.clone() });
            }
        }
        Ok(())
    }
}

/// Refuses the first option that was given.
fn refuse(options: &[(&'static str, bool)], sentence: impl Fn(&'static str) -> String) -> Result<(), Failure> {
    let given = options.iter().find(|(_, is_given)| *is_given);
    given.map_or(Ok(()), |(option, _)| Err(Failure::Usage(sentence(option))))
}

/// Serves until somebody stops the program, or the room ends.
///
/// # Errors
/// What failed.
pub(crate) async fn serve(options: &ServeOptions, stop: &Stop) -> Result<(), Failure> {
    let access = options.api.access(std::env::var(KEY_VARIABLE).ok())?;
    let target = options.target(std::env::var(LINK_VARIABLE).ok(), stop).await?;
    let setup = options.setup(&target)?.stopped_by(stop);
    let address = options.api.listen;
    let mut server = Server::open(address, access, target.text_side())
        .map_err(|error| Failure::Usage(texts().serve.cannot_listen(address.to_string(), reason(&error))))?;
    let mut session = Session::start(setup);
    let served = async {
        options.enter(&target, &mut session)?;
        answer(&mut session, &mut server).await
    }
    .await;
    server.close().await;
    if matches!(target, Target::Room(_)) {
        session.leave().await;
    }
    served
}

/// Hands questions to the node and answers to the server.
async fn answer(session: &mut Session, server: &mut Server) -> Result<(), Failure> {
    let mut waiting: BTreeMap<RequestId, Parts> = BTreeMap::new();
    let mut is_announced = false;
    loop {
        tokio::select! {
            message = session.step() => match message? {
                ToPage::Answer { request, event } => {
                    let is_over = matches!(event, AnswerPart::End { .. } | AnswerPart::Unknown);
                    let is_read = waiting.get(&request).is_none_or(|parts| parts.send(event));
                    if is_over {
                        waiting.remove(&request);
                    } else if !is_read {
                        // The order to stop may have been lost while the host could not be reached.
                        session.page(ToNode::Stop(request));
                    }
                }
                ToPage::Status(_) => {
                    let state = RoomState::of(&session.status);
                    if state.is_up && !is_announced {
                        announce(&state, server.address())?;
                        is_announced = true;
                        session.stay();
                    }
                    server.tell(state);
                }
                _ => {}
            },
            order = server.order() => match order {
                Some(Order::Ask { prompt, parts }) => {
                    waiting.insert(prompt.request, parts);
                    session.page(ToNode::Prompt(*prompt));
                }
                Some(Order::Stop(request)) => session.page(ToNode::Stop(request)),
                None => return Err(Failure::Failed(texts().terminal.node_ended().to_owned())),
            },
        }
    }
}

/// Prints the address: programs are set up with it. Where all of this machine's addresses are meant, it is the one for programs on this
/// machine.
fn announce(state: &RoomState, mut address: SocketAddr) -> Result<(), Failure> {
    if address.ip().is_unspecified() {
        address.set_ip(if address.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() });
    }
    let base = format!("http://{address}/v1");
    print(&Printable::lines(&format!("{base}\n")))?;
    say(texts().serve.ready(state.model_id().unwrap_or_default(), base));
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use clap::Parser;

    use super::*;
    use crate::{CommandLine, Verb};

    fn options(line: &str) -> ServeOptions {
        match CommandLine::try_parse_from(["potluck-node", "serve"].into_iter().chain(line.split_whitespace()))
            .unwrap()
            .verb
        {
            Verb::Serve(options) => options,
            other => panic!("{other:?}"),
        }
    }

    async fn target(line: &str, variable: Option<&str>) -> Result<String, Failure> {
        let options = options(line);
        let target = options.target(variable.map(str::to_owned), &Stop::never()).await?;
        Ok(match target {
            Target::Model(path) => path.display().to_string(),
            Target::Room(link) => link.to_string(),
        })
    }

    const LINK: &str = "https://h/r/k3v9#00ff";

    #[tokio::test]
    async fn a_model_or_a_link_is_served_and_each_option_belongs_to_one_of_them() {
        assert_eq!(
            target("x.gguf --context 64", Some(LINK)).await,
            Ok("x.gguf".to_owned()),
            "the command line counts first"
        );
        assert_eq!(target(LINK, None).await, Ok(LINK.to_owned()));
        assert_eq!(target("", Some(LINK)).await, Ok(LINK.to_owned()));
        for (line, option) in [
            ("x.gguf --name Editor".to_owned(), "--name"),
            (format!("{LINK} --context 64"), "--context"),
            (format!("{LINK} --budget 1G"), "--budget"),
            (String::new(), "serve -"),
        ] {
            let failure = target(&line, None).await.unwrap_err();
            assert!(matches!(&failure, Failure::Usage(sentence) if sentence.contains(option)), "{line}: {failure}");
        }
    }

    #[test]
    fn a_key_comes_from_a_file_or_the_environment_as_well() {
        let path = std::env::temp_dir().join(format!("potluck-api-key-{}", std::process::id()));
        std::fs::write(&path, "secret\n").unwrap();
        let everywhere = "x.gguf --listen 0.0.0.0:8788";
        let access = |line: &str, variable: Option<&str>| options(line).api.access(variable.map(str::to_owned));
        let of_argument = access(&format!("{everywhere} --api-key secret"), None).unwrap();
        let file = format!("{everywhere} --api-key-file {}", path.display());
        assert_eq!(access(&file, Some("other")), Ok(of_argument.clone()), "the command line counts first");
        assert_eq!(access(everywhere, Some("secret")), Ok(of_argument));
        std::fs::write(&path, "\n").unwrap();
        for (line, variable) in
            [(everywhere, None), (file.as_str(), None), ("x.gguf", Some("")), ("x.gguf --allow-origin *", None)]
        {
            let failure = access(line, variable).unwrap_err();
            assert_eq!(failure.code(), 2, "{line}: {failure}");
        }
        std::fs::remove_file(&path).unwrap();
        assert!(access(file.as_str(), None).is_err(), "no such file");
        assert!(access("x.gguf", None).is_ok(), "on this machine no key is needed");
    }
}
