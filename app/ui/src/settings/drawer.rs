//! All settings, one section each.

use leptos::prelude::*;
use potluck_text::texts;

use super::{
    about::About, access::Access, answers::Answers, appearance::AppearanceChoice, connections::ConnectionsChoice,
    device::Device, storage::StorageList,
};
use crate::{common::Dialog, state::DialogKind};

/// The drawer behind the settings button.
#[component]
pub fn SettingsDrawer() -> impl IntoView {
    view! {
        <Dialog kind=DialogKind::Settings title=texts().settings.title() drawer=true>
            <AppearanceChoice />
            <Answers />
            <Device />
            <ConnectionsChoice />
            <StorageList />
            <Access />
            <About />
        </Dialog>
    }
}
