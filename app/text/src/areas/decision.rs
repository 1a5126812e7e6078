//! What a host decides, and why: for its page, its log and its recording.

table! {
    /// A text for each [`potluck_panel::PlanDecision`].
    PlanDecisionTexts {
        /// The active plan is the best one.
        is_best(active: Millis) = "This plan stays. It should take { $active } per token, and no other plan is expected to be faster.";
        /// Another one gains too little.
        gain_too_small(best: Millis, active: Millis, needed: Millis) = "This plan stays. The best alternative would take { $best } per token instead of { $active }. Switching pays off only below { $needed }.";
        /// Devices with a part, in the next text.
        devices(count: Count) = [one] "{ $count } device" [other] "{ $count } devices";
        /// The best one has fewer devices, and the host wants many. `fewer`: "1 device".
        fewer_devices(fewer: Text, active: Count) = "This plan stays. The best alternative would use only { $fewer } instead of { $active }, and you chose to use as many devices as possible.";
        /// A better one must be better for a while.
        not_for_long_enough(best: Millis, active: Millis, needed_for: Millis, needed_looks: Count, better_for: Millis, looks: Count) = "This plan stays for now. Another plan would take { $best } per token instead of { $active }, but the room switches only once that plan has been better for at least { $needed_for } and in { $needed_looks } checks in a row. So far: { $better_for }, and { $looks } of { $needed_looks } checks.";
        /// Answers in progress end first.
        answers_end_first(best: Millis, active: Millis) = "This plan stays until the current answers are finished. The best alternative would take { $best } per token instead of { $active }.";
        /// Loading the best one would take longer than its tokens would save.
        does_not_pay(best: Millis, active: Millis, load: Millis, tokens: Count) = "This plan stays. The best alternative would take { $best } per token instead of { $active }, but loading it would take { $load }, and the room could not answer during that time. For the { $tokens } tokens expected, that is not worth it.";
        /// The best one is loaded once nobody asks.
        room_in_use(best: Millis, active: Millis, load: Millis) = "This plan stays while the room is in use. The best alternative would take { $best } per token instead of { $active }, but loading it would take { $load }, and the room could not answer during that time.";
        /// Another plan is being prepared.
        another_is_prepared(active: Millis) = "Another plan is being loaded. Until it is ready, this one stays, at { $active } per token.";

        /// What a token takes with a new plan. `why`: one of the sentences below.
        new_plan(why: Text, new: Millis) = "{ $why } Each token should take { $new }.";
        /// The same, compared with the plan before.
        new_plan_compared(why: Text, new: Millis, active: Millis) = "{ $why } Each token should take { $new } instead of { $active }.";
        /// There was no plan before.
        first = "This is the best plan for the memory lent.";
        /// The plan before is gone with a device.
        plan_lost = "The previous plan needed a device that has left. This is the best plan without that device.";
        /// Tokens are faster.
        faster = "This plan is expected to be faster than the previous one.";
        /// More devices take part.
        more_devices(before: Count, after: Count) = "You chose to use as many devices as possible: this plan uses { $after } instead of { $before }.";
        /// The plan before cannot go on.
        cannot_go_on = "The previous plan no longer works: a device lends less, or the context length or the KV cache type has changed.";
        /// The host shares the work in another way.
        sharing_changed = "You chose another way to share the work.";
        /// There is memory for all experts now.
        fits_now = "The previous plan loaded experts on demand. Now there is memory for all of them.";
        /// A standby plan takes over.
        takes_over = "A device left. This plan was already prepared: the other devices have copies of that device's part.";

        /// A device of the plan is away for a moment.
        device_away = "A device is not answering, so no other plans are considered for now. If it does not come back soon, the room goes on without it.";
        /// Devices time themselves.
        measuring = "No plans are compared yet: the devices are still measuring how fast they run this model.";
        /// A device left that the plan can spare.
        spared = "A device left, but this plan can do without it. Other plans are considered once the current answers are finished.";

        /// The devices lend too little.
        too_little(needed: Bytes, offered: Bytes, missing: Bytes) = "The model cannot run: it needs { $needed }, and the devices lend { $offered }. With { $missing } more it fits.";
        /// They lend enough in all, but none enough for its part.
        no_room_for_part(needed: Bytes, offered: Bytes) = "The model cannot run: it needs { $needed }, and the devices lend { $offered } in all, but no device has room for one of the parts. Lend more on one device.";
        /// The first and the last block stay on this device, which lends too little for them.
        host_too_small(needed: Bytes, offered: Bytes, missing: Bytes) = "The model cannot run: with “Keep my words here”, this device needs { $needed } for the first and the last block, and it lends { $offered }. Lend { $missing } more, or open the room without that option.";
        /// The host chose a KV cache type that the model cannot use.
        kv_cache_type = "The model cannot run: it does not support the KV cache type that you chose. Open the room with another one (“Memory for the conversation”).";
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
        computes_ends = "computes only the input and output layers";
        /// How long that takes. `computes`: what it computes.
        takes(computes: Text, time: Millis) = "{ $computes }, { $time } per token";
        /// It holds experts for other devices.
        holds(experts: Count) = [one] "holds { $experts } expert for others" [other] "holds { $experts } experts for others";
        /// It does both.
        both(computes: Text, holds: Text) = "{ $computes }, and { $holds }";
        /// Why it takes part: no other device lends.
        only_device = "It is the only device that lends memory.";
        /// Why it takes part: its memory.
        needed_for_memory(needed: Bytes, others: Bytes) = "Without it the model does not fit: the model needs { $needed }, and the other devices lend only { $others }.";
        /// Why it takes part: the host wants everyone to.
        everyone = "You chose to let every device take part.";
        /// Why it takes part: the host wants experts spread.
        experts_spread = "You chose to spread the experts over the devices.";
        /// Why it takes part: speed.
        fastest = "With it, answers are expected to be at least as fast as without it.";

        /// It has no part: tokens would take longer.
        too_slow(name: Text, with: Millis, without: Millis) = "{ $name } is a spare: a token would take { $with } with it, and takes { $without } without.";
        /// It has no part: tokens would take as long.
        no_faster(name: Text, without: Millis) = "{ $name } is a spare: answers would not be faster with it. Without it, a token takes { $without }.";
        /// It has no part: it lends too little.
        too_little(name: Text, offered: Bytes, needed: Bytes) = "{ $name } is not used: it lends { $offered }, and the smallest part takes { $needed }.";
        /// It has no part: it lends too little for blocks, and is too far for experts.
        experts_too_far(name: Text, offered: Bytes, needed: Bytes, trip: Millis) = "{ $name } is not used: it lends { $offered }, too little for a block ({ $needed }), and it is too far away to hold experts. The round trip to it would add { $trip } per token.";
        /// It has no part: its GPU's largest binding is too small.
        binding_too_small(name: Text, binding: Bytes, needed: Bytes) = "{ $name } is not used: its GPU can address only { $binding } at once, and the KV cache of a block needs { $needed } at this context length. A shorter context would fix that.";
        /// It has no part: the host protects its model.
        protected(name: Text) = "{ $name } is not used: “Protect the model” lets other devices hold only experts, and there are none for it.";
        /// It has no part: there is none left.
        no_part_left(name: Text) = "{ $name } is a spare: the other devices already do all the work.";
        /// There is no plan.
        waits(name: Text, offered: Bytes) = "{ $name } lends { $offered } and waits for a plan.";

        /// The others hold a device's part without having loaded anything for it.
        held_by_others(name: Text) = "If { $name } leaves, the other devices already have its part.";
        /// Helpers hold a device's part. `helpers`: names.
        held(name: Text, helpers: Text) = "If { $name } leaves, a copy of its part is already on { $helpers }.";
        /// Helpers load a copy of a device's part.
        loading(name: Text, helpers: Text) = "In case { $name } leaves, a copy of its part is being loaded on { $helpers }.";
        /// Nobody holds a device's part, for want of memory.
        not_held_for_want(name: Text, missing: Bytes) = "If { $name } leaves, other devices have to load its part first, because they lack { $missing } of memory for a copy.";
        /// Nobody holds a device's part.
        not_held(name: Text) = "If { $name } leaves, other devices have to load its part first.";
    }
}

