//! A device in the list; a click opens its details.

use leptos::prelude::*;
use potluck_panel::{
    CreditView, DeviceId, KvCacheType, MemberStatus, MemberView, PathReport, PeerId, StageReport, Status,
};
use potluck_text::texts;

use super::put_out::PutOut;
use crate::{
    common::{Bar, Icon, device_symbol},
    state::store,
    text::{bytes, held_by, loading_line, work_line},
};

/// One device.
#[component]
pub fn SeatRow(
    /// The device of this row.
    peer: PeerId,
    /// The seat whose details are open.
    selected: RwSignal<Option<PeerId>>,
    /// The peer whose stage is the slowest step of a token's path.
    #[prop(into)]
    slow: Signal<Option<PeerId>>,
) -> impl IntoView {
    let store = store();
    let member = Memo::new(move |_| {
        store.room.status.with(|status| status.peers.iter().find(|member| member.peer == peer).cloned())
    });
    let is_self = Memo::new(move |_| store.room.status.with(|status| status.peer == Some(peer)));
    let open = Memo::new(move |_| selected.get() == Some(peer));
    let slowest = Memo::new(move |_| slow.get() == Some(peer));
    let deputy = Memo::new(move |_| store.room.status.with(|status| status.deputy == Some(peer)));
    let toggle = move |_| selected.set((!open.get_untracked()).then_some(peer));
    let held = Memo::new(move |_| {
        store.room.status.with(|status| {
            status.plan.as_ref().map(|plan| held_by(peer, plan, status.model.as_ref())).unwrap_or_default()
        })
    });
    let path = Memo::new(move |_| store.room.status.with(|status| status.path_to(peer)));
    let about =
        move |words: fn(&MemberView) -> String| member.with(|member| member.as_ref().map(words).unwrap_or_default());
    let class = move || {
        member.with(|member| match member.as_ref().map(|member| member.status) {
            Some(MemberStatus::Ready) => "dot dot-ready",
            Some(MemberStatus::Loading) => "dot dot-loading",
            Some(MemberStatus::Failed) => "dot dot-failed",
            Some(MemberStatus::Silent) => "dot dot-slow",
            _ => "dot",
        })
    };
    let numbers = move || {
        let stages = store.room.status.with(|status| own_stages(status, peer));
        let memory =
            store.room.status.with(|status| status.plan.as_ref().and_then(|plan| Some((plan.cache?, plan.overhead))));
        let key = store.room.status.with(|status| status.key_of(peer));
        let credit = store.room.status.with(|status| status.credit_of(peer).cloned());
        member.get().map(|member| view! { <Numbers member stages memory key credit /> })
    };
    let hosts =
        Memo::new(move |_| store.room.status.with(|status| status.role.coordinator && status.peer != Some(peer)));
    view! {
        <li class="seat-row">
            <button type="button" class="seat-button" aria-expanded=move || open.get().to_string() on:click=toggle>
                <Icon symbol=Signal::derive(move || {
                    member.with(|member| device_symbol(member.as_ref().map(|member| member.kind).unwrap_or_default()))
                }) />
                <span class="seat-title">
                    <strong>{move || about(|member| member.name.clone())}
                        {move || is_self.get().then(|| format!(" {}", texts().seat.own()))}</strong>
                    <span class="hint">{move || about(second_line)}</span>
                </span>
                <span class="seat-state">
                    <span class=class></span>
                    {move || about(|member| texts().member.of(member.status, member.hidden).to_owned())}
                </span>
            </button>
            <Show when=move || member.with(|member| member.as_ref().is_some_and(lends))>
                <Bar
                    label=Signal::derive(move || about(lent_line))
                    done=Signal::derive(move || member.with(|member| member.as_ref().map_or(0, |member| member.used.0)))
                    total=Signal::derive(move || member.with(|member| member.as_ref().map_or(0, |member| member.lent.unwrap_or_default().0)))
                    meter=true
                />
            </Show>
            <div class="chips">
                {move || held.get().into_iter().map(|part| view! { <span class="chip">{part}</span> }).collect_view()}
                {move || member.with(|member| {
                    let direct = path.get().filter(|path| path.direct);
                    let title = direct.and_then(|path| path.relay_ms).map(|time| texts().seat.by_relay(time));
                    let link = member.as_ref().filter(|_| !is_self.get());
                    let link = link.and_then(|member| direct.map(direct_text).or_else(|| round_trip_text(member)));
                    link.map(|link| view! { <span class="chip" title=title>{link}</span> })
                })}
                {move || deputy.get().then(|| view! { <span class="chip">{texts().deputy.seat()}</span> })}
                {move || slowest.get().then(|| view! { <span class="chip chip-slow">{texts().seat.slowest()}</span> })}
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
            <Show when=move || open.get() && hosts.get()><PutOut peer /></Show>
        </li>
    }
}

