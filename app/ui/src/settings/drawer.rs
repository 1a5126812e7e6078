//! All settings, one section each.

use leptos::prelude::*;

use super::{about::About, answers::Answers, appearance::AppearanceChoice, device::Device, storage::StorageList};
use crate::{common::Dialog, state::Sheet};

/// The drawer behind the settings button.
#[component]
pub fn SettingsDrawer() -> impl IntoView {
    view! {
        <Dialog sheet=Sheet::Settings title="Settings" drawer=true>
            <AppearanceChoice />
            <Answers />
            <Device />
            <StorageList />
            <About />
        </Dialog>
    }
}
