//! `potluck-node verify`: whether a relay's page is that of a release.

table! {
    /// What `potluck-node verify` says about the page that a relay serves.
    VerifyTexts {
        /// A file, while it is fetched.
        checking(done: Count, all: Count) = "Checked { $done } of { $all } files";
        /// A file whose content is another one.
        differs(path: Text) = "{ $path } differs";
        /// A file that the relay does not serve.
        missing(path: Text, status: Number) = "{ $path } is not there (status { $status })";
        /// A file that is longer than any file of the page.
        too_long(path: Text) = "{ $path } is too long";
        /// An address in index.html that is no file of the list.
        outside(address: Text) = "index.html uses { $address }, which is not in the list";
        /// A file that only the relay's own list names.
        extra(name: Text) = "{ $name } is in the relay's list and not in the release's";
        /// The end if anything differs. The lines before it say what.
        not_the_release(relay: Text) = "The page at { $relay } differs from the release. Do not open it.";
        /// The same where nothing but the relay's own list is known.
        not_its_own(relay: Text) = "The page at { $relay } does not match its own list. Do not open it.";
        /// The relay's list has another hash than the release's.
        other_release(relay: Text, hash: Text) = "The page at { $relay } is another release, { $hash }. If you did not expect that, do not open it.";
        /// The page is the release's.
        same(relay: Text, files: Count) = "{ $relay } serves the { $files } files of this release.";
        /// The page matches the relay's own list, which proves little.
        consistent(relay: Text, files: Count) = "{ $relay } serves the { $files } files of its own list. That alone proves nothing: compare the hash with that of a release you trust, or run this again with --release and that hash.";
        /// The relay serves no list.
        no_list(relay: Text, status: Number) = "{ $relay } has no list of its page's files (status { $status }), so its page cannot be checked.";
        /// What the relay serves as the list is none.
        bad_list(relay: Text, fault: Text) = "The file list of { $relay } cannot be read ({ $fault }), so its page cannot be checked.";
        /// The file of --sums cannot be read.
        unreadable(path: Text, error: Text) = "The list { $path } cannot be read: { $error }.";
        /// The file of --sums is no list.
        no_sums(path: Text, fault: Text) = "{ $path } is not a release's list of hashes ({ $fault }).";
        /// The relay sends without an end.
        too_slow(relay: Text, seconds: Count) = "{ $relay } has not sent its whole page in { $seconds } s, so the page was not checked. Try again.";
        /// A line of a list that cannot be read.
        bad_line(line: Number) = "line { $line } is not a SHA-256 hash and a file's name";
        /// A list with too many lines, or none.
        bad_length = "it has no lines, or too many";
        /// A list without the page itself.
        no_index = "it does not name index.html";
        /// A list that names a file twice.
        twice(name: Text) = "it names { $name } twice";
    }
}