fn own_stages(status: &Status, peer: PeerId) -> Vec<StageReport> {
    let stages = status.plan.as_ref().map(|plan| plan.stages.as_slice()).unwrap_or_default();
    stages.iter().filter(|stage| stage.peer == peer).cloned().collect()
}

fn lends(member: &MemberView) -> bool {
    member.lent.is_some_and(|lent| lent.0 > 0)
}

fn second_line(member: &MemberView) -> String {
    let mut line = texts().role.of(member).to_owned();
    if lends(member) {
        line.push_str(&format!(" · {}", lent_line(member)));
    }
    line
}

/// "1.2 of 4 GB in use".
fn lent_line(member: &MemberView) -> String {
    texts().seat.in_use(member.used, member.lent.unwrap_or_default())
}

/// "22 ms round trip" from the host; `None` before it is measured.
fn round_trip_text(member: &MemberView) -> Option<String> {
    (member.round_trip_ms > 0.0).then(|| texts().seat.round_trip(member.round_trip_ms))
}

fn direct_text(path: PathReport) -> String {
    path.direct_ms.map_or_else(|| texts().seat.direct_unmeasured().to_owned(), |time| texts().seat.direct(time))
}

/// The details of a seat.
#[component]
fn Numbers(
    member: MemberView,
    stages: Vec<StageReport>,
    memory: Option<(KvCacheType, u64)>,
    key: Option<DeviceId>,
    credit: Option<CreditView>,
) -> impl IntoView {
    let scratch = memory.filter(|_| !stages.is_empty()).map(|(_, overhead)| {
        view! {
            <dt>{texts().seat.scratch()}</dt>
            <dd>{bytes(overhead)}</dd>
        }
    });
    let stages = stages.into_iter().map(|stage| {
        let (first, last) = (stage.first_block, stage.end_block.saturating_sub(1).max(stage.first_block));
        let texts = &texts().seat;
        let blocks = match (stage.embeds, stage.head) {
            (true, true) => texts.blocks_and_both(first, last),
            (true, false) => texts.blocks_and_embedding(first, last),
            (false, true) => texts.blocks_and_head(first, last),
            (false, false) => texts.blocks(first, last),
        };
        let measured = if stage.measured_ms > 0.0 {
            texts.measured(stage.bytes, stage.measured_ms, stage.predicted_ms)
        } else {
            texts.expected(stage.bytes, stage.predicted_ms)
        };
        let stored = match memory {
            Some((cache, _)) => texts.cache_as(stage.kv_cache_bytes, cache.name()),
            None => bytes(stage.kv_cache_bytes),
        };
        view! {
            <dt>{blocks}</dt>
            <dd>{measured}</dd>
            <dt>{texts.cache()}</dt>
            <dd>{stored}</dd>
        }
    });
    let adapter = if member.adapter.is_empty() { texts().seat.unknown().to_owned() } else { member.adapter.clone() };
    view! {
        <dl class="numbers">
            {stages.collect_view()}
            {scratch}
            <dt>{texts().seat.gpu()}</dt>
            <dd>{adapter}</dd>
            <dt>{texts().seat.lends()}</dt>
            <dd>{if lends(&member) { lent_line(&member) } else { texts().seat.nothing().into() }}</dd>
            {credit.map(|credit| view! {
                <dt>{texts().seat.computed()}</dt>
                <dd>{work_line(&credit.work)}</dd>
                <dt>{texts().seat.key()}</dt>
                <dd class="mono device-key">{credit.device.to_string()}</dd>
            })}
            {key.map(|key| view! {
                <dt>{texts().seat.device()}</dt>
                <dd class="mono">{key.tag()}</dd>
            })}
            <dt>{texts().seat.id()}</dt>
            <dd class="mono">{format!("{:?}", member.peer)}</dd>
        </dl>
    }
}

#[cfg(test)]
mod tests {
    use potluck_panel::Bytes;

    use super::*;
    use crate::table::fixtures::member;

    #[test]
    fn lines_show_role_memory_and_round_trip() {
        let mut other = member("a", false);
        assert_eq!(round_trip_text(&other), None, "not measured yet");
        other.used = Bytes(1_200_000_000);
        other.lent = Some(Bytes(4_000_000_000));
        other.round_trip_ms = 22.4;
        assert_eq!(second_line(&other), "lends its GPU · 1.2 GB of 4 GB in use");
        assert_eq!(round_trip_text(&other).as_deref(), Some("22 ms round trip"));
        other.lent = None;
        assert_eq!(second_line(&other), "guest");
    }
}
