//! The host's log of its doors.

table! {
    /// Who came, who was refused and who was put out, on the page, in a file and in a terminal.
    DoorLogTexts {
        /// The heading on the page.
        title = "Log";
        /// Below it.
        hint = "Stored with the room, in this browser. It keeps the last 64 entries of each kind of event.";
        /// The button.
        save_text = "Save as text";
        /// The button.
        save_json = "Save as JSON";
        /// A line: when, who, what tells its key apart in lists, and what happened.
        line(time: Text, name: Text, key: Text, what: Text) = "{ $time }  { $name } ({ $key }) { $what }";
        /// The same where the device proved no key.
        line_without_key(time: Text, name: Text, what: Text) = "{ $time }  { $name } { $what }";
        /// A line of what happened to the room.
        line_of_room(time: Text, what: Text) = "{ $time }  { $what }";
        /// Follows a line of what happened more than once.
        repeated(times: Count, first: Text) = "({ $times } times since { $first })";
        /// A device that gave itself no name.
        unnamed = "A device";
        /// What happened.
        by_link = "joined with the room's link";
        /// What happened.
        by_invite(number: Number) = "joined with invite { $number }";
        /// What happened.
        by_list = "was let in by you";
        /// What happened.
        before = "joined again";
        /// What happened, with the sentence that the device was told.
        refused(sentence: Text) = "was not let in: { $sentence }";
        /// What happened.
        removed = "was removed";
        /// What happened.
        banned = "was banned";
        /// What happened.
        forgiven = "was unbanned";
        /// What happened.
        wrong_numbers = "sent wrong numbers and gets no work for a while";
        /// What happened to the room.
        link_renewed = "The room's link was replaced";
    }
}
