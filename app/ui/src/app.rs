//! The page as a whole: loads what the browser stored, mounts the tree and introduces this tab to the node.

use leptos::{ev, prelude::*};
use potluck_panel::NoticeLevel;
use potluck_text::texts;
use wasm_bindgen::{JsCast, prelude::Closure};

use crate::{
    actions::install_tools,
    bench::BenchPage,
    browser::{self, StoredData},
    chat::{ChatList, ChatsPage, OwnAnswers, Shortcuts},
    common::NoticeStack,
    door::{Door, RoomPicker},
    host::HostPicker,
    link::NodeLink,
    route::Route,
    settings::SettingsDrawer,
    state::{DialogKind, Session, Store, arrive, store},
    table::{Invite, Leave, RoomPage, Sealed},
};

/// Mounts the page into the document's body.
pub fn mount(link: NodeLink) {
    // Leptos provides its executor only once something is mounted.
    wasm_bindgen_futures::spawn_local(async move {
        // First, so that the key of a room's link leaves the address bar before anything else can fail.
        let mut session = browser::load_session();
        let route = arrive(&mut session);
        let (kept, trouble) = match browser::load().await {
            Ok(kept) => (kept, None),
            Err(error) => (StoredData::default(), Some(error.to_string())),
        };
        clear_splash();
        mount_to_body(move || view! { <App link kept session route trouble /> });
    });
}

/// Removes what `index.html` shows until the program has loaded.
fn clear_splash() {
    if let Some(splash) = browser::window().document().and_then(|document| document.get_element_by_id("splash")) {
        splash.remove();
    }
}

#[component]
fn App(link: NodeLink, kept: StoredData, session: Session, route: Route, trouble: Option<String>) -> impl IntoView {
    let store = Store::new(link.clone(), kept, session, route);
    provide_context(store);
    if let Some(details) = trouble {
        store.tell(NoticeLevel::Warning, texts().notice.no_storage(), details);
    }
    link.listen(move |message| store.take(message));
    install_tools(store);
    watch(store);
    store.start();
    let in_room = Memo::new(move |_| store.in_room());
    follow_places(store, in_room);
    view! {
        <NoticeStack />
        <Show when=move || in_room.get() fallback=|| view! { <Outside /> }>
            <RoomPage />
        </Show>
        <HostPicker />
        <RoomPicker />
        <Invite />
        <Leave />
        <Sealed />
        <ChatList />
        <OwnAnswers />
        <SettingsDrawer />
        <Shortcuts />
    }
}

/// When the place changes, the focused element disappears: move the focus to the new place's heading, so that keyboard
/// users and screen readers continue there.
fn follow_places(store: Store, in_room: Memo<bool>) {
    let place = Memo::new(move |_| {
        let outside = store.screen.route.with(|route| match route {
            Route::Bench | Route::Chats => Some(route.clone()),
            Route::Door | Route::Room(_) => None,
        });
        (in_room.get(), outside)
    });
    Effect::new(move |before: Option<(bool, Option<Route>)>| {
        let now = place.get();
        if before.is_some_and(|before| before != now) {
            // After this turn the new place is in the document, and a closing dialog has returned the focus.
            request_animation_frame(browser::focus_place);
        }
        now
    });
}

/// The places outside a room: the door, the conversations and the bench.
#[component]
fn Outside() -> impl IntoView {
    let store = store();
    let is_at = move |place: Route| Memo::new(move |_| store.screen.route.with(|route| *route == place));
    let (bench, chats) = (is_at(Route::Bench), is_at(Route::Chats));
    move || match (bench.get(), chats.get()) {
        (true, _) => view! { <BenchPage /> }.into_any(),
        (_, true) => view! { <ChatsPage /> }.into_any(),
        _ => view! { <Door /> }.into_any(),
    }
}

impl Store {
    /// The address names the room in which this tab has a place.
    pub(crate) fn in_room(self) -> bool {
        let route = self.screen.route.get();
        self.session.with(|session| match (&route, &session.place) {
            (Route::Room(address), Some(place)) => address.id == place.room,
            _ => false,
        })
    }
}

/// Handles the back button, leaving the page and the keyboard; applies the settings.
fn watch(store: Store) {
    Effect::new(move |_| browser::set_appearance(store.settings.with(|settings| settings.appearance)));
    Effect::new(move |_| {
        let awake = store.lends().is_some() && store.settings.with(|settings| settings.awake);
        store.node.link.with_value(|link| link.keep_awake(awake));
    });
    let model =
        Memo::new(move |_| store.room.status.with(|status| status.model.as_ref().map(|model| model.name.clone())));
    Effect::new(move |_| browser::set_title(&model.get().map_or("Potluck".into(), |name| format!("{name} · Potluck"))));
    on_window("popstate", move |_| store.follow_route(store.arrive()));
    on_window("pagehide", move |_| {
        browser::stash_conversations(&store.chats.stash());
        browser::stash_draft(store.chats.draft_to_keep());
        browser::end_drawing();
    });
    // Other tabs may have been used meanwhile.
    for event in ["visibilitychange", "focus"] {
        on_window(event, move |_| store.renew_open());
    }
    let keys = window_event_listener(ev::keydown, move |event| {
        let typing = event
            .target()
            .and_then(|target| target.dyn_into::<web_sys::Element>().ok())
            .is_some_and(|element| matches!(element.tag_name().as_str(), "INPUT" | "TEXTAREA" | "SELECT"));
        match event.key().as_str() {
            "?" if !typing && store.screen.dialog.get_untracked().is_none() => {
                store.screen.dialog.set(Some(DialogKind::Shortcuts))
            }
            "Escape" if store.screen.dialog.get_untracked().is_none() && !browser::is_composing(&event) => store.stop(),
            _ => {}
        }
    });
    // The page lives as long as its document, and so does the listener.
    std::mem::forget(keys);
}

fn on_window(event: &'static str, handler: impl Fn(web_sys::Event) + 'static) {
    let closure = Closure::<dyn Fn(web_sys::Event)>::new(handler).into_js_value();
    // Adding a listener to the window cannot fail.
    let _added = browser::window().add_event_listener_with_callback(event, closure.unchecked_ref());
}
