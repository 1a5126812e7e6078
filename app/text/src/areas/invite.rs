//! Who may come in, and what is sealed.

table! {
    /// Links and invites.
    InviteTexts {
        /// The heading of the dialog.
        title = "Invite a device";
        /// What the room's own link allows.
        room_terms = "Anyone with the link can join; the host is not asked.";
        /// The address is asked for.
        looking = "Looking for this relay's address";
        /// The choice of a link.
        kind = "What the link is for";
        /// The room's own link.
        room = "My own devices";
        /// For whom it is.
        room_hint = "For lending, chatting and coming back; never expires";
        /// An invite to lend.
        lend = "Lend a GPU";
        /// What it allows besides.
        lend_hint = "For lending and chatting; new devices can use it until it expires";
        /// An invite to chat.
        chat = "Only chat";
        /// How long.
        chat_hint = "New devices can use it until it expires";
        /// The button.
        copy_link = "Copy link";
        /// The button.
        copy_invitation = "Copy invitation";
        /// Below the QR code; then what the link allows.
        scan(terms: Text) = "Scan it with a phone, or send the link. { $terms }";
        /// Other devices cannot reach this relay.
        only_here = "This relay accepts connections only from this computer, so the link works only here. To invite other devices, restart the relay without “--local”.";
        /// The relay made its own certificate; where it can be installed.
        certificate(help: Text) = "This relay made its own certificate, so other devices do not trust it and show a warning. An iPhone or iPad has to install it first: open { $help } there. On other devices, install it too, or choose “Advanced”, then “Proceed”.";
        /// Before the link in an invitation.
        invitation_to_lend = "Join my Potluck room and lend a hand";
        /// Before the link in an invitation.
        invitation_to_chat = "Chat with the model in my Potluck room";
        /// How long an invite works.
        hours = "Valid for";
        /// A choice of it.
        hour = "1 hour";
        /// A choice of it.
        day = "1 day";
        /// A choice of it.
        week = "1 week";
        /// This device's clock and the relay's: three minutes or two days, say.
        clocks_differ(apart: Text) = "The clocks of this device and the relay differ by { $apart }. An invite ends when either clock says so, so it may end at once. Set this device's clock, or use the room's link, which does not expire.";
        /// By how much.
        minutes(minutes: Count) = "{ $minutes } min";
        /// The same, from two hours.
        hours_apart(hours: Count) = "{ $hours } h";
        /// The same, from two days.
        days(days: Count) = "{ $days } days";
        /// The button that replaces the room's own link.
        renew = "Replace link";
        /// Below it.
        renew_hint = "Use this if the wrong person got the link, or after you ban a device.";
        /// Asked before.
        confirm_renew = "Replace the room's link? The current link and all invites stop working. Devices in the room now stay, except any that you removed and that came back by themselves. All others need the new link, even if they were here before.";
        /// How many devices may use it.
        uses = "Number of devices";
        /// A choice of it.
        devices(devices: Number) = [one] "{ $devices } device"
            [other] "{ $devices } devices";
        /// The switch.
        ask = "Ask me first";
        /// What it means.
        ask_hint = "You see the device's name and three words to compare, and let it in or not";
        /// The button.
        make = "Make an invite";
        /// What an invite allows.
        to_chat(uses: Number) = [one] "One device can use it to join and chat."
            [other] "Up to { $uses } devices can use it to join and chat.";
        /// What an invite allows.
        to_lend(uses: Number) = [one] "One device can use it to join, lend its GPU and chat."
            [other] "Up to { $uses } devices can use it to join, lend their GPUs and chat.";
        /// Follows what it allows.
        asked = "You are asked first.";
        /// Follows what it allows.
        not_asked = "You are not asked.";
        /// Asked before.
        confirm_take_back = "Take this invite back? No new device can use it then. Devices that have joined with it stay, and can come back.";
        /// The button.
        take_back = "Take back";
        /// The heading of the invites that were given out.
        given = "Invites";
        /// A row of the list.
        name_chat = "To chat";
        /// A row of the list.
        name_lend = "To lend a GPU";
        /// How often it was used, of how often it may be.
        used(devices: Number, used: Number) = [one] "Used by { $used } of { $devices } device."
            [other] "Used by { $used } of { $devices } devices.";
        /// How long it still works.
        good_for(hours: Number) = [one] "Valid for { $hours } more hour."
            [other] "Valid for { $hours } more hours.";
        /// It works no more.
        expired = "It has expired.";
        /// It works no more.
        used_up = "It is used up.";
        /// It works no more.
        revoked = "You took it back.";
        /// The button.
        lift_ban = "Lift the ban";
        /// The heading of the list.
        banned = "Banned devices";
        /// The picture, for screen readers.
        qr = "QR code of the room's link";
    }
}

