//! The catalogue of well-known models.

table! {
    /// The catalogue of well-known models in the host dialog.
    CatalogTexts {
        /// The heading.
        heading = "Well-known models";
        /// The list is fetched.
        loading = "Fetching the list";
        /// The list is missing or broken.
        unreadable = "The list of well-known models could not be loaded. You can still enter the address of a GGUF file.";
        /// How many match, how many of them fit.
        found(fitting: Count, all: Count) = [one] "{ $fitting } of { $all } fits in the memory that you lend."
            [other] "{ $fitting } of { $all } fit in the memory that you lend.";
        /// None matches.
        none = "No model matches. Try other words.";
        /// An architecture that was tested.
        tested = "Supported: a model with the same architecture was tested, but not this exact file";
        /// The file is examined before it is loaded.
        checking = "Checking the file…";
        /// The address has no file.
        gone = "There is no file at this address any more. Choose another model.";
        /// The server refuses.
        forbidden = "This file is not public. If you have an access token of its server, enter it in the settings. Otherwise choose another model.";
        /// No answer, or a server that other sites' pages may not read from.
        unreachable = "The server does not answer, or does not let other web sites download this file. Choose another model.";
        /// The server does not send parts of files, or its answer is an error.
        no_ranges = "A room downloads a file in parts, and this server did not send a part. Choose another model.";
        /// The file is of another kind.
        not_gguf = "The file at this address is not a GGUF file. Choose another model.";
        /// Other bytes than listed.
        other_bytes(found: Count, listed: Count) = "This file has { $found } bytes and the list says { $listed }, so it may be another version.";
        /// Another licence than listed.
        other_licence(found: Text, listed: Text) = "This file's licence is { $found } and the list says { $listed }.";
        /// Other bytes and another licence.
        other_both(found: Count, listed: Count, licence: Text, listed_licence: Text) = "This file differs from the list: { $found } bytes, not { $listed }, and licence { $licence }, not { $listed_licence }.";
        /// A model that does not fit.
        needs_more(short: Bytes) = "{ $short } more memory needed";
        /// A model that fits.
        fits = "Fits";
        /// The same, with a bound for one device.
        fits_at(pace: Pace) = "Fits · up to about { $pace } on this device alone";
        /// The button that keeps an address.
        keep = "Keep this address";
        /// The heading of the kept addresses.
        own = "Your addresses";
        /// The button that forgets one, for screen readers.
        forget(name: Text, place: Text) = "Forget { $name } from { $place }";
        /// What a model is good for.
        chat = "Chat";
        /// What a model is good for.
        code = "Code";
        /// What a model is good for.
        reasoning = "Reasoning";
        /// What a model is good for.
        languages = "Many languages";
        /// The button that shows the rest.
        show_all(all: Number) = "Show all { $all }";
        /// The field for words.
        filter = "Find a model";
        /// In the empty field.
        filter_hint = "Name, purpose or licence";
        /// The choice of a purpose.
        good_for = "Good for";
        /// All purposes.
        everything = "Everything";
    }
}