table! {
    /// What is chosen while tokens are written.
    RunningDecisionTexts {
        /// A holder of experts is asked as the plan says again.
        in_turn(name: Text) = "{ $name } answers normally again, so it is asked for its experts as before.";
        /// A holder is late.
        late(name: Text, slow: Millis) = "{ $name } is slow right now, so other devices are asked first: it answers 95% of requests within { $slow }, but one took more than twice that.";
        /// A holder does not answer. `timeouts`: how many requests were not answered in time so far.
        unhealthy(name: Text, timeouts: Count) = "Other devices are asked before { $name }, because it refused several requests in a row or did not answer them in time. Requests not answered in time so far: { $timeouts }.";
        /// Copies of calls that a holder got.
        copies(copies: Count, name: Text, won: Count, calls: Count) = [one] "{ $name } was asked as a backup once, because another device had not answered yet. Times it answered first: { $won }. Requests it has answered in all: { $calls }."
            [other] "{ $name } was asked as a backup { $copies } times, because another device had not answered yet. Times it answered first: { $won }. Requests it has answered in all: { $calls }.";
        /// Guesses are tried.
        guesses_tried = "The room is testing whether loading experts in advance makes answers faster.";
        /// Guesses pay.
        guesses_on = "Experts that will probably be needed are loaded in advance, because this made answers faster.";
        /// Guesses did not pay.
        guesses_off = "Experts are not loaded in advance, because this did not make answers faster.";
        /// Guesses are loaded in any case.
        guesses_always = "Experts that will probably be needed are loaded in advance, whether or not this makes answers faster.";
        /// How many of the experts used were guessed. `state`: one of the sentences above.
        recall(state: Text, percent: Rounded) = "{ $state } { $percent }% of the experts that were used had been guessed.";
        /// What came of loads.
        loads(said: Text, loaded: Count, useful: Count) = "{ $said } Of { $loaded } experts loaded in advance, { $useful } were used.";
        /// No draft tokens. `cost`: one of the phrases below.
        no_drafts(accepted: Rounded, cost: Text) = "Guessing tokens ahead is off: { $accepted }% of the latest guesses were right, and { $cost }.";
        /// Draft tokens from the text so far. `gain`: tokens in the time of one, with two digits.
        drafts_of_text(length: Count, gain: Text, accepted: Rounded, cost: Text) = [one] "With each token, { $length } more token is guessed from the text so far, which should make answers { $gain } times as fast. { $accepted }% of the latest guesses were right, and { $cost }."
            [other] "With each token, { $length } more tokens are guessed from the text so far, which should make answers { $gain } times as fast. { $accepted }% of the latest guesses were right, and { $cost }.";
        /// Draft tokens of a shadow model.
        drafts_of_shadow(length: Count, gain: Text, accepted: Rounded, cost: Text) = [one] "With each token, a smaller copy of the model guesses { $length } more token, which should make answers { $gain } times as fast. { $accepted }% of the latest guesses were right, and { $cost }."
            [other] "With each token, a smaller copy of the model guesses { $length } more tokens, which should make answers { $gain } times as fast. { $accepted }% of the latest guesses were right, and { $cost }.";
        /// What a draft costs.
        draft_cost(percent: Rounded) = "each guess adds { $percent }% to the time of a token";
        /// It was not measured.
        draft_cost_unknown = "the time that a guess costs is not known yet";
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
        compared = "Expected time per token";
        /// The plan that runs.
        this_plan = "This plan";
        /// A plan that is prepared.
        new_plan = "The new plan";
        /// The plan before it.
        plan_before = "The previous plan";
        /// The best other plan.
        best_other = "The best alternative";
        /// The time below which another plan is worth a change.
        to_beat = "Time to beat";
        /// The plan with a spare device as well.
        with_device(name: Text) = "With { $name } as well";
        /// Experts spread over the devices.
        experts_spread(trips: Count) = [one] "Experts spread, { $trips } round trip per token"
            [other] "Experts spread, { $trips } round trips per token";
        /// Experts with their blocks.
        whole_blocks = "Whole blocks, experts not spread";
        /// The best plan whose first and last block may be on any device.
        ends_anywhere = "With the first and the last block on any device";
        /// The first and the last block stay on the host's device, which reads this.
        ends_kept = "“Keep my words here” is on: this device computes the first and the last block itself.";
        /// Instead of a time.
        does_not_fit = "does not fit";
        /// The heading of what each device does.
        devices = "Devices";
        /// The heading of what happens then.
        leaving = "If a device leaves";
        /// The heading of what would change the choice.
        changes = "What would change this";
        /// Another plan is faster.
        another_is_faster(needed: Millis) = "If another plan is expected to take less than { $needed } per token.";
        /// The other plan stays better.
        stays_better(rest: Millis) = "If the other plan is still better in { $rest }.";
        /// The host wants something else.
        fewer_wanted = "If you no longer want as many devices as possible to take part.";
        /// Answers end.
        answers_end = "When the current answers are finished.";
        /// Nobody asks.
        is_quiet = "If nobody asks anything for half a minute.";
        /// The room is used more.
        is_used_more = "If the room is used more, or the devices load faster.";
        /// The devices lend more.
        devices_lend(missing: Bytes) = "If the devices lend { $missing } more.";
        /// This device lends more, or does not keep the first and the last block.
        host_lends(missing: Bytes) = "If this device lends { $missing } more, or if you open the room without “Keep my words here”.";
        /// A slow device gets faster, or takes part all the same.
        device_saves(name: Text, saved: Millis) = "If { $name } or its connection gets faster by { $saved } per token, or if you choose “Everyone takes part”.";
        /// A device takes part all the same.
        everyone_chosen(name: Text) = "If you choose “Everyone takes part”. Then { $name } gets a part.";
        /// A device lends more.
        device_lends(name: Text, missing: Bytes) = "If { $name } lends { $missing } more.";
        /// The context is shorter.
        shorter_context(name: Text) = "If you choose a shorter context. Then { $name } gets a part.";
        /// Who checks what devices compute: the title of the sentences below.
        layer_checks = "Who checks the results";
        /// A device whose part the host can compute as well.
        is_checked(name: Text) = "{ $name }: the host recomputes a share of this work to check it.";
        /// One that the host can compute as well, but with other rounding.
        is_unlike(name: Text) = "{ $name }: its GPU is of a different kind from the host's. The host recomputes a share of its work, but only large differences show, and even those are no proof.";
        /// One that nobody can check.
        not_checked(name: Text) = "{ $name }: not checked. Either the host lacks its blocks, or experts are spread or loaded on demand.";
        /// Answers whose stages have said by hashes what they got and sent.
        answers_agree(answers: Count) = [one] "In { $answers } answer, all devices agreed on what they had sent each other."
            [other] "In { $answers } answers, all devices agreed on what they had sent each other.";
        /// Parts of answers that the host has computed again.
        parts_repeated(parts: Count, equal: Count) = [one] "The host has recomputed { $parts } part of an answer ({ $equal } matched bit for bit)."
            [other] "The host has recomputed { $parts } parts of answers ({ $equal } matched bit for bit).";
        /// Two neighbours contradict each other.
        neighbours_differ(sender: Text, receiver: Text) = "{ $sender } and { $receiver } disagree about what was sent between them. One of them is wrong. This device can find out which one only if it sent or received the data itself.";
        /// Such a device was further from the host's numbers than rounding is thought to explain.
        is_apart(name: Text) = "{ $name } sent numbers that are far from the host's. It does not round as the host does, so nobody can say who is right.";
        /// A device was asked for hashes or rows, and did not show them.
        work_withheld(name: Text) = "{ $name } was asked to show its work and did not. There can be innocent reasons: a reload, a slow connection or many conversations at once.";
        /// Where the host knows this from.
        of_host = "Times are what this device expected when it last looked for a better plan.";
        /// Where everyone else knows this from.
        of_member = "This is what the host tells everyone. Only the host's own screen shows which plans it compared.";
        /// A device's blocks, as everyone sees them.
        computes(blocks: Count, name: Text) = [one] "{ $name } computes { $blocks } block." [other] "{ $name } computes { $blocks } blocks.";
        /// Products of 32-bit floats.
        exact = "Calculations use 32-bit floats.";
        /// Products of 8-bit integers.
        packed = "Calculations use 8-bit integers: up to twice as fast, and slightly less exact (about as exact as the program llama.cpp by default).";
        /// Matrix units.
        matrix = "Prompts are computed with 16-bit floats, by the GPU's matrix units.";
        /// This device, in these sentences.
        this_device = "This device";
        /// A device without a name.
        a_device = "A device";
    }
}
