//! What the adapter reports about this device.

use leptos::prelude::*;
use potluck_panel::DeviceReport;

use crate::{
    common::{Icon, Symbol},
    state::store,
};

/// "NVIDIA, WebGPU ready, 16-bit floats no".
fn sentence(device: &DeviceReport) -> String {
    let adapter = if device.adapter.is_empty() { "An unnamed GPU" } else { &device.adapter };
    let speed = if device.software { ", software adapter (slow)" } else { "" };
    let half = if device.shader_f16 { "yes" } else { "no" };
    format!("{adapter}{speed}, WebGPU ready, 16-bit floats {half}")
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
                                if device.webgpu { sentence(device) } else { "Checking what this device can do".into() }
                            })}
                        </span>
                    </p>
                }
            >
                <details class="fold">
                    <summary>"No WebGPU here, but you can still chat. How to turn it on"</summary>
                    <p>{trouble}</p>
                    <ul class="plain">
                        <li>"Chrome or Edge 121 or newer: open chrome://gpu and look for WebGPU. If it is off, update the graphics driver."</li>
                        <li>"Safari 26 or newer, and Firefox on Windows and Mac, have it."</li>
                        <li>"Open this page over https or from localhost. Browsers hide the GPU from any other page."</li>
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
        assert_eq!(sentence(&device), "NVIDIA, WebGPU ready, 16-bit floats no");
        let slow = DeviceReport { software: true, shader_f16: true, ..device };
        assert_eq!(sentence(&slow), "NVIDIA, software adapter (slow), WebGPU ready, 16-bit floats yes");
    }
}
