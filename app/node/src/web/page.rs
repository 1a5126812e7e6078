//! The page half: starts the node worker, replaces a dead one, and does what a worker cannot.

mod claim;
mod connections;
mod identity;
mod replay_log;
mod room_lock;
mod wake_lock;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use js_sys::Promise;
use potluck_panel::{BUILD, Notice, NoticeLevel, ToNode, ToPage};
use wasm_bindgen::prelude::Closure;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{ErrorEvent, File, MessageEvent, VisibilityState, Window, Worker};

use self::connections::Connections;
use self::replay_log::ReplayLog;
use self::wake_lock::WakeLock;
use super::locks::WebLock;
use super::node::{PING, PONG, UP};
use super::time::pause_for;
use super::{js, logging, messages, same_browser};
use crate::supervision::{CHECK_INTERVAL, Check, Death, Supervision};

/// The page's handle of its node. Cheap to clone.
#[derive(Clone)]
pub struct PageHalf(Rc<Page>);

type Receiver = Rc<dyn Fn(ToPage)>;

struct Page {
    worker: RefCell<Option<Worker>>,
    up: Cell<bool>,
    /// The worker can find other tabs of this browser.
    discovers: Cell<bool>,
    /// The tab's id is being claimed; messages wait meanwhile.
    claiming: Cell<bool>,
    waiting: RefCell<VecDeque<(ToNode, Option<File>)>>,
    receiver: RefCell<Option<Receiver>>,
    early: RefCell<Vec<ToPage>>,
    replay_log: RefCell<ReplayLog>,
    identity: RefCell<Option<WebLock>>,
    /// The room that this tab hosts, and its lock.
    room: RefCell<Option<(String, WebLock)>>,
    supervision: RefCell<Supervision>,
    wake_lock: WakeLock,
    /// To other devices.
    connections: RefCell<Option<Rc<Connections>>>,
}

/// Starts the node worker and its supervision. To be called once in a page.
pub fn start() -> PageHalf {
    logging::start();
    let half = PageHalf(Rc::new(Page {
        worker: RefCell::default(),
        up: Cell::default(),
        discovers: Cell::default(),
        claiming: Cell::default(),
        waiting: RefCell::default(),
        receiver: RefCell::default(),
        early: RefCell::default(),
        replay_log: RefCell::default(),
        identity: RefCell::default(),
        room: RefCell::default(),
        supervision: RefCell::default(),
        wake_lock: WakeLock::default(),
        connections: RefCell::default(),
    }));
    half.spawn();
    half.watch();
    half
}

impl PageHalf {
    /// Sends a message to the node, with a file if it is `ToNode::Host` of `ModelSource::File`. Messages wait until the node is
    /// up.
    pub fn send(&self, message: ToNode, file: Option<File>) {
        self.0.replay_log.borrow_mut().command(&message, file.as_ref());
        if let ToNode::Start { .. } = message {
            self.0.claiming.set(true);
            let half = self.clone();
            wasm_bindgen_futures::spawn_local(async move {
                let message = half.claim(message).await;
                half.0.replay_log.borrow_mut().command(&message, None);
                half.0.waiting.borrow_mut().push_front((message, None));
                half.0.claiming.set(false);
                half.flush();
            });
        } else {
            self.0.waiting.borrow_mut().push_back((message, file));
            self.flush();
        }
    }

    /// Registers the one receiver of the node's messages.
    pub fn listen(&self, receiver: impl Fn(ToPage) + 'static) {
        let receiver: Receiver = Rc::new(receiver);
        *self.0.receiver.borrow_mut() = Some(receiver.clone());
        std::mem::take(&mut *self.0.early.borrow_mut()).into_iter().for_each(|message| receiver(message));
    }

    /// Keeps the screen on, or lets it sleep.
    pub fn keep_awake(&self, wake_lock: bool) {
        self.0.wake_lock.set_wanted(wake_lock);
    }

    /// Asks the browser never to evict this site's storage; resolves to a boolean.
    pub fn persist(&self) -> Promise {
        let storage = js::get(&navigator(), "storage");
        let asked = js::call(&storage, "persist", &[]).and_then(JsCast::dyn_into::<Promise>);
        asked.unwrap_or_else(|_| Promise::resolve(&JsValue::FALSE))
    }

    fn spawn(&self) {
        self.0.up.set(false);
        self.0.discovers.set(false);
        self.0.connections.take();
        self.0.supervision.borrow_mut().starts();
        let worker = match Worker::new(&format!("node_loader.js?v={BUILD}")) {
            Ok(worker) => worker,
            Err(error) => {
                return self.notice(NoticeLevel::Error, "Part of this page cannot start.", &js::error_text(&error));
            }
        };
        let half = self.clone();
        let on_message = Closure::<dyn FnMut(MessageEvent)>::new(move |event: MessageEvent| half.heard(event.data()));
        worker.set_onmessage(Some(on_message.as_ref().unchecked_ref()));
        on_message.forget();
        let half = self.clone();
        let on_error = Closure::<dyn FnMut(ErrorEvent)>::new(move |event: ErrorEvent| {
            event.prevent_default();
            half.died(&event.message());
        });
        worker.set_onerror(Some(on_error.as_ref().unchecked_ref()));
        on_error.forget();
        *self.0.worker.borrow_mut() = Some(worker);
    }

