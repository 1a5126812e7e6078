//! How an answer is sampled, as options of a question (`--prompt`).

use clap::error::Error;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, value_parser};
use potluck_panel::Sampling;

use crate::values::parse_temperature;

/// `--temperature` and `--seed`; greedy without them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SamplingArguments(pub Sampling);

impl Default for SamplingArguments {
    fn default() -> Self {
        Self(Sampling::greedy())
    }
}

impl Args for SamplingArguments {
    fn augment_args(command: Command) -> Command {
        let temperature = Arg::new("temperature").long("temperature").value_name("T").allow_hyphen_values(true);
        let seed = Arg::new("seed").long("seed").value_name("N").requires("prompt");
        command
            .arg(
                temperature
                    .value_parser(parse_temperature)
                    .requires("prompt")
                    .default_value("0")
                    .help("Sampling temperature: higher gives more varied answers, 0 always takes the likeliest token"),
            )
            .arg(
                seed.value_parser(value_parser!(u64))
                    .default_value("0")
                    .help("Seed of the sampling: the same seed gives the same answer"),
            )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SamplingArguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut sampling = Self::default();
        sampling.update_from_arg_matches(matches)?;
        Ok(sampling)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        let Self(sampling) = self;
        sampling.temperature = matches.get_one("temperature").copied().unwrap_or(sampling.temperature);
        sampling.seed = matches.get_one("seed").copied().unwrap_or(sampling.seed);
        Ok(())
    }
}
