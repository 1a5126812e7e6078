//! The settings.

table! {
    /// The drawer, and what it says of the page.
    SettingsTexts {
        /// The heading.
        title = "Settings";
        /// The heading of a part.
        about = "About";
        /// The licence of Potluck.
        licence = "Free software under the MIT licence or the Apache licence 2.0, at your option. Models have their own licences.";
        /// The heading of a part.
        appearance = "Appearance";
        /// As the system says.
        system = "System";
        /// Dark on light.
        light = "Light";
        /// Light on dark.
        dark = "Dark";
        /// The version.
        build(build: Element) = "Potluck, build { $build }";
        /// The hash of this page's release, as the relay says it.
        release(hash: Element) = "Release hash, as reported by this relay: { $hash }";
        /// What that proves.
        release_hint(origin: Text) = "This is the SHA-256 hash of the relay's list of files for this page. By itself it proves nothing: a dishonest relay can show any hash. To check this page, get the release's hash from somebody you trust, or build the same commit yourself (cargo xtask page prints the hash). Then run on another device: potluck-node verify { $origin } --release HASH";
        /// Opens what to paste into an issue.
        diagnostics = "Diagnostics";
        /// What it is, and what it is not.
        diagnostics_hint = "Paste this into a bug report. It contains versions, limits, figures about the room, and the latest errors, with names removed. It contains no links, no keys and nothing that anybody wrote. Read it before you share it.";
        /// The relay has no list.
        no_release = "This relay has no list of the page's files, so its page cannot be compared with a release.";
        /// It is not known whether it has one.
        release_unknown = "The list of the page's files could not be fetched. Open the settings again to try once more.";
    }
}

table! {
    /// How answers are generated.
    SamplingTexts {
        /// The heading of a part.
        heading = "Answers";
        /// The field for what is said before each conversation.
        instructions = "Instructions for every conversation";
        /// In the empty field.
        instructions_hint = "Be brief.";
        /// How much a model thinks before it answers.
        reasoning = "Reasoning";
        /// Whom the choice is for.
        reasoning_hint = "Only for models that support it";
        /// A choice: as much as the model does by itself.
        reasoning_usual = "The model's default";
        /// A choice: none, or as little as possible.
        reasoning_off = "Off";
        /// A choice.
        reasoning_low = "Low";
        /// A choice.
        reasoning_medium = "Medium";
        /// A choice.
        reasoning_high = "High";
        /// A choice: each question gets two answers.
        twice = "Two answers side by side";
        /// What it costs, and when both are the same.
        twice_hint = "Both are written at once, so each takes longer. At temperature 0 they are identical.";
        /// How even the choice is.
        temperature = "Temperature";
        /// What a value means.
        temperature_hint = "0 always takes the likeliest word";
        /// When an answer stops.
        length = "Maximum answer length, tokens";
        /// What to do then.
        length_hint = "Press Continue for more";
        /// Opens the other ones.
        more = "More";
        /// The parameter.
        top_k = "Top k";
        /// What it does.
        top_k_hint = "Keep the k most likely tokens; 0 keeps all";
        /// The parameter.
        top_p = "Top p";
        /// What it does.
        top_p_hint = "Keep the most likely tokens up to this total probability";
        /// The parameter.
        min_p = "Min p";
        /// What it does.
        min_p_hint = "Drop tokens below this share of the top probability";
        /// The parameter.
        repetition = "Repetition penalty";
        /// What a value means.
        repetition_hint = "1 turns it off";
        /// The parameter.
        seed = "Seed";
        /// What it does.
        seed_hint = "The same seed gives the same answer. Leave it empty for a new one each time.";
        /// The button.
        reset = "Reset to defaults";
    }
}

table! {
    /// Connections between devices past the relay.
    ConnectionsTexts {
        /// The heading of a part.
        heading = "Direct connections";
        /// A choice: if the relay is in a private network.
        private = "Automatic";
        /// A choice.
        always = "Always";
        /// A choice.
        never = "Never";
        /// What they are, and what they tell.
        hint = "Devices in a room send each other messages directly if that is faster than through the relay. To do so, they learn each other's network addresses. Automatic means: only if the relay is in a private network, for example at home. In a room that you host, Never applies to everyone.";
    }
}

table! {
    /// How one conversation is answered, if not like all others.
    OwnAnswersTexts {
        /// The heading of the drawer, and the button in the conversation's header.
        title = "Answers in this conversation";
        /// Above the fields.
        hint = "Changes here apply only to this conversation, from the next answer on. To use them for the last question, press Regenerate.";
        /// The field for what is said before this conversation.
        instructions = "Instructions for this conversation";
        /// The heading above them in a file.
        instructions_heading = "Instructions";
        /// The button that takes all of it back.
        use_usual = "Use the general settings";
        /// Chooses instructions and sampling that were saved.
        saved = "Saved characters";
        /// None of them is in use.
        none_chosen = "Choose one";
        /// The button that forgets the one in use.
        forget = "Forget";
        /// The field for a name, under which those of the conversation are saved.
        save_as = "Save these as a character";
        /// Its button.
        save = "Save";
        /// The mark in a conversation with other instructions than all others.
        instructions_differ = "Own instructions";
        /// The mark in a conversation with other sampling than all others.
        sampling_differs = "Own sampling";
        /// The mark in a conversation with both.
        both_differ = "Own instructions and sampling";
    }
}

