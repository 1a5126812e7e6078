//! The dialog behind "Host a model".

table! {
    /// The dialog, and where a model comes from.
    HostTexts {
        /// The heading of the dialog.
        title = "Host a model";
        /// The tabs, for screen readers.
        origin = "Where the model comes from";
        /// A tab: the relay's models.
        tab_relay = "This relay";
        /// A tab: an address.
        tab_link = "Link";
        /// A tab: a file.
        tab_device = "This device";
        /// The box to tick.
        list_it = "List this room on this relay's front page";
        /// The button while the room opens.
        opening = "Opening the room…";
        /// The button.
        open = "Open the room";
        /// The button beside a doubt.
        choose_another = "Choose another";
        /// The button beside a doubt.
        load_anyway = "Load anyway";
        /// The button for a file.
        open_file = "Open or drop a GGUF file";
        /// A path that names a folder was given for a file.
        folder(path: Text) = "{ $path } is a folder: choose the .gguf file in it.";
        /// What becomes of the file.
        file_stays = "The file is not stored on the relay. Lending devices download their parts from this tab and keep them. They could also download the whole file.";
        /// The file has another name.
        no_gguf_file = "This is not a GGUF file: its name must end in .gguf.";
        /// The address is of another kind.
        no_gguf_address = "This does not look like a GGUF file. Use the link of a file that ends in .gguf, or of a repository with such files.";
        /// While a repository's list of files is fetched.
        listing(repository: Text) = "Looking for the files of { $repository } …";
        /// Above a repository's files.
        files_of(repository: Text) = "Choose a file from { $repository }";
        /// A repository's list of files cannot be had.
        no_list(repository: Text) = "The files of { $repository } cannot be listed. Check the name, and check that the repository is public.";
        /// A repository's link names a quantization that is not there.
        not_in_list(repository: Text, wanted: Text) = "{ $repository } has no file for { $wanted }. Choose another of its files.";
        /// A repository without models that run here.
        no_models(repository: Text) = "{ $repository } has no GGUF files. Look for a repository whose name ends in GGUF.";
        /// The field for an address.
        address = "Address of a GGUF file";
        /// Below the field.
        address_hint = "If the model is split into several files, give the address of the first one. Lending devices download their parts from the server at this address, which sees their IP addresses.";
        /// The list is fetched.
        asking_relay = "Asking the relay for its models";
        /// The list is empty.
        relay_has_none = "The relay serves no models. Start it with “--models DIR”, or use a link or a file on this device.";
        /// The list, for screen readers.
        models = "Model";
        /// The model that is built in.
        bundled = "Ready at once. Tiny, so good for small talk only.";
        /// The relay computes the hash of a file.
        hashing(percent: Number) = "The relay is checking the file: { $percent }%";
        /// Experts that work on a token, and all of a block.
        experts(used: Number, all: Number) = "{ $used } of { $all } experts";
        /// The longest context of a model, and a choice.
        context(tokens: Count) = "{ $tokens } tokens of context";
        /// The file names none.
        no_licence = "no licence stated";
    }
}

table! {
    /// The options below the model.
    OptionsTexts {
        /// Below the field for this device's name.
        name_hint = "A room that is listed is called so, too.";
        /// What few people change, folded.
        more = "More options: sharing, context, precision";
        /// How the work is shared.
        share = "Share the work";
        /// The type of the KV cache.
        cache = "Memory for the conversation";
        /// The default.
        cache_usual = "Automatic: the most exact that fits, at least 8 bits (q8_0)";
        /// How products are computed.
        arithmetic = "Precision";
        /// The default.
        arithmetic_usual = "Automatic: fast (8-bit integers) on a GPU, otherwise exact";
        /// Positions of context.
        context = "Context length";
        /// What it is.
        context_hint = "How much text fits into all conversations together. More takes more memory.";
        /// A choice of it.
        tokens(tokens: Count) = "{ $tokens } tokens";
    }
}

table! {
    /// Whether a model fits the memory lent.
    VerdictTexts {
        /// All is well.
        fits = "Fits in the memory that you lend.";
        /// It fits with a smaller type of the KV cache.
        fits_with(cache: Text) = "Fits in the memory that you lend, with “Memory for the conversation” at { $cache }.";
        /// This device lends nothing.
        needs(needed: Bytes) = "Needs { $needed } from other devices.";
        /// A smaller type of the KV cache helps.
        short_cache(short: Bytes, cache: Text) = "{ $short } more memory needed. Lend more, add a device, or set “Memory for the conversation” to { $cache }.";
        /// Less context helps.
        short_context(short: Bytes, context: Number) = "{ $short } more memory needed. Lend more, add a device, or limit the context to { $context } tokens.";
        /// Only more memory helps.
        short(short: Bytes) = "{ $short } more memory needed. Lend more, or add a device.";
        /// The sum: state and KV cache stand in the middle, each with a plus before it.
        sum(weights: Bytes, parts: Text, scratch: Bytes, needed: Bytes) = "Weights { $weights }{ $parts } + working memory { $scratch } = about { $needed }.";
        /// The sum while the KV cache is not known.
        least_sum(weights: Bytes, parts: Text, scratch: Bytes, needed: Bytes) = "Weights { $weights }{ $parts } + working memory { $scratch } = at least { $needed }.";
        /// A part of the sum: what recurrent blocks remember.
        state(state: Bytes) = "state { $state }";
        /// A part of the sum.
        cache(cache: Bytes, kind: Text) = "cache { $cache } ({ $kind })";
        /// A part of the sum.
        unknown_cache(tokens: Count) = "cache for { $tokens } tokens";
        /// A bound for one device.
        alone(pace: Pace) = "Up to about { $pace } on this device alone.";
        /// The model does not fit.
        anyway = "You can open the room anyway. It waits until enough devices have joined.";
        /// The button.
        use_cache(kind: Text) = "Use { $kind } for the conversation";
        /// The button.
        use_context(tokens: Count) = "Use { $tokens } tokens of context";
    }
}
