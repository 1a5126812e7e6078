//! Time per kernel class.

use leptos::prelude::*;
use potluck_panel::{BenchKernel, BenchKernels};
use potluck_text::texts;

use crate::text::{bytes, count, duration_ms};

/// One unit of work: a bar of shares and a table.
#[component]
pub fn Kernels(kernels: BenchKernels) -> impl IntoView {
    let title = title(&kernels);
    let all = kernels.millis.max(f64::MIN_POSITIVE);
    let rows = kernels.classes.into_iter().map(|class| {
        let BenchKernel { class, variants, dispatches, millis, bytes: read, streaming_share } = class;
        let share = 100.0 * millis / all;
        view! {
            <tr title=variants.join(", ")>
                <th scope="row">{class}</th>
                <td>
                    <span class="bench-share">
                        <span class="bench-track" aria-hidden="true">
                            <span class="bench-bar-kernel" style:width=format!("{share:.1}%")></span>
                        </span>
                        {format!("{share:.0}%")}
                    </span>
                </td>
                <td>{duration_ms(millis)}</td>
                <td>{count(dispatches.into())}</td>
                <td>{if read > 0 { bytes(read) } else { "–".into() }}</td>
                <td>{if read > 0 { format!("{:.0}%", 100.0 * streaming_share) } else { "–".into() }}</td>
            </tr>
        }
    });
    view! {
        <div class="bench-kernels">
            <h3>{title}</h3>
            <p class="hint">{texts().bench.in_kernels(kernels.millis, &kernels.clock)}</p>
            <div class="bench-scroll" tabindex="0" role="group" aria-label=texts().bench.kernels_table()>
                <table class="bench-table">
                    <thead>
                        <tr>
                            <th scope="col">{texts().bench.kernel()}</th>
                            <th scope="col">{texts().bench.share()}</th>
                            <th scope="col">{texts().bench.time()}</th>
                            <th scope="col">{texts().bench.dispatches()}</th>
                            <th scope="col">{texts().bench.bytes()}</th>
                            <th scope="col">{texts().bench.streaming()}</th>
                        </tr>
                    </thead>
                    <tbody>{rows.collect_view()}</tbody>
                </table>
            </div>
        </div>
    }
}

fn title(kernels: &BenchKernels) -> String {
    let (texts, depth) = (&texts().bench, kernels.depth);
    match (kernels.phase.as_str(), depth) {
        ("decode", 0) => texts.decode().to_owned(),
        ("decode", _) => texts.decode_after(depth),
        (_, 0) => texts.prefill(kernels.rows),
        _ => texts.prefill_after(kernels.rows, depth),
    }
}
