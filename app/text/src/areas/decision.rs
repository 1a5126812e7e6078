//! What a host decides, and why: for its page, its log and its recording.

table! {
    /// A text for each [`potluck_panel::PlanDecision`].
    PlanDecisionTexts {
        /// The active plan is the best one.
        is_best(active: Millis) = "The plan stays: no other one is expected to beat its { $active } a token.";
        /// Another one gains too little.
        gain_too_small(best: Millis, active: Millis, needed: Millis) = "The plan stays: the best other one would take { $best } a token instead of { $active }. A change is worth it below { $needed }.";
        /// Devices with a part, in the next text.
        devices(count: Count) = [one] "{ $count } device" [other] "{ $count } devices";
        /// The best one has fewer devices, and the host wants many. `fewer`: "1 device".
        fewer_devices(fewer: Text, active: Count) = "The plan stays: the best other one has { $fewer } with a part instead of { $active }, and you want as many as possible.";
        /// A better one must be better for a while.
        not_for_long_enough(best: Millis, active: Millis, needed_for: Millis, needed_looks: Count, better_for: Millis, looks: Count) = "The plan stays for now: another one would take { $best } a token instead of { $active }. It must be better for { $needed_for } at { $needed_looks } looks, and was for { $better_for } at { $looks }.";
        /// Answers in progress end first.
        answers_end_first(best: Millis, active: Millis) = "The plan stays until the answers in progress have ended: the best other one would take { $best } a token instead of { $active }.";
        /// Loading the best one would take longer than its tokens would save.
        does_not_pay(best: Millis, active: Millis, load: Millis, tokens: Count) = "The plan stays: the best other one would take { $best } a token instead of { $active }, but { $load } to load, and nobody would be answered meanwhile. Over the { $tokens } tokens that are expected, that does not pay.";
        /// The best one is loaded once nobody asks.
        room_in_use(best: Millis, active: Millis, load: Millis) = "The plan stays while the room is in use: the best other one would take { $best } a token instead of { $active }, but { $load } to load, and nobody would be answered meanwhile.";
        /// Another plan is being prepared.
        another_is_prepared(active: Millis) = "The plan stays until another one is loaded: { $active } a token until then.";

        /// What a token takes with a new plan. `why`: one of the sentences below.
        new_plan(why: Text, new: Millis) = "{ $why } { $new } a token are expected.";
        /// The same, compared with the plan before.
        new_plan_compared(why: Text, new: Millis, active: Millis) = "{ $why } { $new } a token are expected, { $active } with the plan before.";
        /// There was no plan before.
        first = "This is the best plan for the devices that lend.";
        /// The plan before is gone with a device.
        plan_lost = "The plan before went with a device that left, and this is the best one without it.";
        /// Tokens are faster.
        faster = "Tokens are expected to be faster with this plan than with the one before.";
        /// More devices take part.
        more_devices(before: Count, after: Count) = "More devices take part or hold experts, as you want: { $after } instead of { $before }.";
        /// The plan before cannot go on.
        cannot_go_on = "The plan before could not go on: a device lends less, or the context or the KV cache changed.";
        /// The host shares the work in another way.
        sharing_changed = "You chose to share the work in another way.";
        /// There is memory for all experts now.
        fits_now = "The plan before loaded experts on demand, and now there is memory for all of them.";
        /// A standby plan takes over.
        takes_over = "A device left, and this plan was ready: the others held its part already.";

        /// A device of the plan is away for a moment.
        device_away = "Nothing is compared: a device of the plan does not answer. It comes back in a moment, or is given up.";
        /// Devices time themselves.
        measuring = "Nothing is compared yet: devices are measuring how fast they run this model.";
        /// A device left that the plan can spare.
        spared = "Nothing is compared until the answers in progress have ended: the plan can do without the device that left.";

        /// The devices lend too little.
        too_little(needed: Bytes, offered: Bytes, missing: Bytes) = "There is no plan: the model needs { $needed }, and the devices lend { $offered }. With { $missing } more it fits.";
        /// They lend enough in all, but none enough for its part.
        no_room_for_part(needed: Bytes, offered: Bytes) = "There is no plan: the model needs { $needed }, and the devices lend { $offered }, but no device has room for its part.";
        /// The first and the last block stay on this device, which lends too little for them.
        host_too_small(needed: Bytes, offered: Bytes, missing: Bytes) = "There is no plan: you keep your words here, and this device needs { $needed } for the first and the last block. It lends { $offered }: { $missing } too little.";
        /// The host chose a KV cache type that the model cannot use.
        kv_cache_type = "There is no plan: the model's keys and values cannot be stored in the way that you chose.";
    }
}

