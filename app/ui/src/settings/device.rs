//! This device: name, adapter, limits, self-test.

use leptos::prelude::*;
use potluck_panel::{DeviceReport, SelfTest, SelfTestState, ToNode};
use potluck_text::texts;

use crate::{
    common::NameField,
    state::store,
    text::{bytes, rate},
};

/// The section about this device.
#[component]
pub fn Device() -> impl IntoView {
    let store = store();
    let device = Memo::new(move |_| store.room.status.with(|status| status.device.clone()));
    let test = Memo::new(move |_| device.with(|device| device.self_test.state));
    view! {
        <section class="settings-part" aria-label=texts().own.heading()>
            <h3>{texts().own.heading()}</h3>
            <NameField />
            <dl class="numbers">
                {move || device.with(rows).into_iter().map(|(name, value)| view! { <dt>{name}</dt><dd>{value}</dd> }).collect_view()}
            </dl>
            <button
                type="button"
                class="button"
                disabled=move || test.get() == SelfTestState::Running || !device.with(|device| device.webgpu)
                on:click=move |_| store.send(ToNode::SelfTest)
            >
                {move || test_label(test.get())}
            </button>
        </section>
    }
}

/// The label of the button that runs the self-test.
fn test_label(state: SelfTestState) -> &'static str {
    let texts = &texts().device;
    match state {
        SelfTestState::NotRun => texts.test(),
        SelfTestState::Running => texts.testing(),
        SelfTestState::Passed | SelfTestState::Replaced | SelfTestState::Failed => texts.test_again(),
    }
}

fn rows(device: &DeviceReport) -> Vec<(&'static str, String)> {
    if let Some(trouble) = &device.trouble {
        return vec![("WebGPU", trouble.clone())];
    }
    if !device.webgpu {
        return vec![("WebGPU", texts().device.not_asked().into())];
    }
    let words = &texts().device;
    let yes = |value: bool| if value { words.yes().to_owned() } else { words.no().to_owned() };
    let name = if device.adapter.is_empty() { texts().device.unknown().into() } else { device.adapter.clone() };
    let mut rows = vec![
        (texts().device.gpu(), if device.software { texts().device.software(&name) } else { name }),
        (texts().device.half_floats(), yes(device.shader_f16)),
        (texts().device.subgroups(), yes(device.subgroups)),
        (texts().device.buffer(), bytes(device.max_buffer)),
        (texts().device.binding(), bytes(device.max_binding)),
    ];
    if device.bandwidth > 0.0 {
        rows.push((texts().device.speed(), rate(device.bandwidth)));
    }
    rows.push((texts().device.self_test(), verdict(&device.self_test)));
    rows
}

fn verdict(test: &SelfTest) -> String {
    match test.state {
        SelfTestState::NotRun => texts().device.not_run().into(),
        SelfTestState::Running => texts().device.running().into(),
        SelfTestState::Passed => texts().device.passed(test.tested),
        SelfTestState::Replaced => texts().device.replaced(test.replaced.join(", ")),
        SelfTestState::Failed => texts().device.failed(test.failed.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_self_test_has_a_plain_verdict() {
        let passed = SelfTest { state: SelfTestState::Passed, tested: 14, ..SelfTest::default() };
        assert_eq!(verdict(&passed), "14 kernels passed");
        let failed = SelfTest { state: SelfTestState::Failed, failed: vec!["q4_k".into()], ..passed };
        assert!(verdict(&failed).contains("q4_k"));
    }

    #[test]
    fn a_test_is_run_again_only_after_a_first_one() {
        assert_eq!(test_label(SelfTestState::NotRun), "Run test");
        assert_eq!(test_label(SelfTestState::Passed), "Test again");
    }

    #[test]
    fn without_webgpu_there_is_one_row_that_says_so() {
        let none = DeviceReport { trouble: Some("Off.".into()), ..DeviceReport::default() };
        assert_eq!(rows(&none), vec![("WebGPU", "Off.".to_owned())]);
    }
}
