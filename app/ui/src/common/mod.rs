//! Small components shared by several parts of the page.

mod bar;
mod copy_button;
mod dialog;
mod icon;
mod lend_slider;
mod name_field;
mod notices;
mod privacy;
mod qr;

pub use bar::Bar;
pub use copy_button::CopyButton;
pub use dialog::Dialog;
pub use icon::{Icon, Symbol, device_symbol, device_symbol_path};
pub use lend_slider::LendSlider;
pub use name_field::NameField;
pub use notices::NoticeStack;
pub use privacy::{Privacy, WhoSeesWhat, deputy_name};
pub use qr::QrCode;
