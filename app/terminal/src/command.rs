//! What stands on the command line.

use clap::{Parser, Subcommand};

use crate::doctor::DoctorOptions;
use crate::host::HostOptions;
use crate::join::JoinOptions;
use crate::pull::PullOptions;
use crate::run::RunOptions;
use crate::serve::ServeOptions;
use crate::shell_files::{CompletionsOptions, ManOptions};
use crate::show::ShowOptions;
use crate::stored_models::{ListOptions, RemoveOptions};
use crate::verify::VerifyOptions;

/// The command line of `potluck-node`. Of an option that is given twice the last one counts.
#[derive(Debug, Parser)]
#[command(
    name = "potluck-node",
    about = "Potluck without a browser: run a model on this device, host a room, or join one",
    version = potluck_panel::BUILD,
    args_override_self = true
)]
pub struct CommandLine {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What to do. Each verb has the options that mean something to it, and no others.
#[derive(Clone, Debug, PartialEq, Subcommand)]
pub enum Verb {
    /// Run a model on this device alone: chat, answer one prompt, or benchmark the model. Needs no network, unless the model is a link
    Run(RunOptions),
    /// Open a room for other devices, and print its link
    Host(HostOptions),
    /// Join a room: lend it this device's GPU, or only ask a question
    Join(JoinOptions),
    /// Let other programs use a model as they use OpenAI's or Anthropic's API: a model's file on this device, or the model of a room
    Serve(ServeOptions),
    /// Download a model, so that run and host find it on this device. If it is stopped, the same command goes on where it ended
    Pull(PullOptions),
    /// List the models that are stored on this device, whole or in part
    #[command(visible_alias = "ls")]
    List(ListOptions),
    /// Delete stored models
    Rm(RemoveOptions),
    /// Show what is known of a model, and whether its memory fits
    Show(ShowOptions),
    /// Check this device: its GPU and driver, the kernels' results, the cache, and with --relay a relay and the clock
    Doctor(DoctorOptions),
    /// Check whether a relay serves the page of a release
    Verify(VerifyOptions),
    /// Print completions for a shell
    Completions(CompletionsOptions),
    /// Print a manual page: potluck-node man run | man -l -
    Man(ManOptions),
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use std::path::PathBuf;

    use clap::CommandFactory;
    use potluck_node::compute::ShadowSource;
    use potluck_panel::{BenchWorkload, InviteKind, Sharing};
    use potluck_plan::{Arithmetic, KvCacheType};

    use super::*;
    use crate::serve::ServeTarget;

    fn read(line: &str) -> Result<Verb, String> {
        let line = std::iter::once("potluck-node").chain(line.split_whitespace());
        CommandLine::try_parse_from(line).map(|line| line.verb).map_err(|error| error.to_string())
    }

    fn run(line: &str) -> RunOptions {
        match read(line).unwrap() {
            Verb::Run(options) => options,
            other => panic!("a run, not {other:?}"),
        }
    }

    #[test]
    fn clap_finds_no_fault_in_the_options() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn options_and_defaults_are_read() {
        let line =
            "host tiny --relay http://localhost:1 --room-keys room.json --budget 1.5G --share everyone --keep-words";
        let Verb::Host(host) = read(line).unwrap() else { panic!("a host") };
        assert_eq!((host.model.as_str(), host.relay.as_str()), ("tiny", "http://localhost:1"));
        assert_eq!(host.room_keys, Some(PathBuf::from("room.json")));
        assert!(host.keep_words);
        assert_eq!((host.contribution.budget, host.share), (1_500_000_000, Sharing::Everyone));
        assert_eq!((host.model_options.context, host.network.name.as_str()), (4096, "Native peer"));
        assert_eq!((host.answer.question(), host.invite), (None, None));
        let Verb::Host(host) = read("host tiny --relay http://a --invite chat").unwrap() else { panic!("a host") };
        assert_eq!(host.invite, Some(InviteKind::Chat));
        assert!(read("host tiny --relay http://a --invite all").unwrap_err().contains("chat or contribute"));
    }

    #[test]
    fn of_an_option_the_last_one_counts_and_a_prompt_may_begin_with_a_hyphen() {
        let options = run("run --seed 1 --prompt -list x.gguf --seed 2 --kv q8_0");
        assert_eq!((options.model, options.answer.sampling.0.seed), (PathBuf::from("x.gguf"), 2));
        assert_eq!(options.answer.prompt.as_deref(), Some("-list"));
        assert_eq!(options.model_options.cache_type, Some(KvCacheType::Q8_0));
    }

