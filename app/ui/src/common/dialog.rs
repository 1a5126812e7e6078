//! A dialog on top of the page: the browser keeps the focus inside and closes it with Escape.

use leptos::{ev, html, prelude::*};
use wasm_bindgen::JsCast;

use super::{Icon, NoticeStack, Symbol};
use crate::state::{DialogKind, store};

/// Shows its children while this dialog is on top.
#[component]
pub fn Dialog(
    /// Which dialog this is.
    kind: DialogKind,
    /// Its heading.
    title: &'static str,
    /// "dialog" in the middle or "drawer" at the side.
    #[prop(optional)]
    drawer: bool,
    /// A dialog with much in it.
    #[prop(optional)]
    wide: bool,
    /// What it shows; made anew each time it opens.
    children: ChildrenFn,
) -> impl IntoView {
    let store = store();
    let children = StoredValue::new(children);
    let node = NodeRef::<html::Dialog>::new();
    let open = Memo::new(move |_| store.screen.dialog.get() == Some(kind));
    Effect::new(move |_| {
        let Some(dialog) = node.get() else { return };
        if open.get() && !dialog.open() {
            // It fails only for a dialog that is not in the document; this one is.
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
    // The dialog itself is hit only beside its content: on the backdrop.
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
                        <button type="button" class="button button-icon" aria-label="Close" on:click=move |_| close()>
                            <Icon symbol=Symbol::Close />
                        </button>
                    </header>
                    // What is behind the dialog cannot be seen or pressed: notices come in front as well.
                    <NoticeStack />
                    {children.with_value(|children| children())}
                </div>
            </Show>
        </dialog>
    }
}