table! {
    /// How other programs use the room's model.
    ProgramsTexts {
        /// The choice of a link, and the heading above what it brings.
        title = "Other programs";
        /// For whom it is.
        title_hint = "Editors, libraries and scripts ask the model as they ask OpenAI or Anthropic";
        /// Above the command.
        run = "On the computer where the programs are, run potluck-node (the README says how to get it) with this invite:";
        /// The button.
        copy_command = "Copy command";
        /// Above the address.
        set_up = "Enter this address in the programs. If one wants a key, any text will do:";
        /// The button.
        copy_address = "Copy address";
        /// Above a question on the command line.
        ask = "Or ask from a terminal:";
        /// The button.
        copy_question = "Copy question";
    }
}

table! {
    /// A member that the host puts out.
    PutOutTexts {
        /// Asked before.
        confirm_remove = "Remove this device from the room? Until you replace the link, it can come back as it came before, without asking you.";
        /// Asked before.
        confirm_ban = "Ban this device? The room refuses it from now on, and the invites that it used stop working for new devices. Until you replace the room's link, it still lets in the same person with another browser, or after clearing the browser's storage.";
        /// The button.
        remove = "Remove";
        /// The button.
        ban = "Ban";
        /// The button that changes nothing.
        keep = "Keep it";
    }
}

table! {
    /// What is sealed between devices.
    SealedTexts {
        /// The button.
        button = "Encryption, and who can see what";
        /// The heading of the dialog.
        title = "Encryption";
        /// What is sealed.
        what = "Messages between the devices of this room are encrypted. Only the receiver can read them, and each device has proved its identity with a secret key of its own. The relay forwards the messages and cannot read them. If it changes one, the two devices notice and connect again.";
        /// The list of sessions, for screen readers.
        sessions = "Connections";
        /// The heading of the list.
        sessions_heading = "This device's connections";
        /// What three words are.
        words = "Each connection between two devices has three words. If the other screen shows the same words beside this device's name, nobody is intercepting the connection. A new connection has new words. Once the host has let a device in, it recognizes that device by its key.";
    }
}

table! {
    /// Who can see what.
    PrivacyTexts {
        /// The heading.
        heading = "Who can see what";
        /// A line of the list.
        host = "The host's device sees every question and answer in the room.";
        /// A line of the list.
        workers = "Devices that lend their GPU get numbers from which text can be guessed. The device with the first blocks of the model gets the text itself, as tokens. The device with the last blocks computes the likeliest next tokens, so it can read nearly all of the answers.";
        /// The same line in a room whose host keeps both ends of the model.
        workers_kept = "Here the host's device computes the first and the last block of the model itself. Other devices that lend their GPU get only intermediate numbers, not text. That is not full protection: a device that has the whole model, or downloads it, can reconstruct much or all of the text from those numbers.";
        /// A line of the list.
        guests = "Other guests see only their own conversations, who is in the room, which model it runs and what each device does.";
        /// A line of the list.
        relay = "Messages between devices are encrypted. The relay sees who is in which room, who writes to whom, how much and when, and which parts of its models each address loads. It also serves this page, and a changed page could read everything: use a relay that you trust.";
        /// A line of the list.
        addresses = "Devices that connect directly learn each other's network addresses. By default they connect only if the relay is in a private network, for example at home. Each device can turn this off in its settings; the host can turn it off for the room.";
        /// A line of the list.
        browser = "This page saves your conversations only in this browser, and anyone who uses this browser can read them. Deleting one here does not delete what the host has seen.";
    }
}
