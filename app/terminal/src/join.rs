//! `potluck-node join`: enters a room.

use std::io::{BufRead, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use potluck_panel::{ContributeChoice, ToNode};
use potluck_text::texts;

use crate::failure::Failure;
use crate::link::{BadLink, RoomLink};
use crate::model_path::reason;
use crate::options::{AnswerOptions, Contribution, DeviceOptions, NetworkOptions};
use crate::output::say;
use crate::session::Session;
use crate::setup::Setup;
use crate::signals::Stop;
use crate::waiting::Purpose;

/// Options of `join`.
#[derive(Clone, Debug, PartialEq, clap::Args)]
pub struct JoinOptions {
    /// The room's link, or - to read it from standard input. Other users of this machine can see the command line. To hide the link
    /// from them, use -, --link-file or the environment variable POTLUCK_LINK
    pub link: Option<LinkArgument>,
    /// Read the room's link from this file
    #[arg(long, value_name = "FILE", conflicts_with = "link")]
    pub link_file: Option<PathBuf>,
    /// Only ask questions, and lend no GPU memory
    #[arg(long, conflicts_with_all = ["budget", "eviction"])]
    pub guest: bool,
    /// What is asked.
    #[command(flatten)]
    pub answer: AnswerOptions,
    /// Print the answer's timings as JSON to standard error
    #[arg(long, requires = "prompt", help_heading = "Question")]
    pub bench: bool,
    /// What this device contributes.
    #[command(flatten)]
    pub contribution: Contribution,
    /// This device.
    #[command(flatten)]
    pub device: DeviceOptions,
    /// Whom this program talks to.
    #[command(flatten)]
    pub network: NetworkOptions,
}

/// The places for a link besides an argument, which other users of the machine can see.
pub(crate) const VARIABLE: &str = "POTLUCK_LINK";
/// No link or key is longer.
const MAX_LINE_BYTES: u64 = 4096;

/// What the command line has in the link's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkArgument {
    /// The link itself.
    Link(RoomLink),
    /// `-`: the link comes from standard input.
    Input,
}

impl FromStr for LinkArgument {
    type Err = BadLink;

    fn from_str(text: &str) -> Result<Self, BadLink> {
        if text == "-" { Ok(Self::Input) } else { text.parse().map(Self::Link) }
    }
}

/// The link in a text: its first line.
fn link_in(text: &str) -> Result<RoomLink, Failure> {
    let line = text.lines().next().unwrap_or_default().trim();
    line.parse().map_err(|error: BadLink| Failure::Usage(texts().terminal.bad_link(error.to_string())))
}

fn first_line(from: impl Read) -> std::io::Result<String> {
    let mut line = String::new();
    std::io::BufReader::new(from.take(MAX_LINE_BYTES)).read_line(&mut line)?;
    Ok(line)
}

/// The first line of a file.
pub(crate) fn line_of_file(path: &Path) -> Result<String, Failure> {
    let line = std::fs::File::open(path).and_then(first_line);
    line.map_err(|error| Failure::Usage(texts().model_path.unreadable(path.display().to_string(), reason(&error))))
}

/// Waits for the line in a thread of its own, so that the program can be stopped meanwhile.
async fn link_of_input(stop: &mut Stop) -> Result<RoomLink, Failure> {
    let input = std::io::stdin();
    if input.is_terminal() {
        say(texts().terminal.paste_link());
    }
    let line = tokio::task::spawn_blocking(move || first_line(input));
    let line = tokio::select! {
        signal = stop.stopped() => return Err(Failure::Stopped(signal)),
        line = line => line.map_err(std::io::Error::other).flatten(),
    };
    link_in(&line.map_err(|error| Failure::Usage(texts().terminal.no_input(error.to_string())))?)
}

/// The link from where it is: the command line, a file, standard input, or the environment.
///
/// # Errors
/// It is not valid, or somebody stopped the program before it arrived.
pub(crate) async fn find_link(
    argument: Option<&LinkArgument>,
    file: Option<&Path>,
    variable: Option<String>,
    stop: &Stop,
) -> Result<Option<RoomLink>, Failure> {
    match (argument, file, variable) {
        (Some(LinkArgument::Link(link)), ..) => Ok(Some(link.clone())),
        (Some(LinkArgument::Input), ..) => link_of_input(&mut stop.clone()).await.map(Some),
        (None, Some(path), _) => link_in(&line_of_file(path)?).map(Some),
        (None, None, Some(link)) => link_in(&link).map(Some),
        (None, None, None) => Ok(None),
    }
}

