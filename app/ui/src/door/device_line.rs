//! What the adapter reports about this device.

use leptos::prelude::*;
use potluck_panel::DeviceReport;
use potluck_text::texts;

use crate::{
    common::{Icon, Symbol},
    state::store,
};

/// "NVIDIA: WebGPU works, without 16-bit floats".
fn sentence(device: &DeviceReport) -> String {
    let adapter = if device.adapter.is_empty() { texts().device.unnamed() } else { &device.adapter };
    let adapter = if device.software { texts().device.slow(adapter) } else { adapter.to_owned() };
    if device.shader_f16 { texts().device.with_halves(adapter) } else { texts().device.without_halves(adapter) }
}

/// One line about this device, with help if it cannot take part.
#[component]
pub fn DeviceLine() -> impl IntoView {
    let store = store();
    let device = Memo::new(move |_| store.room.status.with(|status| status.device.clone()));
    let trouble = move || device.with(|device| device.trouble.clone());
    view! {
        <div class="device-line">
            <Show
                when=move || trouble().is_some()
                fallback=move || view! {
                    <p class="device-words">
                        <Icon symbol=Symbol::Info />
                        <span>
                            {move || device.with(|device| {
                                if device.webgpu { sentence(device) } else { texts().device.checking().into() }
                            })}
                        </span>
                    </p>
                }
            >
                <details class="fold">
                    <summary>{texts().device.no_webgpu()}</summary>
                    <p>{trouble}</p>
                    <ul class="plain">
                        <li>{texts().device.help_chrome()}</li>
                        <li>{texts().device.help_others()}</li>
                        <li>{texts().device.help_address()}</li>
                    </ul>
                </details>
            </Show>
        </div>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_what_the_adapter_reports() {
        let device = DeviceReport { webgpu: true, adapter: "NVIDIA".into(), ..DeviceReport::default() };
        assert_eq!(sentence(&device), "NVIDIA: WebGPU works, without 16-bit floats");
        let slow = DeviceReport { software: true, shader_f16: true, ..device };
        assert_eq!(sentence(&slow), "NVIDIA, software adapter (slow): WebGPU works, with 16-bit floats");
    }
}
