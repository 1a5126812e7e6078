//! Short phrases about members and models.

use potluck_panel::{CacheType, MemberState, Roles};

use super::parameters;

/// "1 device", "3 devices".
#[must_use]
pub fn plural(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// How keys and values are stored, for people.
#[must_use]
pub const fn cache_name(cache: CacheType) -> &'static str {
    match cache {
        CacheType::F32 => "Exact (f32)",
        CacheType::F16 => "Half (f16)",
        CacheType::Q8 => "A quarter (q8_0)",
        CacheType::Q4 => "An eighth (q4_0), less exact answers",
    }
}

/// "30.5 B parameters, 3.3 B active" or "1.2 B parameters".
#[must_use]
pub fn model_size(all: u64, active: u64) -> String {
    if active > 0 && active < all {
        format!("{} parameters, {} active", parameters(all), parameters(active))
    } else {
        format!("{} parameters", parameters(all))
    }
}

/// "host, lends its GPU".
#[must_use]
pub fn role_words(role: Roles) -> &'static str {
    match (role.coordinator, role.worker) {
        (true, true) => "host, lends its GPU",
        (true, false) => "host",
        (false, true) => "lends its GPU",
        (false, false) => "guest",
    }
}

/// One or two words on how a member is.
#[must_use]
pub fn state_words(state: MemberState, hidden: bool) -> &'static str {
    match state {
        MemberState::Asking => "asks to come in",
        MemberState::Failed => "failed",
        MemberState::Silent => "not heard of",
        _ if hidden => "tab hidden, slower",
        MemberState::Guest => "guest",
        MemberState::Loading => "loading",
        MemberState::Ready => "ready",
        MemberState::Spare => "spare",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn active_parameters_are_told_only_when_they_differ() {
        assert_eq!(model_size(30_500_000_000, 3_300_000_000), "30.5 B parameters, 3.3 B active");
        assert_eq!(model_size(1_200_000_000, 1_200_000_000), "1.2 B parameters");
    }

    #[test]
    fn one_is_not_many() {
        assert_eq!(plural(1, "device", "devices"), "1 device");
        assert_eq!(plural(0, "device", "devices"), "0 devices");
    }

    #[test]
    fn a_hidden_tab_is_said_unless_something_worse_is() {
        assert_eq!(state_words(MemberState::Ready, true), "tab hidden, slower");
        assert_eq!(state_words(MemberState::Failed, true), "failed");
    }
}
