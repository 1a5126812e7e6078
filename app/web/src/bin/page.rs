//! The page: the tree of `ui` on the page half of `node`.
#![forbid(unsafe_code)]

#[cfg(target_arch = "wasm32")]
fn main() {
    use potluck_node::web::page;
    use potluck_ui::{NodeLink, PageServices};

    let half = page::start();
    let (sender, listener, waker) = (half.clone(), half.clone(), half.clone());
    let (holder, releaser, asker) = (half.clone(), half.clone(), half.clone());
    potluck_ui::mount(NodeLink::new(PageServices {
        send: Box::new(move |message, file| sender.send(message, file)),
        listen: Box::new(move |receiver| listener.listen(receiver)),
        keep_awake: Box::new(move |awake| waker.keep_awake(awake)),
        persist: Box::new(move || half.persist()),
        hold_room: Box::new(move |room| holder.hold_room(room)),
        release_room: Box::new(move || releaser.release_room()),
        held_rooms: Box::new(move || asker.held_rooms()),
    }));
}

#[cfg(not(target_arch = "wasm32"))]
fn main() {
    eprintln!("This program runs in a browser. Start everything with: cargo xtask run");
}
