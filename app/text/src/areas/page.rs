//! The page itself.

table! {
    /// What the page has to say about itself.
    NoticeTexts {
        /// Page and worker come from two builds.
        versions_differ = "Parts of this page are of different versions. Reload the page.";
        /// The worker was replaced in the middle of a benchmark.
        bench_interrupted = "Part of this page restarted during the benchmark. Measure again.";
        /// A tool started another one.
        bench_replaced = "Another benchmark was started.";
        /// Somebody stopped it.
        bench_stopped = "The benchmark was stopped.";
        /// The browser has no database for this page.
        no_storage = "This browser does not store data for this page. Conversations are lost when you close the tab.";
        /// The browser refused a write.
        not_stored = "The browser refused to store this conversation. Copy what you need.";
        /// The browser refused to delete.
        not_deleted = "The conversation could not be deleted. Try again.";
        /// The open conversation was deleted in another tab.
        deleted_elsewhere = "Another tab deleted this conversation.";
        /// Two tabs went on in one conversation, and this one's is a copy now.
        parted = "Another tab continued the same conversation. This tab's version is now a copy.";
        /// The title of such a copy.
        copy(title: Text) = "{ $title } (copy)";
        /// The wanted room is hosted by another tab.
        hosted_elsewhere = "Another tab in this browser is hosting this room now.";
        /// The room that was to be hosted again has ended, in another tab or by itself.
        room_ended = "This room has ended. It cannot be opened again.";
        /// The browser refused the clipboard.
        cannot_copy = "The browser does not allow this page to copy. Select the text and copy it yourself.";
    }
}
