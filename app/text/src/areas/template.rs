//! How the prompts of a model without a usable chat template are written.

table! {
    /// What is wrong with a file's chat template, as a sentence, and what is used instead, as the sentence after it.
    TemplateTexts {
        /// There is none.
        missing = "The model's file has no chat template: it does not say how to format a chat.";
        /// It writes nothing.
        blank = "The chat template of the model's file is empty.";
        /// It has another type.
        not_text = "The chat template of the model's file is not text.";
        /// It does not write what a person says.
        question_lost = "The chat template of the model's file leaves out the question.";
        /// It is no template, or uses what is not known; the reason is the template engine's.
        unreadable(reason: Text) = "The chat template of the model's file cannot be used ({ $reason }).";
        /// It refuses a plain question, in its own words.
        refuses(reason: Text) = "The chat template of the model's file refuses a plain question ({ $reason }).";
        /// It does not come to an end.
        runaway = "The chat template of the model's file runs too long or writes too much.";
        /// Another template of the file is used, with its name.
        named(name: Text) = "Instead, the file's template “{ $name }” is used.";
        /// The vocabulary has tokens for turns, of which one is named.
        turns(token: Text) = "The file's vocabulary contains { $token }, so prompts use the chat format that goes with that token. Usually there is nothing for you to do.";
        /// A base model.
        plain = "Prompts are written as a dialog with “User:” and “Assistant:”. For better answers, choose a version of the model made for chat (“instruct”).";
    }
}