impl JoinOptions {
    /// The same with the link from where it is: the command line, a file, standard input, or the environment.
    ///
    /// # Errors
    /// There is no link, it is not valid, or somebody stopped the program before it arrived.
    async fn with_link(&self, variable: Option<String>, stop: &Stop) -> Result<Self, Failure> {
        let link = find_link(self.link.as_ref(), self.link_file.as_deref(), variable, stop).await?;
        let link = link.ok_or_else(|| Failure::Usage(texts().terminal.which_room().to_owned()))?;
        Ok(Self { link: Some(LinkArgument::Link(link)), link_file: None, ..self.clone() })
    }

    fn link(&self) -> Result<&RoomLink, Failure> {
        match &self.link {
            Some(LinkArgument::Link(link)) => Ok(link),
            Some(LinkArgument::Input) | None => Err(Failure::Usage(texts().terminal.which_room().to_owned())),
        }
    }

    /// How the node of this command is set up.
    ///
    /// # Errors
    /// There is no link, or the file with the device's key cannot be read or written.
    pub fn setup(&self) -> Result<Setup, Failure> {
        let link = self.link()?;
        let relay_fingerprint = self.network.relay_fingerprint.or(link.fingerprint);
        let network = NetworkOptions { relay_fingerprint, ..self.network.clone() };
        let mut setup = Setup::of_this_device(&network, &link.relay, &self.device)?;
        setup.node.guesses.eviction = self.contribution.eviction;
        Ok(setup)
    }

    /// Enters the room and contributes, unless this is a guest.
    ///
    /// # Errors
    /// There is no link.
    pub fn enter(&self, session: &mut Session) -> Result<(), Failure> {
        let RoomLink { room, key, .. } = self.link()?.clone();
        session.set_purpose(match (&self.answer.prompt, self.guest) {
            (Some(_), _) => Purpose::Ask,
            (None, true) => Purpose::Visit,
            (None, false) => Purpose::Contribute,
        });
        session.page(ToNode::Join { room, key });
        if !self.guest {
            session.page(ToNode::Contribute(ContributeChoice { budget: self.contribution.budget }));
        }
        Ok(())
    }
}

/// Enters the room and stays in it.
///
/// # Errors
/// What failed.
pub(crate) async fn join(options: &JoinOptions, stop: &Stop) -> Result<(), Failure> {
    let options = options.with_link(std::env::var(VARIABLE).ok(), stop).await?;
    let mut session = Session::start(options.setup()?.stopped_by(stop));
    let entered = options.enter(&mut session);
    crate::stay(&mut session, entered, options.answer.question(), options.bench).await
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use clap::Parser;

    use super::*;
    use crate::{CommandLine, Verb};

    fn options(line: &[&str]) -> JoinOptions {
        let line = ["potluck-node", "join"].iter().chain(line);
        match CommandLine::try_parse_from(line).unwrap().verb {
            Verb::Join(options) => options,
            other => panic!("{other:?}"),
        }
    }

    async fn link(line: &[&str], variable: Option<&str>) -> Result<String, Failure> {
        let options = options(line).with_link(variable.map(str::to_owned), &Stop::never()).await?;
        Ok(options.link()?.to_string())
    }

    const LINK: &str = "https://h/r/k3v9#00ff";
    const OTHER: &str = "https://h/r/k3v9#aaaa";

    #[tokio::test]
    async fn a_link_need_not_be_an_argument_that_other_users_see() {
        let path = std::env::temp_dir().join(format!("potluck-link-{}", std::process::id()));
        std::fs::write(&path, format!("{LINK}\n# the room of Tuesday\n")).unwrap();
        let file = path.to_str().unwrap();
        assert_eq!(link(&["--link-file", file], None).await, Ok(LINK.to_owned()));
        assert_eq!(link(&[], Some(LINK)).await, Ok(LINK.to_owned()));
        assert_eq!(link(&[LINK], Some(OTHER)).await, Ok(LINK.to_owned()), "the command line counts first");
        assert_eq!(link(&["--link-file", file], Some(OTHER)).await, Ok(LINK.to_owned()));
        std::fs::remove_file(&path).unwrap();
        for (line, variable) in [(vec!["--link-file", file], None), (vec![], Some("elsewhere")), (vec![], None)] {
            assert!(matches!(link(&line, variable).await, Err(Failure::Usage(_))), "{line:?} {variable:?}");
        }
        assert_eq!(options(&["-", "--guest"]).link, Some(LinkArgument::Input));
    }
}
