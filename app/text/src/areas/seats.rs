//! The table: its seats, and the way of a token between them.

table! {
    /// The table itself.
    TableTexts {
        /// The part of the page with the table, for screen readers.
        heading = "The table";
        /// A room without a model, in the place of its name.
        no_model = "No model";
        /// The model is not known yet, in the place of its name.
        opening = "Setting the table";
        /// The button.
        invite = "Invite";
        /// Devices at the table.
        devices(devices: Number) = [one] "{ $devices } device"
            [other] "{ $devices } devices";
    }
}

table! {
    /// A device at the table.
    SeatTexts {
        /// The list of devices, for screen readers.
        list = "Devices at the table";
        /// This device.
        you = "You";
        /// Follows the name of this device.
        own = "(you)";
        /// A device without a name.
        unnamed = "A device";
        /// The slowest step of a token.
        slowest = "bottleneck";
        /// The same, with its time.
        slowest_at(time: Millis) = "bottleneck · { $time }";
        /// Memory.
        in_use(used: Bytes, lent: Bytes) = "{ $used } of { $lent } in use";
        /// Time of a message and its answer.
        round_trip(time: Millis) = "{ $time } round trip";
        /// Time of a message and its answer past the relay.
        direct(time: Millis) = "direct · { $time } round trip";
        /// The same, before it is measured.
        direct_unmeasured = "direct";
        /// The same through the relay.
        by_relay(time: Millis) = "Through the relay: { $time }";
        /// The row of memory besides weights and KV cache.
        scratch = "Working memory";
        /// Blocks of a stage.
        blocks(first: Number, last: Number) = "Blocks { $first }–{ $last }";
        /// The same, with both ends of the model.
        blocks_and_both(first: Number, last: Number) = "Blocks { $first }–{ $last }, input and output layers";
        /// The same, with the embedding.
        blocks_and_embedding(first: Number, last: Number) = "Blocks { $first }–{ $last }, input layer";
        /// The same, with the LM head.
        blocks_and_head(first: Number, last: Number) = "Blocks { $first }–{ $last }, output layer";
        /// What a stage takes.
        measured(weights: Bytes, time: Millis, expected: Millis) = "{ $weights } of weights · { $time } per token, { $expected } expected";
        /// What a stage should take.
        expected(weights: Bytes, expected: Millis) = "{ $weights } of weights · { $expected } per token expected, not measured yet";
        /// The row of the KV cache.
        cache = "KV cache";
        /// Its size and type.
        cache_as(size: Bytes, kind: Text) = "{ $size } as { $kind }";
        /// The row of the adapter.
        gpu = "GPU";
        /// An adapter without a name.
        unknown = "unknown";
        /// The row of the memory lent.
        lends = "Lends";
        /// None is.
        nothing = "nothing";
        /// The row of what it has computed.
        computed = "Has computed";
        /// The row of its key.
        key = "Device key";
        /// The row of the first digits of its key, which tell it from others.
        device = "Short key";
        /// The row of its id.
        id = "Id";
        /// A seat that waits for a device.
        empty = "Empty seat";
        /// Memory that such a device should lend.
        more(missing: Bytes) = "needs { $missing } of memory";
        /// One more device is needed.
        one_more = "one more device";
        /// The host is alone.
        invite = "invite someone";
    }
}

table! {
    /// How long a token takes, and where.
    PathTexts {
        /// Stages of a plan.
        stages(stages: Number) = [one] "{ $stages } computing step per token"
            [other] "{ $stages } computing steps per token";
        /// Network hops of a plan.
        hops(hops: Number) = [one] "{ $hops } network hop per token"
            [other] "{ $hops } network hops per token";
        /// How fast the room is.
        pace(pace: Pace) = "{ $pace } measured";
        /// How long a token should take.
        expected(pace: Pace) = "{ $pace } expected";
        /// What the first tokens of the last answer said of the others.
        forecast(tokens: Number, time: Millis, forecast: Millis) = "Last answer: the first { $tokens } tokens took { $time } each, and the rest were expected to take { $forecast } each";
        /// The forecast, and how it was.
        measured(tokens: Number, forecast: Text, time: Millis) = [one] "{ $forecast }. The other token took { $time }."
            [other] "{ $forecast }. The other { $tokens } tokens took { $time } each.";
        /// The heading.
        total(time: Text) = "Time per token: { $time }";
        /// The list, for screen readers.
        steps = "Time per token";
        /// The heading of what would make the room faster.
        help = "What would help";
        /// The heading of the picture.
        over_time = "Speed over time";
        /// The title in the picture.
        picture = "Tokens per second in this room";
        /// The button.
        save_picture = "Save picture";
        /// The button.
        save_data = "Save data";
        /// A step of the way.
        times(measured: Millis, expected: Millis) = "{ $measured } measured, { $expected } expected";
        /// The same before it was measured.
        time_expected(expected: Millis) = "{ $expected } expected";
    }
}