table! {
    /// A text for each [`potluck_panel::Place`] and [`potluck_panel::StandbyDecision`].
    DeviceDecisionTexts {
        /// What a device does, and why: one of the sentences below each.
        does(name: Text, what: Text, why: Text) = "{ $name } { $what }. { $why }";
        /// It computes blocks.
        computes(blocks: Count) = [one] "computes { $blocks } block" [other] "computes { $blocks } blocks";
        /// It computes only what stands before the first block and behind the last one.
        computes_ends = "computes the ends of the model";
        /// How long that takes. `computes`: what it computes.
        takes(computes: Text, time: Millis) = "{ $computes }, { $time } of a token";
        /// It holds experts for other devices.
        holds(experts: Count) = [one] "holds { $experts } expert for others" [other] "holds { $experts } experts for others";
        /// It does both.
        both(computes: Text, holds: Text) = "{ $computes }, and { $holds }";
        /// Why it takes part: no other device lends.
        only_device = "It is the only device that lends.";
        /// Why it takes part: its memory.
        needed_for_memory(needed: Bytes, others: Bytes) = "Without it the model does not fit: it needs { $needed }, and the others lend { $others }.";
        /// Why it takes part: the host wants everyone to.
        everyone = "You want everyone to take part.";
        /// Why it takes part: the host wants experts spread.
        experts_spread = "You want the experts spread over the devices.";
        /// Why it takes part: speed.
        fastest = "No plan without it was expected to be faster.";

        /// It has no part: tokens would take longer.
        too_slow(name: Text, with: Millis, without: Millis) = "{ $name } is a spare: a token would take { $with } with it, and takes { $without } without.";
        /// It has no part: tokens would take as long.
        no_faster(name: Text, without: Millis) = "{ $name } is a spare: with it a token would take no less than { $without }.";
        /// It has no part: it lends too little.
        too_little(name: Text, offered: Bytes, needed: Bytes) = "{ $name } has no part: it lends { $offered }, and the smallest part takes { $needed }.";
        /// It has no part: it lends too little for blocks, and is too far for experts.
        experts_too_far(name: Text, offered: Bytes, needed: Bytes, trip: Millis) = "{ $name } has no part: it lends { $offered }, and a block takes { $needed }. A round trip to experts on it would cost { $trip } a token.";
        /// It has no part: its GPU's largest binding is too small.
        binding_too_small(name: Text, binding: Bytes, needed: Bytes) = "{ $name } has no part: its GPU sees { $binding } at once, and a block's keys take { $needed }. A shorter context would do.";
        /// It has no part: the host protects its model.
        protected(name: Text) = "{ $name } has no part: you keep everything but experts for yourself, and none is left for it.";
        /// It has no part: there is none left.
        no_part_left(name: Text) = "{ $name } is a spare: the others have all there is to do.";
        /// There is no plan.
        waits(name: Text, offered: Bytes) = "{ $name } lends { $offered } and waits for a plan.";

        /// The others hold a device's part without having loaded anything for it.
        held_by_others(name: Text) = "If { $name } leaves, the others hold its part already.";
        /// Helpers hold a device's part. `helpers`: names.
        held(name: Text, helpers: Text) = "If { $name } leaves, its part is held already: { $helpers }.";
        /// Helpers load a copy of a device's part.
        loading(name: Text, helpers: Text) = "If { $name } leaves, a copy of its part is being loaded: { $helpers }.";
        /// Nobody holds a device's part, for want of memory.
        not_held_for_want(name: Text, missing: Bytes) = "If { $name } leaves, its part has to be loaded again: the others lack { $missing } for a copy.";
        /// Nobody holds a device's part.
        not_held(name: Text) = "If { $name } leaves, its part has to be loaded again.";
    }
}

