//! The deputy: the device that hosts the room if its host leaves.

table! {
    /// What the host chooses, and what everyone sees of it.
    DeputyTexts {
        /// The choice's name.
        label = "If this device leaves";
        /// The room waits for its host.
        nobody = "The room waits for it";
        /// Whichever device suits best.
        anyone = "Another device hosts the room";
        /// A certain device hosts.
        device(name: Text) = "{ $name } hosts the room";
        /// What it means.
        hint = "If this device closes, crashes or loses its connection, the other device goes on with the answers that are being written. It gets the room's keys and every question and answer, and it can host this room from then on.";
        /// The model is a file on the host's own disk.
        needs_source = "No other device could go on with a model that is a file on this device.";
        /// Nobody who may take over is in the room.
        none_yet = "No device in the room can take over yet. It must be let in, not only to chat, and be another device than this one.";
        /// On the deputy's seat.
        seat = "takes over if the host leaves";
        /// In the list of who sees what.
        sees(name: Text) = "{ $name } takes over if the host leaves: it sees every question and answer too, and has the room's keys.";
        /// In the dialog of a host that leaves, instead of guests who wait.
        goes_on(name: Text) = "{ $name } hosts the room from then on, and running answers go on. You can come back by the room's link.";
        /// The button of a host that leaves, in place of "Close it for now".
        leave = "Leave; the room goes on";
        /// This device took the host's place.
        took_over = "The host left. This device hosts the room now.";
    }
}
