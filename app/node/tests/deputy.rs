//! The host of a room is lost in the middle of an answer, over a real relay: its deputy goes on with it.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use common::*;
use potluck_gguf::synthetic::{Architecture, Synthetic};
use potluck_panel::{AnswerPart, DeputyChoice, HostChoice, ModelSource, Sharing, ToNode, ToPage};
use potluck_terminal::Session;

const TEXT: &str = "a question for a room whose host will not be there for all of its answer";
const TOKENS: u32 = 60;

fn small() -> Synthetic {
    Synthetic { architecture: Architecture::Llama, blocks: 3, seed: 5, ..Synthetic::default() }
}

/// Lets a node run while others are looked at.
async fn idle(session: &mut Session) {
    until(session, "never", |_| false).await;
}

#[test]
fn an_answer_goes_on_when_its_host_is_gone_for_good() {
    test(async {
        let models = folder("models");
        let path = write(&small(), &models, "small");
        let expected = alone(&path, TEXT, TOKENS).await;
        let relay = relay(&models, 0).await;
        let mut host = peer("Host", &relay.origin, folder("host"));
        let source = ModelSource::Relay { name: "small".into() };
        let choice = HostChoice {
            sharing: Sharing::Everyone,
            deputy: DeputyChoice::Anyone,
            ..choice(source, budget_of(&small(), 2.0))
        };
        let link = host_as(&mut host, &relay.origin, choice, Vec::new()).await;
        let [mut deputy, mut asker] = ["Deputy", "Asker"].map(|name| peer(name, &relay.origin, folder("guest")));
        join_room(&deputy, &link, Some(budget_of(&small(), 2.0)));
        join_room(&asker, &link, None);
        let first = host.status.peer;
        let is_ready = |status: &potluck_panel::Status| is_up(status, 2) && status.deputy.is_some();
        tokio::select! {
            () = until(&mut asker, "a room of two with a deputy", is_ready) => {}
            () = idle(&mut host) => {}
            () = idle(&mut deputy) => {}
        }
        asker.page(ToNode::Prompt(question(1, TEXT, TOKENS)));
        let (mut tokens, mut host) = (Vec::new(), Some(host));
        loop {
            let gone = async {
                match &mut host {
                    Some(host) => idle(host).await,
                    None => std::future::pending().await,
                }
            };
            let message = tokio::select! {
                message = asker.next() => message.unwrap(),
                () = gone => unreachable!(),
                () = idle(&mut deputy) => unreachable!(),
            };
            match message {
                ToPage::Answer { event: AnswerPart::Text { tokens: more, .. }, .. } => tokens.extend(more),
                ToPage::Answer { event: AnswerPart::Void { .. }, .. } => panic!("the answer begins again"),
                ToPage::Answer { event: AnswerPart::End { stop, .. }, .. } => {
                    assert_eq!(tokens.len(), TOKENS as usize, "{stop:?}");
                    break;
                }
                _ => {}
            }
            if tokens.len() >= 15 {
                // Its process is killed.
                drop(host.take());
            }
        }
        assert_eq!(tokens, expected, "the same answer as undisturbed");
        assert!(deputy.status.role.coordinator, "the deputy hosts");
        assert_ne!(asker.status.peers[0].peer, first.unwrap());
        let again = question(2, "and another question", 5);
        tokio::select! {
            tokens = answer(&mut asker, again, |_| {}) => assert_eq!(tokens.len(), 5),
            () = idle(&mut deputy) => {}
        }
        relay.stop().await;
    });
}
