//! IndexedDB: conversations, drafts and settings as JSON text. The latest write wins, but for conversations: there a tab
//! overwrites only what it knows.

use std::cell::RefCell;
use std::rc::Rc;

use idb::{
    Database, DatabaseEvent, Error, Factory, KeyRange, ObjectStoreParams, Query, Transaction, TransactionMode,
    TransactionResult,
};
use serde::{Serialize, de::DeserializeOwned};
use wasm_bindgen::JsValue;

use potluck_panel::{AccessTokens, KeySeed};

use crate::state::{Conversation, OwnRoom, PendingWrite, Record, Settings, WriteOutcome};

const NAME: &str = "potluck-page";
const CONVERSATIONS: &str = "conversations";
const PAGE: &str = "page";
const SETTINGS: &str = "settings";
const DRAFT: &str = "draft";
const ACCESS_TOKENS: &str = "access-tokens";
const DEVICE_KEY: &str = "device-key";
/// Before a room's id in the key of its record, and the first key after all of them.
const ROOMS: (&str, &str) = ("room/", "room0");

thread_local! {
    static OPEN: RefCell<Option<Rc<Database>>> = const { RefCell::new(None) };
}

/// Everything that was stored.
#[derive(Debug, Default)]
pub struct StoredData {
    /// All conversations, unordered; none if the database could not be read.
    pub conversations: Option<Vec<Record>>,
    /// Settings.
    pub settings: Settings,
    /// Unsent text of the composer.
    pub draft: String,
    /// This browser's secret key, once it has one.
    pub device_key: Option<KeySeed>,
    /// The rooms that this browser hosted, unordered.
    pub own_rooms: Vec<OwnRoom>,
}

/// Loads everything.
///
/// # Errors
/// The browser provides no database for this page (some private windows).
pub async fn load() -> Result<StoredData, Error> {
    let database = database().await?;
    let transaction = database.transaction(&[CONVERSATIONS, PAGE], TransactionMode::ReadOnly)?;
    let conversations = transaction.object_store(CONVERSATIONS)?.get_all(None, None)?.await?;
    let page = transaction.object_store(PAGE)?;
    let settings = page.get(key(SETTINGS))?.await?;
    let draft = page.get(key(DRAFT))?.await?;
    let access_tokens = page.get(key(ACCESS_TOKENS))?.await?;
    let device_key = page.get(key(DEVICE_KEY))?.await?;
    let (first, end) = (JsValue::from_str(ROOMS.0), JsValue::from_str(ROOMS.1));
    let rooms = Query::KeyRange(KeyRange::bound(&first, &end, None, Some(true))?);
    let rooms = page.get_all(Some(rooms), None)?.await?;
    let settings = settings.and_then(|value| Settings::read(&value.as_string()?)).unwrap_or_default();
    let access_tokens = access_tokens.as_ref().and_then(read).unwrap_or_default();
    Ok(StoredData {
        // Leave records in place that this version cannot read.
        conversations: Some(conversations.iter().filter_map(read).collect()),
        settings: Settings { access_tokens, ..settings },
        draft: draft.as_ref().and_then(read).unwrap_or_default(),
        device_key: device_key.as_ref().and_then(read),
        own_rooms: rooms.iter().filter_map(read).collect(),
    })
}

/// Stores a conversation, unless another tab has stored what this one does not know, or deleted it. One transaction, because
/// other tabs may be about to write, too.
///
/// # Errors
/// The browser refuses the write (quota), or a newer page has written the record.
pub async fn keep_conversation(write: PendingWrite) -> Result<WriteOutcome, Error> {
    let id = write.mine.conversation.id.clone();
    let transaction = database().await?.transaction(&[CONVERSATIONS], TransactionMode::ReadWrite)?;
    let store = transaction.object_store(CONVERSATIONS)?;
    let verdict = write.onto(known(store.get(key(&id))?.await?)?);
    if let WriteOutcome::Written(record) = &verdict {
        store.put(&text_of(record), Some(&JsValue::from_str(&id)))?.await?;
        commit(transaction).await?;
    }
    Ok(verdict)
}

/// A conversation as it is stored now.
///
/// # Errors
/// The browser refuses the read.
pub async fn stored_conversation(id: &str) -> Result<Option<Record>, Error> {
    let transaction = database().await?.transaction(&[CONVERSATIONS], TransactionMode::ReadOnly)?;
    let stored = transaction.object_store(CONVERSATIONS)?.get(key(id))?.await?;
    known(stored)
}

/// What is stored under a key.
///
/// # Errors
/// There is something, but a newer page has written it.
fn known<T: DeserializeOwned>(stored: Option<JsValue>) -> Result<Option<T>, Error> {
    let known = |value: JsValue| read(&value).ok_or(Error::UnexpectedJsType("a record of this page's version", value));
    stored.map(known).transpose()
}

/// Changes a conversation's title as it is stored now, whichever tab wrote it. Its text, and so its revision, stays. Returns
/// what is stored then.
///
/// # Errors
/// The browser refuses the write (quota).
pub async fn relabel_conversation(id: &str, relabel: impl FnOnce(&mut Conversation)) -> Result<Option<Record>, Error> {
    let transaction = database().await?.transaction(&[CONVERSATIONS], TransactionMode::ReadWrite)?;
    let store = transaction.object_store(CONVERSATIONS)?;
    let stored = store.get(key(id))?.await?;
    let Some(mut record) = known::<Record>(stored)? else { return Ok(None) };
    relabel(&mut record.conversation);
    store.put(&text_of(&record), Some(&JsValue::from_str(id)))?.await?;
    commit(transaction).await?;
    Ok(Some(record))
}

