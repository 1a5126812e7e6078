//! The catalogue of well-known models.

table! {
    /// The catalogue of well-known models in the host dialog.
    CatalogTexts {
        /// The heading.
        heading = "Well-known models";
        /// The list is fetched.
        loading = "Fetching the list";
        /// The list is missing or broken.
        unreadable = "The list of well-known models cannot be read. An address works without it.";
        /// How many match, how many of them fit.
        found(fitting: Count, all: Count) = "{ $fitting } of { $all } fit the memory lent.";
        /// None matches.
        none = "No model matches. Try other words.";
        /// An architecture that was tested.
        tested = "Runs here: tested with random weights of its shape";
        /// The file is examined before it is loaded.
        checking = "Checking the file…";
        /// The address has no file.
        gone = "This address has no file any more, so choose another model.";
        /// The server refuses.
        forbidden = "The server does not give this file to everybody, so choose another model.";
        /// No answer, or a server that other sites' pages may not read from.
        unreachable = "The server does not answer or does not let other pages read this file, so choose another model.";
        /// The server does not send parts of files.
        no_ranges = "The server does not send parts of this file, which a room needs, so choose another model.";
        /// The file is of another kind.
        not_gguf = "This address holds something other than a GGUF file, so choose another model.";
        /// Other bytes than listed.
        other_bytes(found: Count, listed: Count) = "This file has { $found } bytes and the list says { $listed }, so it may be another version.";
        /// Another licence than listed.
        other_licence(found: Text, listed: Text) = "This file's licence is { $found } and the list says { $listed }.";
        /// Other bytes and another licence.
        other_both(found: Count, listed: Count, licence: Text, listed_licence: Text) = "This file has { $found } bytes and the list says { $listed }, and its licence is { $licence } where the list says { $listed_licence }.";
        /// A model that does not fit.
        needs_more(short: Bytes) = "{ $short } more memory needed";
        /// A model that fits.
        fits = "Fits";
        /// The same, with a bound for one device.
        fits_at(pace: Pace) = "Fits · at most about { $pace } on this device alone";
        /// The button that keeps an address.
        keep = "Keep this address";
        /// The heading of the kept addresses.
        own = "Your addresses";
        /// The button that forgets one, for screen readers.
        forget(name: Text, place: Text) = "Forget { $name } of { $place }";
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
        filter_hint = "Name, maker or licence";
        /// The choice of a purpose.
        good_for = "Good for";
        /// All purposes.
        everything = "Everything";
    }
}
