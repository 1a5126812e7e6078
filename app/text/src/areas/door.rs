//! The front page.

table! {
    /// The front page, and the page that greets an invited visitor.
    DoorTexts {
        /// Below the name.
        about = "Together, your devices can run a model that none of them could run alone.";
        /// Rooms are looked for.
        looking = "Looking for open rooms";
        /// There is none.
        none = "No room is open here yet";
        /// Rooms on this relay.
        open(rooms: Number) = [one] "One room is open here"
            [other] "{ $rooms } rooms are open here";
        /// What the button does.
        host_hint = "Pick a model and open a room";
        /// The link to the benchmark.
        bench = "How fast is this device?";
        /// The room is still open. A button follows.
        still_seated = "You are still in a room.";
        /// The button.
        back = "Back to the room";
        /// The link is an invite.
        invited_to_chat = "You are invited to chat in a room.";
        /// The link has a key.
        invited = "You are invited to a room.";
        /// The link has no key.
        asks = "The host of this room will be asked to let you in.";
        /// The room is one of this browser.
        hosted_elsewhere = "Another tab in this browser is hosting this room. In this tab you can join it as a guest.";
        /// What the button does.
        lend_hint = "Lend this device's GPU and its memory, and chat";
        /// Why the button does nothing.
        no_gpu = "This browser cannot use the GPU, but you can still chat";
        /// The button.
        chat = "Just chat";
        /// What it does.
        chat_hint = "Other devices do the work";
        /// Rooms of this browser, for screen readers.
        own_rooms = "Your rooms";
        /// A room without a title.
        own_room = "Your room";
        /// A room of this browser.
        own_room_with(title: Text) = "Your room with { $title }";
        /// What is known of it.
        still_yours = "This room is not open in any tab. Open it again, and its guests reconnect automatically.";
        /// The button.
        open_again = "Open it again";
        /// The button.
        end = "End it";
    }
}

table! {
    /// The list of rooms.
    RoomsTexts {
        /// The heading of the dialog.
        title = "Which room?";
        /// There is none.
        none = "No room is open yet on this relay, the server that this page comes from. As soon as a host opens one, it appears here. If you have a room's link, paste it below.";
        /// Above the list.
        strangers = "Anyone can give a room any title. Join only rooms of people you know. Ask the host for the first characters of the room's link after /r/, and check that they match those after “Room” here.";
        /// A title, which somebody else chose.
        called(title: Text) = "“{ $title }”";
        /// The beginning of the room's id, and how many devices are in it.
        tag(devices: Count, letters: Text) = [one] "Room { $letters } · one device"
            [other] "Room { $letters } · { $devices } devices";
        /// The field.
        link = "Room link";
        /// The field has something else.
        no_link = "This is not a room link. Room links look like https://…/r/abcd#key.";
    }
}

table! {
    /// A relay whose lists cannot be read.
    RelayTexts {
        /// An answer that is an error.
        status(status: Number) = "The relay answered with status { $status }. Try again in a moment.";
        /// No answer.
        silent = "The relay does not answer. Check the network, then try again.";
        /// An answer that is not understood.
        unreadable = "The relay's answer could not be read. Reload the page.";
    }
}
