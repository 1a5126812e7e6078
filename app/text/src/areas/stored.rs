//! `potluck-node pull`, `list`, `rm` and `show`: models in the cache and in files.

table! {
    /// What the terminal says about stored models.
    StoredTexts {
        /// A download is complete. The model is what to write behind `run`.
        pulled(name: Text, size: Bytes, model: Text) = "{ $name } is stored ({ $size }). To use it: potluck-node run { $model }";
        /// Nothing was missing.
        was_there(name: Text, model: Text) = "{ $name } was stored already. To use it: potluck-node run { $model }";
        /// A download was stopped.
        kept_part = "What was downloaded is kept: the same command goes on from there.";
        /// A download made no progress.
        no_progress(seconds: Count) = "Nothing has arrived for { $seconds } s. What was downloaded is kept: the same command goes on from there. --timeout sets how long to wait.";
        /// The argument of `pull` is not a link.
        no_link(text: Text) = "{ $text } is not a link. Give the address of a GGUF file, or a repository such as hf.co/OWNER/REPO:Q4_K_M";
        /// There is nothing to list.
        nothing = "No models are stored. potluck-node pull LINK stores one.";
        /// Headings of the list: a model's name.
        column_name = "NAME";
        /// The first digits of a model's id.
        column_id = "ID";
        /// How many bytes are stored.
        column_size = "SIZE";
        /// Whether everything is stored.
        column_stored = "STORED";
        /// Where it came from.
        column_link = "LINK";
        /// Label of an address.
        link = "link";
        /// Everything is stored.
        complete = "complete";
        /// So many of all bytes are stored, in hundredths.
        part(percent: Number) = "{ $percent }%";
        /// A stored model was deleted.
        deleted(name: Text, size: Bytes) = "Deleted { $name } ({ $size }).";
        /// No stored model is called so.
        unknown(text: Text) = "No stored model is called { $text }. potluck-node list shows what is stored.";
        /// No stored model is called so, and no file.
        no_model(text: Text) = "There is no file { $text }, and no stored model is called so. potluck-node list shows what is stored; pull LINK stores a model.";
        /// Several stored models are called so.
        several(text: Text, ids: Text) = "Several stored models are called { $text }. Give the id of one: { $ids }.";
        /// The model was stored from an address that was not kept.
        link_not_kept(name: Text) = "The link of { $name } was not stored, because it may hold a secret. Give the link itself.";
    }
}
