//! The model that the repository comes with, and a text that it knows.

use std::path::Path;

use potluck_gguf::{join, parse};
use potluck_model::{Channels, ChatTemplate, Message, ModelSpec, RenderOptions, Tokenizer};

use super::Model;

/// The model, and the tokens of a conversation: the first questions and answers that its README lists.
pub fn built_in(answers: usize) -> (Model, Vec<u32>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../public/models");
    let file = std::fs::read(folder.join("potluck-small-Q4_K_M.gguf")).unwrap();
    let parsed = join([parse(&file).unwrap()]).unwrap();
    let (spec, units) = ModelSpec::from_gguf(&parsed).unwrap();
    let tokenizer = Tokenizer::from_metadata(&parsed.metadata).unwrap();
    let template = ChatTemplate::from_metadata(&parsed.metadata, &tokenizer).unwrap();
    let readme = std::fs::read_to_string(folder.join("README.md")).unwrap();
    let rows = readme.lines().skip_while(|line| *line != "| | prompt | answer |").skip(2).take(answers);
    let cells = rows.map(|line| line.split(" | ").collect::<Vec<_>>());
    let messages: Vec<Message> = cells
        .flat_map(|cells| [Message::new("user", cells[1]), Message::new("assistant", cells[2].trim_end_matches(" |"))])
        .collect();
    let ids = template
        .encode(&tokenizer, &Channels::new(&tokenizer, &template), &messages, &RenderOptions::default())
        .unwrap();
    (Model { spec, units, file }, ids)
}
