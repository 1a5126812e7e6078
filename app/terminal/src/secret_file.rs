//! Keys and other private data of a room, in files that only this user can read.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use potluck_panel::{Doors, Ends, KeySeed, LogEntry, RoomKeys};
use potluck_text::{log_text, texts, visible_json};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::model_path::reason;

/// The device's key, in the folder of its downloads.
const DEVICE_KEY: &str = "device-key.json";

/// A room that this device hosts, as it is kept over restarts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptRoom {
    /// Who has them can open the room.
    #[serde(flatten)]
    pub keys: RoomKeys,
    /// Bans, invites, and who was let in. Files of older versions hold none.
    #[serde(default)]
    pub doors: Doors,
    /// Where the ends of its model may be computed. Files of older versions say nothing: anywhere.
    #[serde(default)]
    pub ends: Ends,
}

impl KeptRoom {
    /// Where the ends of its model may be computed if it opens again: what its guests were told holds as long as the room.
    pub fn ends(&self, chosen: Ends) -> Ends {
        if self.ends == Ends::OnHost { Ends::OnHost } else { chosen }
    }
}

/// The room that was hosted before; `None` if the file does not exist yet.
///
/// # Errors
/// A sentence: the file cannot be read, or holds something else.
pub fn read_room(path: &Path) -> Result<Option<KeptRoom>, String> {
    read(path, |path, error| texts().secret_file.not_of_room(path, error))
}

/// Keeps a room. The file is replaced in one go, so that a host that ends in the middle still has its room.
///
/// # Errors
/// A sentence: the file cannot be written.
pub fn keep_room(path: &Path, room: &KeptRoom) -> Result<(), String> {
    let text = serde_json::to_string(room).map_err(|error| unwritable(path, &error.into()))?;
    replace(path, &text)
}

/// Waits until a room that was kept is on the disk, so that a power cut does not bring back the one from before.
///
/// # Errors
/// A sentence: the file cannot be written.
pub fn settle_room(path: &Path) -> Result<(), String> {
    let settled = OpenOptions::new().write(true).open(path).and_then(|file| file.sync_all());
    settled.map_err(|error| unwritable(path, &error))
}

/// Writes the log of a room's doors: as JSON to a file of that kind, else as text.
///
/// # Errors
/// A sentence: the file cannot be written.
pub fn write_log(path: &Path, log: &[LogEntry]) -> Result<(), String> {
    let text = match path.extension() {
        Some(kind) if kind.eq_ignore_ascii_case("json") => {
            visible_json(&serde_json::to_string_pretty(log).map_err(|error| unwritable(path, &error.into()))?)
        }
        _ => log_text(log),
    };
    replace(path, &text)
}

/// Replaces a file in one go.
fn replace(path: &Path, text: &str) -> Result<(), String> {
    // A link to the file stays one.
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let mut beside = path.clone().into_os_string();
    beside.push(format!(".{}", std::process::id()));
    let beside = PathBuf::from(beside);
    write(&beside, text, OpenOptions::new().create(true).truncate(true))?;
    std::fs::rename(&beside, &path).map_err(|error| {
        let _ = std::fs::remove_file(&beside);
        unwritable(&path, &error)
    })
}

/// The key by which rooms know this device again: the one in `cache`, or `fresh`, which is kept there from now on.
///
/// # Errors
/// A sentence: the file cannot be read or written, or holds something else.
pub fn device_key(cache: &Path, fresh: KeySeed) -> Result<KeySeed, String> {
    let path = cache.join(DEVICE_KEY);
    let known = || read(&path, |path, error| texts().secret_file.not_of_device(path, error));
    if let Some(key) = known()? {
        return Ok(key);
    }
    // Written whole beside it and then linked, so that nobody reads half a key; of two peers that start at once one is first.
    let beside = cache.join(format!("{DEVICE_KEY}.{}", std::process::id()));
    let made = std::fs::create_dir_all(cache);
    made.map_err(|error| texts().secret_file.no_folder(cache.display().to_string(), reason(&error)))?;
    let text = serde_json::to_string(&fresh).map_err(|error| unwritable(&path, &error.into()))?;
    write(&beside, &text, OpenOptions::new().create(true).truncate(true))?;
    let linked = std::fs::hard_link(&beside, &path);
    // It is only a second name.
    let _ = std::fs::remove_file(&beside);
    match linked {
        Ok(()) => Ok(fresh),
        Err(error) => known()?.ok_or_else(|| unwritable(&path, &error)),
    }
}

