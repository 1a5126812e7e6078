//! The page's line icons: 24 units square, drawn in the text colour.

use leptos::prelude::*;
use potluck_panel::DeviceKind;

/// An icon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symbol {
    /// A pot on the table.
    Pot,
    /// A desktop or laptop.
    Computer,
    /// A phone.
    Phone,
    /// A tablet.
    Tablet,
    /// A peer without a browser.
    Native,
    /// Add.
    Plus,
    /// Close.
    Close,
    /// Settings.
    Sliders,
    /// How one conversation is answered.
    Dial,
    /// Conversations.
    Chats,
    /// Copy.
    Copy,
    /// Done.
    Check,
    /// Send.
    Send,
    /// Stop.
    Stop,
    /// Again.
    Again,
    /// Go on.
    Onward,
    /// Invite.
    Link,
    /// Rename.
    Pencil,
    /// Delete.
    Bin,
    /// A file that goes along.
    Clip,
    /// Stays at the top.
    Pin,
    /// Something is wrong.
    Warning,
    /// Good to know.
    Info,
    /// Sealed.
    Lock,
    /// Leave.
    Leave,
    /// Opens.
    Down,
    /// Lines that wrap.
    Wrap,
    /// Into a file.
    Save,
    /// The one before.
    Before,
    /// The one after.
    After,
    /// Side by side.
    Columns,
}

impl Symbol {
    /// The icon's lines as SVG path data.
    const fn path(self) -> &'static str {
        match self {
            Self::Pot => {
                "M4 10h16M5 10v6a3 3 0 0 0 3 3h8a3 3 0 0 0 3-3v-6M2.5 12H5M19 12h2.5M9 6.5c0-1.2 1-1.2 1-2.5M14 6.5c0-1.2 1-1.2 1-2.5"
            }
            Self::Columns => "M4 5h7v14H4zM13 5h7v14h-7z",
            Self::Computer => "M5 5h14v10H5zM2.5 19h19M5 15l-1.5 4M19 15l1.5 4",
            Self::Phone => "M8 3h8a1 1 0 0 1 1 1v16a1 1 0 0 1-1 1H8a1 1 0 0 1-1-1V4a1 1 0 0 1 1-1zM11 18h2",
            Self::Tablet => "M6 3h12a1 1 0 0 1 1 1v16a1 1 0 0 1-1 1H6a1 1 0 0 1-1-1V4a1 1 0 0 1 1-1zM11 18h2",
            Self::Native => "M4 4h16v6H4zM4 14h16v6H4zM7.5 7h.01M7.5 17h.01",
            Self::Plus => "M12 5v14M5 12h14",
            Self::Close => "M6 6l12 12M18 6L6 18",
            Self::Sliders => "M4 7h9M17 7h3M4 17h3M11 17h9M15 5v4M9 15v4",
            Self::Dial => "M12 4a8 8 0 1 0 0 16a8 8 0 0 0 0-16M12 12l3.5-4.5M12 4v2M4 12h2M18 12h2",
            Self::Chats => "M4 5h12v9H9l-4 3v-3H4zM19 9h1v9h-1v3l-4-3h-5",
            Self::Copy => "M9 9h10v11H9zM6 15H5V4h10v2",
            Self::Check => "M5 12.5l4.5 4.5L19 7.5",
            Self::Send => "M12 19V5M6 11l6-6 6 6",
            Self::Stop => "M7 7h10v10H7z",
            Self::Again => "M19 12a7 7 0 1 1-2.1-5M19 4v4h-4",
            Self::Onward => "M5 12h13M13 7l5 5-5 5",
            Self::Link => {
                "M10 14a4 4 0 0 0 5.7 0l3-3a4 4 0 0 0-5.7-5.7l-1 1M14 10a4 4 0 0 0-5.7 0l-3 3A4 4 0 0 0 11 18.7l1-1"
            }
            Self::Pencil => "M5 19l1-4L16 5l3 3L9 18zM14 7l3 3",
            Self::Bin => "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13M10.5 11v5M13.5 11v5",
            Self::Clip => "M18.5 11.5l-7 7a4.2 4.2 0 0 1-6-6l7.5-7.5a2.8 2.8 0 0 1 4 4l-7 7a1.4 1.4 0 0 1-2-2l6-6",
            Self::Pin => "M9 4h6l-.8 6.5L17 13H7l2.8-2.5zM12 13v7",
            Self::Warning => "M12 4l9 16H3zM12 10v4M12 17h.01",
            Self::Info => "M12 3a9 9 0 1 0 0 18a9 9 0 0 0 0-18M12 11v5M12 8h.01",
            Self::Lock => "M6 11h12v9H6zM8.5 11V7.5a3.5 3.5 0 0 1 7 0V11M12 14.5v2",
            Self::Leave => "M10 4H5v16h5M14 8l4 4-4 4M18 12H9",
            Self::Down => "M6 9l6 6 6-6",
            Self::Wrap => "M4 6h16M4 12h13a3 3 0 0 1 0 6h-4M15.5 15.5L13 18l2.5 2.5M4 18h5",
            Self::Save => "M12 4v10M7.5 10l4.5 4.5 4.5-4.5M5 19h14",
            Self::Before => "M14.5 6l-6 6 6 6",
            Self::After => "M9.5 6l6 6-6 6",
        }
    }
}

/// The icon of a device.
#[must_use]
pub const fn device_symbol(kind: DeviceKind) -> Symbol {
    match kind {
        DeviceKind::Computer => Symbol::Computer,
        DeviceKind::Phone => Symbol::Phone,
        DeviceKind::Tablet => Symbol::Tablet,
        DeviceKind::Native => Symbol::Native,
    }
}

/// Draws an icon. It has no label, because the text beside it has one.
#[component]
pub fn Icon(
    /// Which one.
    #[prop(into)]
    symbol: Signal<Symbol>,
) -> impl IntoView {
    view! {
        <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
            <path d=move || symbol.get().path() />
        </svg>
    }
}

/// Path data of a device's icon, for use in drawings.
#[must_use]
pub const fn device_symbol_path(kind: DeviceKind) -> &'static str {
    device_symbol(kind).path()
}
