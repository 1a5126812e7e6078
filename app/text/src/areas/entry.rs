//! Coming into a room, and what becomes of it when its host leaves.

table! {
    /// A device that asks to come in.
    RequestTexts {
        /// For the host, with the words of its session with the device.
        its_words(words: Element) = "Three words: { $words }. The other screen must show the same words. If they differ, do not let the device in: somebody is intercepting the connection.";
        /// For the one that asks.
        own_words(words: Element) = "Three words: { $words }. The host must see the same words beside your name. If the words differ, somebody is intercepting the connection.";
        /// Follows the name of a device that asks.
        wants(kind: Text) = "({ $kind }) wants to join";
        /// The button.
        allow = "Allow";
        /// The button.
        not_now = "Not now";
        /// The heading while a stranger waits.
        asking = "Asking the host to let you in";
        /// The heading while an invited one waits.
        waiting = "Waiting for the host";
        /// What to expect with the link of the room.
        by_link = "You join as soon as the host is here. There is nothing for you to do.";
        /// What to expect with an invite.
        by_invite = "You join as soon as the host is here and has let you in. Until then, please wait.";
        /// What to expect without either.
        by_list(name: Text) = "The host sees “{ $name } wants to join” and can let you in. Until then, please wait.";
    }
}

table! {
    /// What becomes of a room when its host leaves it.
    LeaveTexts {
        /// What it is about, if nobody else is there.
        alone = "You host this room. Nobody else is in it.";
        /// What it is about, with the number of others.
        with_others(others: Number) = "You host this room. Others in it: { $others }. What should happen to it?";
        /// What closing it for now means.
        for_now = "Guests wait. You can open it again within a day from Potluck's front page in this browser. Its link and its invites keep working.";
        /// What ending it means.
        for_good = "Guests are told that it is over. Its link and its invites stop working.";
        /// Asked before a room ends that no tab has open.
        end_own = "End this room for good? Its link and its invites stop working.";
        /// The button that leaves the room, and the heading of its dialog.
        title = "Leave the room";
        /// The button that closes the room for now.
        close = "Close it for now";
        /// The button that ends it for good.
        end = "End the room";
        /// The button that changes nothing.
        stay = "Stay";
    }
}

table! {
    /// A room without a model.
    FailureTexts {
        /// What happened.
        title = "The model could not be opened";
        /// What the host can do.
        host = "Choose another model. It opens in a new room, so you have to share a new link.";
        /// What a guest can expect.
        guest = "The host can choose another model, which opens in a new room. Ask the host for the new link.";
        /// The button.
        choose_another = "Choose another model";
    }
}

impl LeaveTexts {
    /// What it is about, in a room with this many others.
    #[must_use]
    pub fn what(&self, others: usize) -> String {
        if others == 0 { self.alone.to_owned() } else { self.with_others(others) }
    }
}
