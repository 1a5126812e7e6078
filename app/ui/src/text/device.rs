//! Guesses the kind of this device from the user agent. The user may rename it.

use potluck_panel::DeviceKind;
use potluck_text::texts;

/// Icon by user agent.
#[must_use]
pub fn guess_kind(user_agent: &str, touch_points: u32) -> DeviceKind {
    // iPads claim to be "Macintosh"; only the touch points tell.
    let pad = user_agent.contains("iPad") || (user_agent.contains("Macintosh") && touch_points > 1);
    let android = user_agent.contains("Android");
    let mobile = user_agent.contains("Mobi");
    if pad || (android && !mobile) {
        DeviceKind::Tablet
    } else if mobile {
        DeviceKind::Phone
    } else {
        DeviceKind::Computer
    }
}

/// "Chrome on Windows", "Safari on iPhone".
#[must_use]
pub fn guess_name(user_agent: &str) -> String {
    let browser = [("Edg/", "Edge"), ("OPR/", "Opera"), ("Firefox/", "Firefox"), ("FxiOS/", "Firefox")]
        .into_iter()
        .chain([("Chrome/", "Chrome"), ("CriOS/", "Chrome"), ("Safari/", "Safari")])
        .find(|(mark, _)| user_agent.contains(mark))
        .map_or(texts().kind.unknown(), |(_, name)| name);
    let system = [("iPhone", "iPhone"), ("iPad", "iPad"), ("Android", "Android"), ("CrOS", "ChromeOS")]
        .into_iter()
        .chain([("Windows", "Windows"), ("Macintosh", "Mac"), ("Linux", "Linux")])
        .find(|(mark, _)| user_agent.contains(mark))
        .map(|(_, name)| name);
    system.map_or_else(|| browser.to_owned(), |system| texts().kind.named(browser, system))
}

/// Bytes to lend until the user moves the slider: a page cannot read the size of memory.
#[must_use]
pub const fn default_lend(kind: DeviceKind) -> u64 {
    match kind {
        DeviceKind::Computer | DeviceKind::Native => 2_000_000_000,
        DeviceKind::Phone | DeviceKind::Tablet => 500_000_000,
    }
}

/// The noun for a device.
#[must_use]
pub const fn kind_name(kind: DeviceKind) -> &'static str {
    match kind {
        DeviceKind::Computer => texts().kind.computer(),
        DeviceKind::Phone => texts().kind.phone(),
        DeviceKind::Tablet => texts().kind.tablet(),
        DeviceKind::Native => texts().kind.program(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINUX: &str =
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/150.0 Safari/537.36";
    const PHONE: &str =
        "Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/150.0 Mobile Safari/537.36";
    const IPAD: &str =
        "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 Version/18.0 Safari/605.1.15";

    #[test]
    fn devices_are_told_apart() {
        assert_eq!(guess_kind(LINUX, 0), DeviceKind::Computer);
        assert_eq!(guess_kind(PHONE, 5), DeviceKind::Phone);
        assert_eq!(guess_kind(IPAD, 5), DeviceKind::Tablet);
        assert_eq!(guess_kind(IPAD, 0), DeviceKind::Computer);
    }

    #[test]
    fn names_say_browser_and_system() {
        assert_eq!(guess_name(LINUX), "Chrome on Linux");
        assert_eq!(guess_name(PHONE), "Chrome on Android");
        assert_eq!(guess_name("something else"), "A browser");
    }

    #[test]
    fn phones_lend_less_to_begin_with() {
        assert!(default_lend(DeviceKind::Phone) < default_lend(DeviceKind::Computer));
    }
}