    fn heard(&self, data: JsValue) {
        self.0.supervision.borrow_mut().heard();
        match data.as_string().as_deref() {
            Some(UP) => {
                self.0.supervision.borrow_mut().is_up();
                self.0.up.set(true);
                self.flush();
            }
            Some(PONG) => {}
            _ => match messages::from_value::<ToPage>(data) {
                Ok(message) => {
                    self.0.replay_log.borrow_mut().reply(&message);
                    self.deliver(message);
                }
                Err(error) => self.notice(
                    NoticeLevel::Error,
                    "Parts of this page are of different versions. Reload the page.",
                    &error.to_string(),
                ),
            },
        }
    }

    fn deliver(&self, message: ToPage) {
        let receiver = self.0.receiver.borrow().clone();
        match receiver {
            Some(receiver) => receiver(message),
            None => self.0.early.borrow_mut().push(message),
        }
    }

    fn notice(&self, level: NoticeLevel, sentence: &str, details: &str) {
        let (sentence, details) = (sentence.to_owned(), details.to_owned());
        self.deliver(ToPage::Notice(Notice { level, sentence, details, condition: None }));
    }

    fn flush(&self) {
        if !self.0.up.get() || self.0.claiming.get() {
            return;
        }
        let worker = self.0.worker.borrow().clone();
        let Some(worker) = worker else { return };
        while let Some((message, file)) = self.0.waiting.borrow_mut().pop_front() {
            // Discovery takes a process of its own, so it starts with the first room.
            if matches!(message, ToNode::Host(_) | ToNode::Join { .. }) && !self.0.discovers.replace(true) {
                same_browser::connect(&worker);
                *self.0.connections.borrow_mut() = Connections::serve(&worker);
            }
            if let Err(error) = post(&worker, &message, file.as_ref()) {
                log::error!("the worker cannot be reached: {error}");
            }
        }
    }

    /// Replaces a dead worker, and repeats the commands that are in effect.
    fn died(&self, reason: &str) {
        if let Some(worker) = self.0.worker.borrow_mut().take() {
            worker.terminate();
        }
        self.0.up.set(false);
        let (pause, sentence) = match self.0.supervision.borrow_mut().died(js_sys::Date::now()) {
            Death::Stopped(pause) => {
                (pause, "Part of this page had stopped and was started again; an answer under way is lost.")
            }
            Death::NotStarted(pause) => (pause, "Part of this page did not start. It is started again."),
            Death::TooOften => {
                let sentence = "Part of this page stops again and again. Reload the page, or close other tabs.";
                return self.notice(NoticeLevel::Error, sentence, reason);
            }
        };
        self.notice(NoticeLevel::Warning, sentence, reason);
        // The replay contains everything that still waited, except prompts: a person must send those again.
        *self.0.waiting.borrow_mut() = self.0.replay_log.borrow().replay().into();
        let half = self.clone();
        wasm_bindgen_futures::spawn_local(async move {
            pause_for(pause).await;
            half.spawn();
        });
    }

    fn watch(&self) {
        let Some(window) = web_sys::window() else { return };
        let half = self.clone();
        let check = Closure::<dyn FnMut()>::new(move || half.check());
        let checking = window
            .set_interval_with_callback_and_timeout_and_arguments_0(check.as_ref().unchecked_ref(), CHECK_INTERVAL);
        if checking.is_err() {
            log::warn!("a dead worker will not be noticed");
        }
        check.forget();
        let Some(document) = window.document() else { return };
        let half = self.clone();
        let shown = document.clone();
        let on_change = Closure::<dyn FnMut()>::new(move || {
            let hidden = shown.visibility_state() == VisibilityState::Hidden;
            if !hidden {
                half.0.wake_lock.shown();
            }
            // The first message must be Start.
            if half.0.replay_log.borrow().started() {
                half.send(ToNode::Visibility { hidden }, None);
            }
        });
        let listening =
            document.add_event_listener_with_callback("visibilitychange", on_change.as_ref().unchecked_ref());
        if listening.is_err() {
            log::warn!("a hidden tab will not be noticed");
        }
        on_change.forget();
    }

    fn check(&self) {
        let check = self.0.supervision.borrow_mut().check();
        match check {
            Check::Wait => {}
            Check::Dead => self.died("it did not answer"),
            Check::Ask => {
                let worker = self.0.worker.borrow().clone();
                if let Some(Err(error)) = worker.map(|worker| worker.post_message(&PING.into())) {
                    log::warn!("the worker cannot be asked: {}", js::error_text(&error));
                }
            }
        }
    }
}

fn post(worker: &Worker, message: &ToNode, file: Option<&File>) -> Result<(), String> {
    let data = messages::with_file(message, file).map_err(|error| error.to_string())?;
    worker.post_message(&data).map_err(|error| js::error_text(&error))
}

fn window() -> Option<Window> {
    web_sys::window()
}

/// The page's navigator; undefined outside of a page.
fn navigator() -> JsValue {
    window().map_or(JsValue::UNDEFINED, |window| window.navigator().into())
}
