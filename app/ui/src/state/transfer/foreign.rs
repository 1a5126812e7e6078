//! Reads exports that nobody here wrote, and says what became of them:
//!
//! `POTLUCK_EXPORTS=DIR cargo test -p potluck-ui foreign -- --ignored --nocapture`
//!
//! With `POTLUCK_EXPORTS_READ=DIR2`, what was read of each file is written there, in the own form, one conversation a line.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::{env, fs, path::Path};

use super::{Conversation, Envelope, FORM, VERSION, read};

/// Questions and answers of all branches.
fn counted(conversations: &[Conversation]) -> (usize, usize) {
    let turns = || conversations.iter().flat_map(|one| one.turns.iter().chain(&one.aside));
    (turns().count(), turns().filter(|turn| !turn.answer.text.is_empty()).count())
}

#[test]
#[ignore = "reads the files of a folder that POTLUCK_EXPORTS names"]
fn exports_of_other_programs_are_read() {
    let folder = env::var("POTLUCK_EXPORTS").unwrap();
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for path in files {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
        let mut number = 0;
        let mut ids = || {
            number += 1;
            number.to_string()
        };
        let imported = match read(&text, &mut ids, 4e12) {
            Ok(imported) => imported,
            Err(error) => {
                println!("{name}: {error:?}");
                continue;
            }
        };
        let (questions, answers) = counted(&imported.conversations);
        let (read, unreadable) = (imported.conversations.len(), imported.unreadable);
        println!("{name}: {read} read, {unreadable} unreadable, {questions} questions, {answers} answers");
        if let Ok(folder) = env::var("POTLUCK_EXPORTS_READ") {
            let line =
                |conversation| serde_json::to_string(&Envelope { form: FORM, version: VERSION, conversation }).unwrap();
            let lines: Vec<_> = imported.conversations.iter().map(line).collect();
            fs::write(Path::new(&folder).join(name), lines.join("\n")).unwrap();
        }
    }
}