table! {
    /// What is chosen while tokens are written.
    RunningDecisionTexts {
        /// A holder of experts is asked as the plan says again.
        in_turn(name: Text) = "{ $name } is asked for its experts in its turn again.";
        /// A holder is late.
        late(name: Text, slow: Millis) = "Others are asked before { $name }: a call takes more than twice as long as the { $slow } within which it answers 95% of them.";
        /// A holder does not answer. `timeouts`: how many calls were not answered in time so far.
        unhealthy(name: Text, timeouts: Count) = "Others are asked before { $name }: it did not answer several calls in a row, or refused them. Calls not answered in time so far: { $timeouts }.";
        /// Copies of calls that a holder got.
        copies(copies: Count, name: Text, won: Count, calls: Count) = [one] "{ $name } got { $copies } copy of a call that somebody else had not answered yet, and was first with { $won }. It answered { $calls } in all." [other] "{ $name } got { $copies } copies of calls that somebody else had not answered yet, and was first with { $won }. It answered { $calls } in all.";
        /// Guesses are tried.
        guesses_tried = "It is being tried whether loading guessed experts ahead pays.";
        /// Guesses pay.
        guesses_on = "Guessed experts are loaded ahead, since tokens were faster with them.";
        /// Guesses did not pay.
        guesses_off = "Guessed experts are not loaded ahead, since tokens were not faster with them.";
        /// Guesses are loaded in any case.
        guesses_always = "Guessed experts are loaded ahead, whether that pays or not.";
        /// How many of the experts used were guessed. `state`: one of the sentences above.
        recall(state: Text, percent: Rounded) = "{ $state } { $percent }% of the experts used were guessed.";
        /// What came of loads.
        loads(said: Text, loaded: Count, useful: Count) = "{ $said } Of { $loaded } loaded, { $useful } were used.";
        /// No draft tokens. `cost`: one of the phrases below.
        no_drafts(accepted: Rounded, cost: Text) = "No draft tokens go along: { $accepted }% of them were right lately, and { $cost }.";
        /// Draft tokens from the text so far. `gain`: tokens in the time of one, with two digits.
        drafts_of_text(length: Count, gain: Text, accepted: Rounded, cost: Text) = [one] "{ $length } draft token from the text so far goes along with each token: that promises { $gain } tokens in the time of one. { $accepted }% of them were right lately, and { $cost }." [other] "{ $length } draft tokens from the text so far go along with each token: that promises { $gain } tokens in the time of one. { $accepted }% of them were right lately, and { $cost }.";
        /// Draft tokens of a shadow model.
        drafts_of_shadow(length: Count, gain: Text, accepted: Rounded, cost: Text) = [one] "{ $length } draft token from a smaller copy of the model goes along with each token: that promises { $gain } tokens in the time of one. { $accepted }% of them were right lately, and { $cost }." [other] "{ $length } draft tokens from a smaller copy of the model go along with each token: that promises { $gain } tokens in the time of one. { $accepted }% of them were right lately, and { $cost }.";
        /// What a draft costs.
        draft_cost(percent: Rounded) = "each makes a pass { $percent }% longer";
        /// It was not measured.
        draft_cost_unknown = "what each costs is not known yet";
    }
}

