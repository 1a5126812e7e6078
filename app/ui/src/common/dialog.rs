//! A modal dialog: the browser traps the focus and closes it with Escape.

use leptos::{ev, html, prelude::*};
use potluck_text::texts;
use wasm_bindgen::JsCast;

use super::{Icon, NoticeStack, Symbol};
use crate::state::{DialogKind, store};

/// Shows its children while this dialog is open.
#[component]
pub fn Dialog(
    /// Which dialog this is.
    kind: DialogKind,
    /// Its heading.
    title: &'static str,
    /// "dialog" in the centre or "drawer" at the side.
    #[prop(optional)]
    drawer: bool,
    /// Wider, for a dialog with much content.
    #[prop(optional)]
    wide: bool,
    /// The content, rebuilt each time the dialog opens.
    children: ChildrenFn,
) -> impl IntoView {
    let store = store();
    let children = StoredValue::new(children);
    let node = NodeRef::<html::Dialog>::new();
    let open = Memo::new(move |_| store.screen.dialog.get() == Some(kind));
    Effect::new(move |_| {
        let Some(dialog) = node.get() else { return };
        if open.get() && !dialog.open() {
            // Fails only for a dialog outside the document; this one is inside.
            let _shown = dialog.show_modal();
        } else if !open.get() && dialog.open() {
            dialog.close();
        }
    });
    let close = move || {
        if open.get_untracked() {
            store.screen.dialog.set(None);
        }
    };
    // A click hits the dialog element itself only beside its content: on the backdrop.
    let beside = move |event: ev::MouseEvent| {
        let hit = event.target().and_then(|target| target.dyn_into::<web_sys::HtmlDialogElement>().ok());
        if hit.is_some() {
            close();
        }
    };
    view! {
        <dialog
            node_ref=node
            class="dialog"
            class:dialog-drawer=drawer
            class:dialog-wide=wide
            aria-label=move || open.get().then_some(title)
            on:close=move |_| close()
            on:mousedown=beside
        >
            <Show when=move || open.get()>
                <div class="dialog-inside">
                    <header class="dialog-head">
                        <h2>{title}</h2>
                        <button type="button" class="button button-icon" aria-label=texts().button.close() on:click=move |_| close()>
                            <Icon symbol=Symbol::Close />
                        </button>
                    </header>
                    // The dialog covers the page and makes it inert, so notices appear here, too.
                    <NoticeStack />
                    {children.with_value(|children| children())}
                </div>
            </Show>
        </dialog>
    }
}