/// `other` says that the file holds something else.
fn read<T: DeserializeOwned>(path: &Path, other: fn(String, String) -> String) -> Result<Option<T>, String> {
    let shown = path.display().to_string();
    match std::fs::read_to_string(path) {
        Ok(text) => serde_json::from_str(&text).map(Some).map_err(|error| other(shown, error.to_string())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(texts().secret_file.unreadable(shown, reason(&error))),
    }
}

fn unwritable(path: &Path, error: &std::io::Error) -> String {
    texts().secret_file.unwritable(path.display().to_string(), reason(error))
}

fn write(path: &Path, text: &str, how: &mut OpenOptions) -> Result<(), String> {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(how, 0o600);
    let written = how.write(true).open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| unwritable(path, &error))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may panic")]
    use potluck_panel::{LogEvent, UnixSeconds};

    use super::*;

    #[test]
    fn a_device_keeps_its_key_where_only_its_user_reads_it() {
        let folder = std::env::temp_dir().join(format!("potluck-device-key-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let first = device_key(&folder, KeySeed([1; 32])).unwrap();
        assert!(first == KeySeed([1; 32]) && device_key(&folder, KeySeed([2; 32])).unwrap() == first);
        #[cfg(unix)]
        {
            let mode = std::fs::metadata(folder.join(DEVICE_KEY)).unwrap();
            assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode.permissions()) & 0o777, 0o600);
        }
        std::fs::write(folder.join(DEVICE_KEY), "\"12\"").unwrap();
        let sentence = device_key(&folder, KeySeed([3; 32])).unwrap_err();
        assert!(sentence.contains("Delete it to create a new one."), "{sentence}");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn room_keys_are_kept_with_the_doors_where_only_their_user_reads_them() {
        let folder = std::env::temp_dir().join(format!("potluck-room-keys-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("room.json");
        assert_eq!(read_room(&path), Ok(None));
        let keys = RoomKeys { owner: KeySeed([1; 32]), secret: "secret".into() };
        let doors = Doors { generation: 7, ..Doors::default() };
        keep_room(&path, &KeptRoom { keys: keys.clone(), doors: Doors::default(), ends: Ends::Anywhere }).unwrap();
        let room = KeptRoom { keys: keys.clone(), doors, ends: Ends::OnHost };
        keep_room(&path, &room).unwrap();
        settle_room(&path).unwrap();
        assert_eq!(read_room(&path), Ok(Some(room.clone())));
        assert!(settle_room(&folder.join("none.json")).is_err_and(|sentence| sentence.contains("none.json")));
        assert_eq!(room.ends(Ends::Anywhere), Ends::OnHost, "a room that kept words goes on to do so");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "nothing stays beside it");
        #[cfg(unix)]
        {
            let mode = std::fs::metadata(&path).unwrap();
            assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode.permissions()) & 0o777, 0o600);
        }
        // What older versions wrote: the keys alone.
        std::fs::write(&path, serde_json::to_string(&keys).unwrap()).unwrap();
        assert_eq!(read_room(&path), Ok(Some(KeptRoom { keys, doors: Doors::default(), ends: Ends::Anywhere })));
        std::fs::write(&path, "{\"owner\":").unwrap();
        let sentence = read_room(&path).unwrap_err();
        assert!(sentence.contains("it is damaged: delete it, and the next start creates a new room."), "{sentence}");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_log_is_text_or_json_and_its_users_only() {
        let folder = std::env::temp_dir().join(format!("potluck-log-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let at = UnixSeconds(1_000);
        let entry = LogEntry {
            first: at,
            last: at,
            times: 1,
            device: None,
            name: "Eve\u{1b}[2J".into(),
            event: LogEvent::Banned,
        };
        for (name, has) in [("log.txt", "was banned"), ("log.JSON", "\"Banned\"")] {
            let path = folder.join(name);
            write_log(&path, &[]).unwrap();
            write_log(&path, std::slice::from_ref(&entry)).unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            assert!(text.contains(has) && !text.contains('\u{1b}'), "{text}");
            #[cfg(unix)]
            {
                let mode = std::fs::metadata(&path).unwrap();
                assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode.permissions()) & 0o777, 0o600);
            }
        }
        assert!(write_log(&folder.join("none/log.txt"), &[]).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
