//! This device.

table! {
    /// What this device does for the room.
    OwnDeviceTexts {
        /// It lends nothing yet.
        only_chats = "This device only chats. Lend its GPU to make room for larger models.";
        /// Its invite is one to chat.
        invited_to_chat = "You are invited to chat. Other devices do the work.";
        /// It cannot lend, and is about to host.
        hosts_without_gpu = "This device cannot compute, because this browser cannot use its GPU. You can still host, and other devices do the work.";
        /// It cannot lend.
        no_webgpu = "This device can only chat: its browser has no WebGPU.";
        /// It could lend before.
        gpu_lost = "This device lends nothing because its GPU is unavailable. Reload the page to try again.";
        /// It lends, and the room has no plan. For whom it stands by may follow.
        lends(lent: Bytes) = "This device lends { $lent }.";
        /// Follows what it lends.
        room_short = "The room needs more memory: lend more here, or add another device.";
        /// It works. For whom it stands by and what it loads besides may follow.
        works(lent: Bytes, holds: Text) = "This device lends { $lent } and holds { $holds }.";
        /// It loads for another plan while it works.
        prepares = "It keeps working while it prepares for a new plan.";
        /// It has no work. For whom it stands by may follow, and why it has none does.
        spare(lent: Bytes) = "This device lends { $lent } and is a spare.";
        /// Nothing else is known of why it has no work.
        not_needed = "The room does not need it now.";
        /// It failed.
        failed = "This device cannot take part. The notice on this page says why.";
        /// What it loads.
        loading(holds: Text) = "Loading { $holds }.";
        /// It has no part yet.
        waiting(lent: Bytes) = "This device lends { $lent } and waits for its share of the model.";
        /// Beside the slider.
        choose_memory = "Browsers do not report GPU memory. Choose what this device can spare.";
        /// Keep everything but experts of a file here.
        protect = "Protect the model: other devices get only its experts, never the whole file";
        /// What that protects, and what not.
        protect_hint = "Other devices get the experts that they hold for you, a little of the data beside each of them in the file (up to 64 KiB), and the file's header with its vocabulary. They can keep what they get, and several devices together can collect all experts. The numbers sent to them can reveal text. A model without experts runs on this device alone.";
        /// Keep both ends of the model here.
        keep_words = "Keep my words here";
        /// What that means, and what it costs.
        keep_words_hint = "This device computes the first and the last block of the model itself. Other devices get only intermediate numbers, not your text. A device that has the whole model, or downloads it, can still reconstruct much or all of your text from those numbers. If other devices take part, every token passes through this device twice, at the start and at the end, which makes answers slower. This device has to lend enough for both blocks.";
        /// Blocks that fit, of how many.
        layers(fitting: Number, all: Number) = "Room for about { $fitting } of the model's { $all } blocks (layers). Browsers do not report GPU memory, so the choice is yours.";
        /// The slider.
        memory = "Memory this device lends";
        /// The card of this device, and its part of the settings.
        heading = "This device";
        /// The button that lends this device's GPU: at the door, for a room by its link, and on this device's card.
        contribute = "Contribute GPU";
        /// Opens the slider.
        change = "Change how much this device lends";
        /// The switch.
        awake = "Keep this screen awake";
        /// The button beside the slider.
        lend = "Lend this much";
        /// The button that lends nothing any more.
        withdraw = "Withdraw GPU";
    }
}