/// Deletes a conversation.
///
/// # Errors
/// The browser refuses.
pub async fn delete_conversation(id: &str) -> Result<(), Error> {
    delete(CONVERSATIONS, id).await
}

/// Stores a room that this browser hosts.
///
/// # Errors
/// The browser refuses the write (quota).
pub async fn keep_room(room: &OwnRoom) -> Result<(), Error> {
    put(PAGE, &room_key(room.id()), room).await
}

/// A room that this browser hosts or hosted, as it is stored now.
///
/// # Errors
/// The browser refuses the read, or a newer page has written the record.
pub async fn stored_room(id: &str) -> Result<Option<OwnRoom>, Error> {
    let transaction = database().await?.transaction(&[PAGE], TransactionMode::ReadOnly)?;
    let stored = transaction.object_store(PAGE)?.get(key(&room_key(id)))?.await?;
    known(stored)
}

/// Forgets a room that this browser hosted.
pub fn forget_room(id: &str) {
    let id = room_key(id);
    leptos::task::spawn_local(async move {
        // What cannot be deleted runs out.
        let _refused = delete(PAGE, &id).await;
    });
}

/// Stores the settings.
///
/// # Errors
/// The browser refuses the write (quota).
pub async fn keep_settings(settings: &Settings) -> Result<(), Error> {
    put(PAGE, SETTINGS, settings).await
}

/// Changes this browser's access tokens, in one transaction, because another tab may have changed them, too. Returns what is stored then.
///
/// # Errors
/// The browser refuses the write (quota).
pub async fn change_access_tokens(change: impl FnOnce(&mut AccessTokens)) -> Result<AccessTokens, Error> {
    let transaction = database().await?.transaction(&[PAGE], TransactionMode::ReadWrite)?;
    let store = transaction.object_store(PAGE)?;
    let stored = store.get(key(ACCESS_TOKENS))?.await?;
    let mut tokens: AccessTokens = stored.as_ref().and_then(read).unwrap_or_default();
    change(&mut tokens);
    store.put(&text_of(&tokens), Some(&JsValue::from_str(ACCESS_TOKENS)))?.await?;
    commit(transaction).await?;
    Ok(tokens)
}

/// Stores the composer's text.
///
/// # Errors
/// The browser refuses the write (quota).
pub async fn keep_draft(draft: &str) -> Result<(), Error> {
    put(PAGE, DRAFT, &draft).await
}

/// Stores the device's key. Without a database, each visit has its own.
pub fn keep_device_key(device_key: KeySeed) {
    leptos::task::spawn_local(async move {
        // Whoever has no database was told so when the page loaded.
        let _unkept = put(PAGE, DEVICE_KEY, &device_key).await;
    });
}

async fn put<T: Serialize + ?Sized>(store: &str, id: &str, value: &T) -> Result<(), Error> {
    let transaction = database().await?.transaction(&[store], TransactionMode::ReadWrite)?;
    transaction.object_store(store)?.put(&text_of(value), Some(&JsValue::from_str(id)))?.await?;
    commit(transaction).await?;
    Ok(())
}

async fn delete(store: &str, id: &str) -> Result<(), Error> {
    let transaction = database().await?.transaction(&[store], TransactionMode::ReadWrite)?;
    transaction.object_store(store)?.delete(key(id))?.await?;
    commit(transaction).await?;
    Ok(())
}

/// Ends a transaction that wrote. A browser whose storage is full finds that out here.
async fn commit(transaction: Transaction) -> Result<(), Error> {
    match transaction.commit()?.await? {
        TransactionResult::Committed => Ok(()),
        TransactionResult::Aborted => Err(Error::TransactionCommitError("the browser took the write back".into())),
    }
}

fn room_key(id: &str) -> String {
    format!("{}{id}", ROOMS.0)
}

fn key(id: &str) -> Query {
    Query::Key(JsValue::from_str(id))
}

fn text_of<T: Serialize + ?Sized>(value: &T) -> JsValue {
    // Plain structs of text and numbers always serialize.
    JsValue::from_str(&serde_json::to_string(value).unwrap_or_default())
}

fn read<T: DeserializeOwned>(value: &JsValue) -> Option<T> {
    serde_json::from_str(&value.as_string()?).ok()
}

async fn database() -> Result<Rc<Database>, Error> {
    if let Some(open) = OPEN.with_borrow(Clone::clone) {
        return Ok(open);
    }
    let mut request = Factory::new()?.open(NAME, Some(1))?;
    request.on_upgrade_needed(|event| {
        if let Ok(database) = event.database() {
            for store in [CONVERSATIONS, PAGE] {
                // Ignore the error: the store may exist already.
                let _exists = database.create_object_store(store, ObjectStoreParams::new());
            }
        }
    });
    let mut database = request.await?;
    // A browser that cannot write to its disk closes it. It may be opened again.
    database.on_close(|_| OPEN.with_borrow_mut(|open| *open = None));
    let database = Rc::new(database);
    OPEN.with_borrow_mut(|open| *open = Some(Rc::clone(&database)));
    Ok(database)
}