table! {
    /// What this device can do.
    DeviceTexts {
        /// The field.
        name = "Name others see";
        /// The button before the first test.
        test = "Run test";
        /// The button afterwards.
        test_again = "Test again";
        /// The button meanwhile.
        testing = "Testing";
        /// WebGPU was not asked for.
        not_asked = "not checked yet";
        /// A GPU without a name.
        unknown = "unknown";
        /// An adapter that computes on the processor.
        software(name: Text) = "{ $name }, a software adapter: slow";
        /// It can.
        yes = "yes";
        /// It cannot.
        no = "no";
        /// The row of the adapter.
        gpu = "GPU";
        /// The row of 16-bit floats.
        half_floats = "16-bit floats";
        /// The row of subgroups.
        subgroups = "Subgroups";
        /// The row of the largest buffer.
        buffer = "Largest buffer";
        /// The row of the largest binding.
        binding = "Largest binding";
        /// The row of the bandwidth.
        speed = "Memory speed, measured";
        /// The row of the self-test.
        self_test = "Self-test";
        /// It was not run.
        not_run = "not run yet";
        /// It runs.
        running = "running";
        /// All kernels gave right results.
        passed(kernels: Number) = [one] "{ $kernels } kernel passed"
            [other] "{ $kernels } kernels passed";
        /// Some have substitutes.
        replaced(kernels: Text) = "slower kernels in place of { $kernels }";
        /// Some gave wrong results.
        failed(kernels: Text) = "wrong results from { $kernels }: this device cannot take part";
        /// It is asked.
        checking = "Checking what this device can do";
        /// Opens what helps.
        no_webgpu = "No WebGPU here, but you can still chat. How to turn it on";
        /// What helps.
        help_chrome = "In Chrome or Edge 113 or newer (121 on Android; 144 on Linux, with some GPUs), open chrome://gpu and look for WebGPU. If it is off, update the graphics driver.";
        /// What helps.
        help_others = "Safari has WebGPU since version 26. Firefox has it since version 141 on Windows and since version 147 on Macs with Apple silicon. In Firefox on Linux, open about:config and set dom.webgpu.enabled and gfx.webgpu.ignore-blocklist to true.";
        /// What helps.
        help_address = "Open this page over https or from localhost. Browsers hide the GPU from any other page.";
        /// A GPU without a name.
        unnamed = "An unnamed GPU";
        /// It has WebGPU and 16-bit floats.
        with_halves(adapter: Text) = "{ $adapter }: WebGPU works, with 16-bit floats";
        /// It has WebGPU without 16-bit floats.
        without_halves(adapter: Text) = "{ $adapter }: WebGPU works, without 16-bit floats";
        /// An adapter that computes on the processor.
        slow(adapter: Text) = "{ $adapter }, software adapter (slow)";
    }
}

table! {
    /// What the browser stores.
    StorageTexts {
        /// The heading of a part.
        heading = "Storage";
        /// The list is fetched.
        checking = "Checking what is stored here";
        /// How much is used.
        used(used: Bytes, quota: Bytes) = "{ $used } of the { $quota } that the browser allows.";
        /// The data is safe.
        persistent = "The browser keeps this data until you delete it.";
        /// The data is not safe.
        evictable = "The browser may delete this data when space runs low.";
        /// The list is empty.
        none = "No model is stored here yet.";
        /// The bar, for screen readers.
        bar = "Storage in use";
        /// A whole model.
        complete(size: Bytes) = "{ $size }, complete";
        /// Some of a model.
        part(size: Bytes, whole: Bytes) = "{ $size } of { $whole }";
        /// The button, for screen readers.
        delete(name: Text) = "Delete { $name }";
        /// Asked before.
        confirm_delete(name: Text, size: Text) = "Delete { $name } ({ $size }) from this browser? It is downloaded again when next used.";
    }
}

table! {
    /// Access tokens for files that a server gives only to those it knows.
    AccessTexts {
        /// The heading of a part.
        heading = "Access tokens";
        /// What they are for, and who gets them.
        hint = "Some servers give a file only to people they know. Log in there with a browser, accept the model's licence if it has one, and create an access token that may only read. The token is kept in this browser and sent to its server only, never to the room: every device that downloads the file needs a token of its own.";
        /// A field.
        server = "Server";
        /// A field.
        token = "Access token";
        /// The button.
        keep = "Keep this token";
        /// The button beside a server.
        forget(server: Text) = "Forget the access token of { $server }";
        /// Asked before that.
        confirm_forget(server: Text) = "Forget the access token of { $server }?";
        /// What was entered is none.
        bad_token = "An access token consists of letters, digits and signs, without blanks. Copy it again.";
        /// What was entered is none.
        bad_server = "This is not the name of a server. Enter a name such as huggingface.co, or a link to a file there.";
        /// There are enough.
        too_many = "Too many servers have a token here. Forget one that you no longer need.";
    }
}
