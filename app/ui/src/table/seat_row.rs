//! One device of the list; its numbers open on a press.

use leptos::prelude::*;
use potluck_panel::{CacheType, Member, MemberState, StageReport, Status};

use crate::{
    common::{Bar, Icon, device_symbol},
    state::store,
    text::{bytes, duration_ms, loading_line, role_words, state_words},
};

/// One device.
#[component]
pub fn SeatRow(
    /// Whose row.
    peer: String,
    /// The seat whose numbers are open.
    selected: RwSignal<Option<String>>,
    /// The peer whose stage is the slowest part of a token's way.
    #[prop(into)]
    slow: Signal<Option<String>>,
) -> impl IntoView {
    let store = store();
    let id = StoredValue::new(peer);
    let member = Memo::new(move |_| {
        store.status.with(|status| status.peers.iter().find(|member| id.with_value(|id| member.peer == *id)).cloned())
    });
    let open = Memo::new(move |_| id.with_value(|id| selected.get().as_ref() == Some(id)));
    let slowest = Memo::new(move |_| id.with_value(|id| slow.get().as_ref() == Some(id)));
    let toggle = move |_| {
        let next = (!open.get_untracked()).then(|| id.get_value());
        selected.set(next);
    };
    let about =
        move |words: fn(&Member) -> String| member.with(|member| member.as_ref().map(words).unwrap_or_default());
    let class = move || {
        member.with(|member| match member.as_ref().map(|member| member.state) {
            Some(MemberState::Ready) => "dot dot-ready",
            Some(MemberState::Loading) => "dot dot-loading",
            Some(MemberState::Failed) => "dot dot-failed",
            Some(MemberState::Silent) => "dot dot-slow",
            _ => "dot",
        })
    };
    let numbers = move || {
        let stages = store.status.with(|status| id.with_value(|id| own_stages(status, id)));
        let memory =
            store.status.with(|status| status.plan.as_ref().and_then(|plan| Some((plan.cache?, plan.overhead))));
        member.get().map(|member| view! { <Numbers member stages memory /> })
    };
    view! {
        <li class="seat-row">
            <button type="button" class="seat-button" aria-expanded=move || open.get().to_string() on:click=toggle>
                <Icon symbol=Signal::derive(move || {
                    member.with(|member| device_symbol(member.as_ref().map(|member| member.kind).unwrap_or_default()))
                }) />
                <span class="seat-title">
                    <strong>{move || about(title)}</strong>
                    <span class="hint">{move || about(second_line)}</span>
                </span>
                <span class="seat-state">
                    <span class=class></span>
                    {move || about(|member| state_words(member.state, member.hidden).to_owned())}
                </span>
            </button>
            <Show when=move || member.with(|member| member.as_ref().is_some_and(|member| member.lent > 0))>
                <Bar
                    label=Signal::derive(move || about(lent_line))
                    done=Signal::derive(move || member.with(|member| member.as_ref().map_or(0, |member| member.used)))
                    total=Signal::derive(move || member.with(|member| member.as_ref().map_or(0, |member| member.lent)))
                    meter=true
                />
            </Show>
            <div class="chips">
                {move || member.with(|member| {
                    member.iter().flat_map(|member| member.holds.clone()).map(|held| view! { <span class="chip">{held}</span> }).collect_view()
                })}
                {move || member.with(|member| {
                    member.as_ref().and_then(link_words).map(|link| view! { <span class="chip">{link}</span> })
                })}
                {move || slowest.get().then(|| view! { <span class="chip chip-slow">"bottleneck"</span> })}
            </div>
            {move || member.with(|member| {
                member.as_ref().and_then(|member| member.spare.clone()).map(|why| view! { <p class="hint">{why}</p> })
            })}
            {move || member.with(|member| {
                member.as_ref().and_then(|member| member.standby.clone()).map(|whom| view! { <p class="hint">{whom}</p> })
            })}
            <p class="hint seat-loading-line">
                {move || member.with(|member| {
                    member.as_ref().and_then(|member| member.loading.as_ref()).map(loading_line)
                })}
            </p>
            <Show when=move || open.get()>{numbers}</Show>
        </li>
    }
}