    #[test]
    fn workloads_and_depths_are_lists() {
        let bench = run("run x.gguf --bench --workloads 25/128,1024/1 --depths 0,4096 --runs 2 --untuned").benchmark;
        let workloads = [(25, 128), (1024, 1)].map(|(prompt, answer)| BenchWorkload { prompt, answer });
        assert_eq!(bench.workloads, workloads);
        assert_eq!((bench.depths, bench.runs, bench.untuned), (vec![0, 4096], 2, true));
        let bench = run("run x.gguf --bench").benchmark;
        assert_eq!((bench.workloads.len(), bench.depths, bench.runs), (4, vec![0, 2048], 5));
        for wrong in ["--workloads 25", "--workloads 25/many", "--depths deep", "--runs 0", "--runs 101"] {
            assert!(read(&format!("run x.gguf --bench {wrong}")).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_shadow_comes_with_its_alignment() {
        let guesses = run("run x.gguf --prompt a --shadow own:q4_0 --align T1KV4").guesses;
        assert!(matches!(guesses.shadow, Some(ShadowSource::Own(Some(_)))));
        assert_eq!(guesses.align.to_string(), "T1 KV4");
        assert!(read("run x.gguf --prompt a --align T1").unwrap_err().contains("--shadow"));
        assert!(read("run x.gguf --prompt a --shadow own --align often").unwrap_err().contains("T4KV8"));
        assert!(
            read("run x.gguf --prompt a --shadow own --predictor router").unwrap_err().contains("cannot be used with")
        );
    }

    #[test]
    fn an_option_belongs_to_the_verbs_for_which_it_means_something() {
        for (verb, options) in [
            (
                "run x.gguf --prompt a",
                "--relay=u --name=n --share=experts --replicas=2 --hedging=off --wire=f16 --protect --keep-words --on-demand --visible --guest --relay-fingerprint=00",
            ),
            ("host x --relay http://u", "--guest --workloads=1/1 --depths=0 --untuned --runs=1"),
            (
                "serve x.gguf",
                "--prompt=a --relay=u --share=experts --protect --visible --guest --room-keys=f --bench --allow-private-links",
            ),
            (
                "join http://h/r/a",
                "--relay=u --context=64 --kv=f32 --arithmetic=packed --predictor=router --shadow=own --protect --keep-words --visible --room-keys=f --workloads=1/1",
            ),
        ] {
            for option in options.split(' ') {
                let sentence = read(&format!("{verb} {option}")).expect_err(option);
                assert!(sentence.contains("unexpected argument"), "{verb} {option}: {sentence}");
            }
        }
    }

    #[test]
    fn a_room_or_a_model_is_served_on_this_machine_only_unless_told_otherwise() {
        let serve = |line: &str| match read(line).unwrap() {
            Verb::Serve(options) => options,
            other => panic!("serve, not {other:?}"),
        };
        let model = serve("serve x.gguf --context 512 --allow-origin https://a.example --allow-origin http://b:1");
        assert_eq!(model.target, Some(ServeTarget::Model(PathBuf::from("x.gguf"))));
        assert!(model.api.listen.ip().is_loopback());
        assert_eq!((model.api.allow_origin.len(), model.own.context), (2, Some(512)));
        let room = serve("serve https://h/r/k3v9#00ff --name Editor --listen 0.0.0.0:9000");
        assert!(matches!(room.target, Some(ServeTarget::Room(_))));
        assert_eq!((room.room.name.as_deref(), room.api.listen.port()), (Some("Editor"), 9000));
        for (wrong, says) in [
            ("serve https://h/elsewhere", "a room's link"),
            ("serve x.gguf --listen here", "--listen"),
            ("serve x.gguf --allow-origin here", "an origin"),
            ("serve x.gguf --api-key a --api-key-file b", "cannot be used with"),
            ("serve x.gguf --link-file b", "cannot be used with"),
        ] {
            let sentence = read(wrong).unwrap_err();
            assert!(sentence.contains(says), "{wrong}: {sentence}");
        }
    }

    #[test]
    fn missing_and_wrong_arguments_are_explained() {
        let error = |line: &str| read(line).unwrap_err();
        assert!(error("run --prompt a").contains("<MODEL>"));
        assert!(error("host x").contains("--relay <URL>"));
        assert!(error("join l").contains("expected a room's link"));
        assert!(
            error("join http://h/r/a --max-tokens 5").contains("--prompt <TEXT>"),
            "of a question that is not asked"
        );
        assert!(error("join http://h/r/a --guest --budget 1G").contains("cannot be used with"));
        assert!(error("run x --bench --prompt a --depths 0").contains("cannot be used with"));
        assert!(error("host l --relay http://x --arithmetic matrix").contains("not every device has matrix units"));
        assert!(error("run x --bench --arithmetic f16").contains("expected exact, packed or matrix"));
        assert!(error("host l --relay http://x --hedging 200").contains("from 1 to 4"));
        assert!(error("host l --relay http://x --context 1").contains("64.."));
        assert!(error("join http://h/r/a --budget many").contains("a number of bytes, such as 900M or 4G"));
        assert!(error("join http://h/r/a --frobnicate").contains("frobnicate"));
    }

    #[test]
    fn the_arithmetic_is_that_of_the_verb() {
        assert_eq!(run("run x --bench --arithmetic matrix").arithmetic, Arithmetic::Matrix);
        let Verb::Host(host) = read("host x --relay http://u --arithmetic packed").unwrap() else { panic!("a host") };
        assert_eq!(host.arithmetic, Some(Arithmetic::Packed));
        let Verb::Host(host) = read("host x --relay http://u").unwrap() else { panic!("a host") };
        assert_eq!(host.arithmetic, None, "what suits its GPU");
    }

    #[test]
    fn help_names_the_options_of_a_verb_and_none_that_only_measures() {
        let mut all = CommandLine::command();
        let help = |verb: &str, all: &mut clap::Command| {
            all.find_subcommand_mut(verb).expect(verb).render_long_help().to_string()
        };
        for (verb, options) in [
            ("run", "--prompt --workloads --kv --arithmetic --budget --gpu-index --shadow --eviction --predictor"),
            (
                "host",
                "--room-keys --relay-fingerprint --allow-private-links --hedging --replicas --wire --protect --keep-words",
            ),
            (
                "serve",
                "--listen --api-key --api-key-file --allow-origin --link-file --context --budget --relay-fingerprint",
            ),
            ("join", "--guest --budget --relay-fingerprint --eviction --cache"),
        ] {
            let help = help(verb, &mut all);
            for option in options.split(' ') {
                assert!(help.contains(option), "{option} is missing in\n{help}");
            }
            for hidden in
                ["--slow", "--delay", "--rounds", "--tier", "--recalls", "--hints", "--members", "--always-guess"]
            {
                assert!(!help.contains(hidden), "{hidden} is for measurements only:\n{help}");
            }
        }
    }
}
