//! Reads exports that nobody here wrote, and says what became of them:
//!
//! `POTLUCK_EXPORTS=DIR cargo test -p potluck-ui foreign -- --ignored --nocapture`
//!
//! What was read is written next to each file, as `FILE.Own` and `FILE.Messages`.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::{env, fs};

use super::{FileForm, read};
use crate::state::Conversation;

#[test]
#[ignore = "reads the files of the folder that POTLUCK_EXPORTS names"]
fn exports_of_other_programs_are_read() {
    let folder = fs::read_dir(env::var("POTLUCK_EXPORTS").unwrap()).unwrap();
    let mut files: Vec<_> = folder.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "json"));
    files.sort();
    for path in files {
        let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
        match read(&text, String::new, f64::MAX) {
            Ok(imported) => {
                let (read, unreadable) = (imported.conversations.len(), imported.unreadable);
                println!("{}: {read} read, {unreadable} unreadable", path.display());
                for form in [FileForm::Own, FileForm::Messages] {
                    let written: Vec<_> = imported.conversations.iter().map(|one| form.write(one)).collect();
                    let json = format!("[{}]", written.join(","));
                    if matches!(form, FileForm::Own) {
                        let again = super::read(&json, String::new, f64::MAX).unwrap().conversations;
                        let turns = |all: &[Conversation]| all.iter().map(|one| one.turns.len()).collect::<Vec<_>>();
                        assert_eq!(turns(&again), turns(&imported.conversations), "{}", path.display());
                    }
                    fs::write(path.with_extension(format!("{form:?}")), json).unwrap();
                }
            }
            Err(error) => println!("{}: {error:?}", path.display()),
        }
    }
}
