//! `potluck-node show` and `doctor`: what is known of a model and of this device.

table! {
    /// What `show` says of a model. Each label stands before a value.
    ShowTexts {
        /// Label.
        name = "name";
        /// Label.
        architecture = "architecture";
        /// Label.
        parameters = "parameters";
        /// Label: the weights' number types, and how many bytes have each.
        quantization = "quantization";
        /// Label: length of the files.
        size = "size";
        /// Label: the longest context.
        context = "context";
        /// Label.
        tokenizer = "tokenizer";
        /// Label.
        template = "chat template";
        /// Label.
        licence = "licence";
        /// Label: GPU memory.
        memory = "memory";
        /// Label: whether it fits.
        verdict = "verdict";
        /// An architecture with its blocks.
        blocks(blocks: Count, architecture: Text) = [one] "{ $architecture }, { $blocks } block" [other] "{ $architecture }, { $blocks } blocks";
        /// The same with experts.
        blocks_of_experts(architecture: Text, blocks: Count, experts: Count) = "{ $architecture }, { $blocks } blocks of { $experts } experts";
        /// Parameters, if a token uses only some.
        active(all: Parameters, active: Parameters) = "{ $all }, { $active } for each token";
        /// A length.
        tokens(tokens: Count) = "{ $tokens } tokens";
        /// A tokenizer's kind and vocabulary.
        vocabulary(kind: Text, tokens: Count) = "{ $kind }, { $tokens } tokens";
        /// The file has a template that the model's prompts are written with.
        own_template = "the file's own";
        /// Another one is used.
        other_template = "not the file's own";
        /// Added if the template can offer functions.
        with_functions = "offers functions";
        /// Added if text can be filled in.
        with_infill = "can fill in text";
        /// The sum of what one device needs.
        needs(weights: Bytes, cache: Bytes, kind: Text, tokens: Count, besides: Bytes, all: Bytes) = "{ $weights } of weights + { $cache } of KV cache ({ $kind }, { $tokens } tokens) + { $besides } = { $all }";
        /// The type of the KV cache that was chosen.
        no_such_cache(kind: Text, others: Text) = "This model's keys and values cannot be stored as { $kind }. Choose one of { $others }, or leave out --kv.";
        /// It fits.
        fits(budget: Bytes) = "It fits in { $budget } (--budget) on one device.";
        /// It does not fit.
        too_large(budget: Bytes, all: Bytes) = "It does not fit in { $budget } (--budget) on one device: allow { $all }, choose a shorter --context, or host it for several devices.";
        /// It does not fit, but has experts.
        on_demand(budget: Bytes, all: Bytes) = "It does not fit in { $budget } (--budget) on one device, but its experts can be loaded when a token needs them, which is slower. Faster: allow { $all }, or host it for several devices.";
    }
}

table! {
    /// What `doctor` says of this device. Each line begins with a mark and a label.
    DoctorTexts {
        /// Mark: nothing is wrong.
        good = "ok";
        /// Mark: something is wrong.
        bad = "bad";
        /// Mark: it was not looked at.
        skipped = "-";
        /// Label.
        program = "program";
        /// Label.
        gpu = "GPU";
        /// Label.
        self_test = "self-test";
        /// Label.
        cache = "cache";
        /// Label.
        relay = "relay";
        /// Label.
        clock = "clock";
        /// A GPU that the CPU emulates.
        software(adapter: Text) = "{ $adapter }: a software adapter, which is slow. If this device has a GPU, install its Vulkan driver.";
        /// Every kernel is right.
        passed(kernels: Count) = "{ $kernels } kernels compute what they should.";
        /// Slower kernels take the place of some.
        replaced(kernels: Count, names: Text) = "{ $kernels } kernels were tested. Slower ones replace those that compute wrongly: { $names }. A newer driver may help.";
        /// Some are wrong.
        failed(names: Text) = "These kernels compute wrongly: { $names }. This device can only ask. A newer driver may help.";
        /// There is no GPU.
        not_tested = "not tested without a GPU";
        /// The folder, and what it holds.
        cache_used(folder: Text, used: Bytes) = "{ $folder } holds { $used }.";
        /// No relay was named.
        no_relay = "not asked: name one with --relay URL";
        /// It answered.
        answers(relay: Text, millis: Rounded) = "{ $relay } answers in { $millis } ms.";
        /// It answered something else.
        other_answer(relay: Text, status: Number) = "{ $relay } is not a Potluck relay: it answers with status { $status }. Check the address.";
        /// The clocks agree.
        clock_agrees(seconds: Count) = "within { $seconds } s of the relay's";
        /// The clock is wrong.
        clock_ahead(seconds: Count) = "This device's clock is { $seconds } s ahead of the relay's, so certificates and invites may count as expired. Set the clock.";
        /// The same, the other way.
        clock_behind(seconds: Count) = "This device's clock is { $seconds } s behind the relay's, so certificates may count as not valid yet. Set the clock.";
        /// Who answered says nothing of the time.
        clock_unknown = "The relay does not say what time it is.";
        /// The end if something is wrong.
        something_is_wrong = "Something is wrong: see the lines that begin with \"bad\".";
    }
}