fn own_stages(status: &Status, peer: &str) -> Vec<StageReport> {
    let stages = status.plan.as_ref().map(|plan| plan.stages.as_slice()).unwrap_or_default();
    stages.iter().filter(|stage| stage.peer == peer).cloned().collect()
}

fn title(member: &Member) -> String {
    if member.is_self { format!("{} (you)", member.name) } else { member.name.clone() }
}

fn second_line(member: &Member) -> String {
    let mut line = role_words(member.role).to_owned();
    if member.lent > 0 {
        line.push_str(&format!(" · {}", lent_line(member)));
    }
    line
}

/// "1.2 of 4 GB used".
fn lent_line(member: &Member) -> String {
    format!("{} of {} in use", bytes(member.used), bytes(member.lent))
}

/// "direct 4 ms", "relay 22 ms".
fn link_words(member: &Member) -> Option<String> {
    let link = member.link.filter(|_| !member.is_self)?;
    let way = if link.direct { "direct" } else { "relay" };
    Some(format!("{way} {}", duration_ms(link.round_trip_ms)))
}

/// What a press on a seat opens.
#[component]
fn Numbers(member: Member, stages: Vec<StageReport>, memory: Option<(CacheType, u64)>) -> impl IntoView {
    let stored = memory.map(|(cache, _)| format!(" as {}", cache.name())).unwrap_or_default();
    let scratch = memory.filter(|_| !stages.is_empty()).map(|(_, overhead)| {
        view! {
            <dt>"Scratch and staging"</dt>
            <dd>{bytes(overhead)}</dd>
        }
    });
    let stages = stages.into_iter().map(|stage| {
        let blocks =
            format!("Blocks {}–{}", stage.first_block, stage.end_block.saturating_sub(1).max(stage.first_block));
        let ends = match (stage.embeds, stage.head) {
            (true, true) => ", embedding and head",
            (true, false) => ", embedding",
            (false, true) => ", head",
            (false, false) => "",
        };
        let measured = if stage.measured_ms > 0.0 {
            format!("{} a token, {} expected", duration_ms(stage.measured_ms), duration_ms(stage.predicted_ms))
        } else {
            format!("{} a token expected, not measured yet", duration_ms(stage.predicted_ms))
        };
        view! {
            <dt>{blocks} {ends}</dt>
            <dd>{format!("{} of weights · {measured}", bytes(stage.bytes))}</dd>
            <dt>"Keys and values"</dt>
            <dd>{format!("{}{stored}", bytes(stage.kv_cache_bytes))}</dd>
        }
    });
    let adapter = if member.adapter.is_empty() { "not told".to_owned() } else { member.adapter.clone() };
    view! {
        <dl class="numbers">
            {stages.collect_view()}
            {scratch}
            <dt>"GPU"</dt>
            <dd>{adapter}</dd>
            <dt>"Lends"</dt>
            <dd>{if member.lent > 0 { lent_line(&member) } else { "nothing".into() }}</dd>
            <dt>"Id"</dt>
            <dd class="mono">{member.peer.chars().take(8).collect::<String>()}</dd>
        </dl>
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::fixtures::member;
    use potluck_panel::MemberLink;

    #[test]
    fn lines_say_role_and_memory_and_way() {
        let mut other = member("a", false);
        other.used = 1_200_000_000;
        other.lent = 4_000_000_000;
        other.link = Some(MemberLink { direct: false, round_trip_ms: 22.4 });
        assert_eq!(second_line(&other), "lends its GPU · 1.2 GB of 4 GB in use");
        assert_eq!(link_words(&other).as_deref(), Some("relay 22 ms"));
        other.is_self = true;
        assert_eq!(link_words(&other), None);
        assert_eq!(title(&other), "a (you)");
    }
}
