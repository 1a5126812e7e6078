//! Phrases that stand in several places.

table! {
    /// Buttons of all dialogs.
    ButtonTexts {
        /// The button.
        copy = "Copy";
        /// The button afterwards.
        copied = "Copied";
        /// The button of a notice.
        copy_details = "Copy details";
        /// The button of the diagnostics.
        copy_diagnostics = "Copy diagnostics";
        /// The button that removes a notice.
        dismiss = "Dismiss";
        /// The button that closes a dialog.
        close = "Close";
        /// The button that leaves something as it was.
        cancel = "Cancel";
        /// The field beside a slider, for screen readers.
        exactly(label: Text) = "{ $label }, exactly";
    }
}

table! {
    /// How far something is.
    ProgressTexts {
        /// Two seconds or less.
        almost_done = "almost done";
        /// Time left.
        seconds(seconds: Rounded) = "about { $seconds } s left";
        /// Time left.
        minutes(minutes: Rounded) = "about { $minutes } min left";
        /// Time left.
        hours(hours: Tenths) = "about { $hours } h left";
        /// How far a phase is.
        bytes(phase: Text, done: Bytes, all: Bytes) = "{ $phase }: { $done } of { $all }";
        /// What was stored before.
        cached(bytes: Bytes) = "already here: { $bytes }";
        /// After the bytes of a download whose server has too many requests.
        server_waits(seconds: Count) = "server busy, next try in { $seconds } s";
    }
}

table! {
    /// A model.
    ModelTexts {
        /// How large a model is.
        size(all: Parameters) = "{ $all } parameters";
        /// The same of one with experts.
        size_active(all: Parameters, active: Parameters) = "{ $all } parameters, { $active } active";
    }
}

table! {
    /// What a device holds of a model.
    PartTexts {
        /// A block.
        block(block: Number) = "block { $block }";
        /// Blocks.
        blocks(first: Number, last: Number) = "blocks { $first }–{ $last }";
        /// Blocks of several stages, such as "0–1, 5".
        ranges(ranges: Text) = "blocks { $ranges }";
        /// Blocks in such a list.
        range(first: Number, last: Number) = "{ $first }–{ $last }";
        /// A block in such a list.
        single(block: Number) = "{ $block }";
        /// The embedding.
        embedding = "input layer";
        /// The LM head.
        head = "output layer";
        /// A device that holds nothing else.
        experts_alone(experts: Number) = [one] "{ $experts } expert, no blocks"
            [other] "{ $experts } experts, no blocks";
        /// Some of the model's experts.
        experts(experts: Number, all: Number) = "{ $experts } of { $all } experts";
    }
}

table! {
    /// Kinds of devices.
    KindTexts {
        /// A kind of device.
        computer = "computer";
        /// A kind of device.
        phone = "phone";
        /// A kind of device.
        tablet = "tablet";
        /// A kind of device: no browser.
        program = "command line";
        /// A browser that is not known.
        unknown = "A browser";
        /// The name of a device at first.
        named(browser: Text, system: Text) = "{ $browser } on { $system }";
    }
}

table! {
    /// Marks in the picture of a room over time.
    TimelineTexts {
        /// A mark.
        joins(name: Text) = "{ $name } joins";
        /// A mark.
        leaves(name: Text) = "{ $name } leaves";
        /// A mark.
        silent(name: Text) = "{ $name } does not answer";
        /// A mark.
        back(name: Text) = "{ $name } is back";
        /// A device without a name.
        unnamed = "a device";
        /// A mark: who has how many blocks.
        plan(stages: Text) = "new plan, blocks: { $stages }";
    }
}

table! {
    /// Experts that are loaded when a token needs them.
    OnDemandTexts {
        /// Before the first token.
        waits(slots: Count, all: Count) = "The model does not fit in this device's memory. { $slots } of its { $all } experts are loaded, and the others are loaded when they are needed.";
        /// What a token loads.
        from_storage(loaded: Bytes, hits: Number, used: Number, percent: Rounded, waits: Tenths, time: Millis) = "Each token loads { $loaded } from this device's storage. Of the { $used } experts that a token uses, { $hits } were already in memory ({ $percent }%). On average, each token waits { $waits } times for experts to load, { $time } in total.";
        /// The same, all of it fetched.
        over_network(loaded: Bytes, hits: Number, used: Number, percent: Rounded, waits: Tenths, time: Millis) = "Each token loads { $loaded } over the network. Of the { $used } experts that a token uses, { $hits } were already in memory ({ $percent }%). On average, each token waits { $waits } times for experts to load, { $time } in total.";
        /// The same, some of it fetched.
        partly_over_network(loaded: Bytes, fetched: Bytes, hits: Number, used: Number, percent: Rounded, waits: Tenths, time: Millis) = "Each token loads { $loaded }: { $fetched } of it over the network, the rest from this device's storage. Of the { $used } experts that a token uses, { $hits } were already in memory ({ $percent }%). On average, each token waits { $waits } times for experts to load, { $time } in total.";
        /// Experts that are in memory.
        in_memory(slots: Count, all: Count) = "{ $slots } of { $all } experts are in memory.";
        /// Others say what will be needed.
        asked(bytes: Bytes) = "Other devices ask this one to load experts in advance: { $bytes } so far.";
        /// It is measured whether guesses pay.
        trying(guessed: Text, bytes: Bytes) = "This device is testing whether loading experts in advance helps: { $bytes } loaded so far{ $guessed }.";
        /// Guesses pay.
        ahead(guessed: Text, bytes: Bytes) = "Experts are loaded in advance: { $bytes } loaded so far{ $guessed }.";
        /// Guesses do not pay.
        off(guessed: Text, bytes: Bytes) = "Loading experts in advance did not help and is off: { $bytes } loaded so far{ $guessed }.";
        /// Stands in the middle of it, if it is known.
        guessed(percent: Rounded) = "; { $percent }% of the experts that were used had been guessed";
    }
}
