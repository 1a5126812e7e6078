//! This device: name, adapter, limits, self-test.

use leptos::prelude::*;
use potluck_panel::{DeviceReport, SelfTest, SelfTestState, ToNode};

use crate::{
    state::store,
    text::{bytes, plural, rate},
};

/// The section about this device.
#[component]
pub fn Device() -> impl IntoView {
    let store = store();
    let device = Memo::new(move |_| store.room.status.with(|status| status.device.clone()));
    let testing = move || device.with(|device| device.self_test.state == SelfTestState::Running);
    view! {
        <section class="settings-part" aria-label="This device">
            <h3>"This device"</h3>
            <label class="labelled">
                <span>"Name others see"</span>
                <input
                    class="field"
                    type="text"
                    maxlength="40"
                    prop:value=move || store.own_name()
                    on:change=move |event| store.rename(&event_target_value(&event))
                />
            </label>
            <dl class="numbers">
                {move || device.with(rows).into_iter().map(|(name, value)| view! { <dt>{name}</dt><dd>{value}</dd> }).collect_view()}
            </dl>
            <button
                type="button"
                class="button"
                disabled=move || testing() || !device.with(|device| device.webgpu)
                on:click=move |_| store.send(ToNode::SelfTest)
            >
                {move || if testing() { "Testing" } else { "Test again" }}
            </button>
        </section>
    }
}

fn rows(device: &DeviceReport) -> Vec<(&'static str, String)> {
    if let Some(trouble) = &device.trouble {
        return vec![("WebGPU", trouble.clone())];
    }
    if !device.webgpu {
        return vec![("WebGPU", "not asked yet".into())];
    }
    let yes = |value: bool| if value { "yes".to_owned() } else { "no".to_owned() };
    let name = if device.adapter.is_empty() { "unknown".into() } else { device.adapter.clone() };
    let mut rows = vec![
        ("GPU", if device.software { format!("{name}, a software adapter: slow") } else { name }),
        ("16-bit floats", yes(device.shader_f16)),
        ("Subgroups", yes(device.subgroups)),
        ("Largest buffer", bytes(device.max_buffer)),
        ("Largest binding", bytes(device.max_binding)),
    ];
    if device.bandwidth > 0.0 {
        rows.push(("Memory speed, measured", rate(device.bandwidth)));
    }
    rows.push(("Self-test", verdict(&device.self_test)));
    rows
}

fn verdict(test: &SelfTest) -> String {
    match test.state {
        SelfTestState::NotRun => "not run yet".into(),
        SelfTestState::Running => "running".into(),
        SelfTestState::Passed => format!("{} right", plural(test.tested as usize, "kernel", "kernels")),
        SelfTestState::Replaced => format!("slower kernels in place of {}", test.replaced.join(", ")),
        SelfTestState::Failed => format!("wrong results from {}: this device cannot take part", test.failed.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_self_test_has_a_plain_verdict() {
        let passed = SelfTest { state: SelfTestState::Passed, tested: 14, ..SelfTest::default() };
        assert_eq!(verdict(&passed), "14 kernels right");
        let failed = SelfTest { state: SelfTestState::Failed, failed: vec!["q4_k".into()], ..passed };
        assert!(verdict(&failed).contains("q4_k"));
    }

    #[test]
    fn without_webgpu_there_is_one_row_that_says_so() {
        let none = DeviceReport { trouble: Some("Off.".into()), ..DeviceReport::default() };
        assert_eq!(rows(&none), vec![("WebGPU", "Off.".to_owned())]);
    }
}