table! {
    /// What stands behind "Why this plan?".
    WhyTexts {
        /// The heading, where there is a plan.
        title = "Why this plan?";
        /// The heading, where there is none.
        title_none = "Why is there no plan?";
        /// The heading of the plans that were compared.
        compared = "Expected time of a token";
        /// The plan that runs.
        this_plan = "This plan";
        /// A plan that is prepared.
        new_plan = "The new plan";
        /// The plan before it.
        plan_before = "The plan before";
        /// The best other plan.
        best_other = "The best other one";
        /// The time below which another plan is worth a change.
        to_beat = "What another one has to beat";
        /// The plan with a spare device as well.
        with_device(name: Text) = "With { $name } as well";
        /// Experts spread over the devices.
        experts_spread(trips: Count) = [one] "Experts spread, { $trips } round trip a token" [other] "Experts spread, { $trips } round trips a token";
        /// Experts with their blocks.
        whole_blocks = "Whole blocks, experts not spread";
        /// The best plan whose first and last block may be on any device.
        ends_anywhere = "With the first and the last block on any device";
        /// The first and the last block stay on the host's device, which reads this.
        ends_kept = "You keep your words here: this device computes the first and the last block itself.";
        /// Instead of a time.
        does_not_fit = "does not fit";
        /// The heading of what each device does.
        devices = "Devices";
        /// The heading of what happens then.
        leaving = "If a device leaves";
        /// The heading of what would change the choice.
        changes = "What would change this";
        /// Another plan is faster.
        another_is_faster(needed: Millis) = "Another plan is expected to take less than { $needed } a token.";
        /// The other plan stays better.
        stays_better(rest: Millis) = "The other plan stays better for another { $rest }.";
        /// The host wants something else.
        fewer_wanted = "You no longer want everyone to take part.";
        /// Answers end.
        answers_end = "The answers in progress end.";
        /// Nobody asks.
        is_quiet = "Nobody asks for half a minute.";
        /// The room is used more.
        is_used_more = "The room is used more, or devices load more quickly.";
        /// The devices lend more.
        devices_lend(missing: Bytes) = "The devices lend { $missing } more.";
        /// This device lends more, or does not keep the first and the last block.
        host_lends(missing: Bytes) = "This device lends { $missing } more, or you open the room without “Keep my words here”.";
        /// A slow device gets faster, or takes part all the same.
        device_saves(name: Text, saved: Millis) = "{ $name } or its connection saves { $saved } a token, or you choose “Everyone takes part”.";
        /// A device takes part all the same.
        everyone_chosen(name: Text) = "You choose “Everyone takes part”, and { $name } gets a part.";
        /// A device lends more.
        device_lends(name: Text, missing: Bytes) = "{ $name } lends { $missing } more.";
        /// The context is shorter.
        shorter_context(name: Text) = "You choose a shorter context, and { $name } gets a part.";
        /// Who checks what devices compute: the title of the sentences below.
        layer_checks = "Who checks the layers";
        /// A device whose part the host can compute as well.
        is_checked(name: Text) = "{ $name }: the host computes a share of its answers again, and compares.";
        /// One that the host can compute as well, but with other rounding.
        is_unlike(name: Text) = "{ $name }: it has another kind of GPU. The host computes a share of its answers again, but only large differences show, and they convict nobody.";
        /// One that nobody can check.
        not_checked(name: Text) = "{ $name }: nobody checks it. The host holds no copy of its layers, or calls experts elsewhere.";
        /// Answers whose stages have said by hashes what they got and sent.
        answers_agree(answers: Count) = [one] "In { $answers } answer all devices agreed on what went between them." [other] "In { $answers } answers all devices agreed on what went between them.";
        /// Parts of answers that the host has computed again.
        parts_repeated(parts: Count, equal: Count) = [one] "The host has computed { $parts } part again ({ $equal } bit by bit the same)." [other] "The host has computed { $parts } parts again ({ $equal } bit by bit the same).";
        /// Two neighbours contradict each other.
        neighbours_differ(sender: Text, receiver: Text) = "{ $sender } and { $receiver } do not agree on what went between them. One of them is wrong. Only where this device is one of the two does it know which.";
        /// Such a device was further from the host's numbers than rounding is thought to explain.
        is_apart(name: Text) = "{ $name } sent numbers that are far from the host's. It does not round as the host does, so nobody can say who is right.";
        /// A device was asked for hashes or rows, and did not show them.
        work_withheld(name: Text) = "{ $name } was asked to show its work and did not. A reload, a slow line or many conversations at once look the same.";
        /// Where the host knows this from.
        of_host = "Times are what this device expected when it last looked for a better plan.";
        /// Where everyone else knows this from.
        of_member = "This is what the host tells the room. What it compared is on its own page.";
        /// A device's blocks, as everyone sees them.
        computes(blocks: Count, name: Text) = [one] "{ $name } computes { $blocks } block." [other] "{ $name } computes { $blocks } blocks.";
        /// Products of 32-bit floats.
        exact = "Products are computed with 32-bit floats.";
        /// Products of 8-bit integers.
        packed = "Products are computed with 8-bit integers: up to twice as fast, at about the precision that llama.cpp has by default.";
        /// Matrix units.
        matrix = "Prompts are computed with half floats, by the GPU's matrix units.";
        /// This device, in these sentences.
        this_device = "This device";
        /// A device without a name.
        a_device = "A device";
    }
}