table! {
    /// What devices have computed.
    CreditTexts {
        /// The heading.
        heading = "Who computed how much";
        /// How it is counted.
        counted = "Counted by the host since its tab was last loaded.";
        /// The button.
        save = "Save as JSON";
        /// Tokens that a device has worked on.
        tokens(tokens: Count) = [one] "{ $tokens } token"
            [other] "{ $tokens } tokens";
        /// What a device has computed.
        work(tokens: Text, time: Millis, sent: Bytes) = "{ $tokens } · { $time } of GPU time · { $sent } sent";
    }
}

table! {
    /// Experts that lie on several devices.
    ExpertsTexts {
        /// The list of devices, for screen readers.
        holders = "Devices with experts";
        /// On how many other devices experts lie.
        summary(devices: Number) = [one] "Experts on { $devices } other device"
            [other] "Experts on { $devices } other devices";
        /// Who checks them, and that nobody may.
        checks = "To catch wrong results, the host, or a device that joined with another link or invite (so probably somebody else's), repeats a small share of this work. It must hold the same experts on the same kind of GPU. If there is none, nothing is checked.";
        /// A holder that is asked last.
        late = "slow or refusing, so asked last";
        /// Round trips of a token.
        trips(trips: Number, time: Millis) = [one] "{ $trips } round trip per token, { $time }"
            [other] "{ $trips } round trips per token, { $time }";
        /// The same, and what the token takes in all.
        trips_of(trips: Number, time: Millis, token: Millis) = [one] "{ $trips } round trip per token, { $time } of { $token }"
            [other] "{ $trips } round trips per token, { $time } of { $token }";
        /// Some experts.
        count(experts: Count) = [one] "{ $experts } expert"
            [other] "{ $experts } experts";
        /// How many devices hold each, at least and on average.
        replicas(devices: Number, experts: Text, mean: Tenths) = [one] "{ $experts }, each on { $devices } device or more, { $mean } on average"
            [other] "{ $experts }, each on { $devices } devices or more, { $mean } on average";
        /// Experts that too few devices hold.
        short(experts: Count, wanted: Number) = [one] "{ $experts } expert has fewer than { $wanted } holders."
            [other] "{ $experts } experts have fewer than { $wanted } holders.";
        /// What happens then.
        copies_load = "Copies are being loaded.";
        /// What happens then.
        no_room = "No device has room for more copies.";
        /// Calls that are not answered yet.
        calls(calls: Number) = [one] "{ $calls } request under way"
            [other] "{ $calls } requests under way";
        /// Calls to a second device, and how many of them were answered first.
        hedges(calls: Number, won: Count) = [one] "{ $calls } backup request to a second device, { $won } answered first"
            [other] "{ $calls } backup requests to a second device, { $won } answered first";
        /// Calls without an answer.
        timeouts(timeouts: Number) = [one] "{ $timeouts } timeout"
            [other] "{ $timeouts } timeouts";
        /// How long a device takes.
        call_times(median: Millis, slow: Millis) = "{ $median } per request, 95% within { $slow }";
        /// What a device loads.
        loading(experts: Count) = [one] "Loading { $experts } expert"
            [other] "Loading { $experts } experts";
        /// The same, with its progress.
        loading_one(now: Number, all: Number, done: Bytes, bytes: Bytes) = "Loading expert { $now } of { $all }: { $done } of { $bytes }";
    }
}
