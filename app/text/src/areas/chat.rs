//! The chat: answers, and the message that is being written.

table! {
    /// How an answer of the chat goes.
    AnswerTexts {
        /// The button above code whose lines are too long.
        wrap = "Wrap lines";
        /// The button that saves code as a file.
        save_code = "Save as a file";
        /// On its way to the host.
        sending = "Sending your question.";
        /// Only one question is before it.
        next = "You are next.";
        /// Place in the queue.
        queued(place: Number) = "Others are asking too. You are number { $place }.";
        /// How much of the prompt is read.
        reading(done: Count, all: Count) = "Reading your prompt: { $done } of { $all } tokens.";
        /// Follows the reason why the room recovers.
        continues = "The answer continues in a moment.";
        /// Somebody pressed Stop.
        stopped = "Stopped.";
        /// The limit was reached.
        length = "The answer reached its length limit.";
        /// The conversation has no room for another token.
        context_full = "This conversation is as long as this room allows: its context is full. Start a new conversation.";
        /// The page was reloaded meanwhile.
        interrupted = "A reload interrupted this answer. The text so far is still here.";
        /// An answer longer than the page keeps.
        too_long = "The answer became too long for this page and was cut off. Ask for a shorter one.";
        /// The host was opened again and forgot it.
        question_lost = "The host started again and lost this question. Ask again.";
        /// This page's worker was replaced.
        worker_restarted = "Part of this page restarted and the answer stopped. Press Continue.";
        /// A mark below an answer: the host has computed a part of another answer again, and found a device wrong.
        doubtful = "A device that computed part of this answer was later caught sending wrong numbers. The answer may be wrong: check it, or ask again.";
        /// In a terminal: what stands above does not count.
        void = "Ignore the text so far. The answer starts over.";
        /// In a terminal, where answers before this one cannot be marked.
        earlier_doubtful = "A device that computed part of an earlier answer was caught sending wrong numbers. That answer may be wrong: check it, or ask again.";
        /// The model has thought before its answer.
        thought = "Reasoning";
        /// The same, with how long it took.
        thought_for(took: Millis) = "Reasoned for { $took }";
        /// It thinks.
        thinking = "Thinking";
        /// The model has called a function. Nothing runs it.
        called = "The model called a function; Potluck runs no functions";
        /// Its drawing took too long. A button follows.
        as_plain = "Formatting this answer froze the page, so it is shown as plain text.";
        /// The button.
        draw_again = "Try formatting it again";
        /// The button.
        regenerate = "Regenerate";
        /// The button that continues an answer.
        go_on = "Continue";
        /// How long it took to begin.
        first_token(after: Millis) = "first token after { $after }";
        /// How long it was expected to take.
        first_token_expected(after: Millis) = "first token expected after { $after }";
        /// How long it is.
        tokens(tokens: Count) = [one] "{ $tokens } token"
            [other] "{ $tokens } tokens";
        /// A ticked line of a list, for screen readers.
        task_done = "Done";
        /// A line of a list that is not ticked.
        task_open = "To do";
        /// A table in an answer, for screen readers.
        table = "Table in the answer";
    }
}

table! {
    /// What can be done with a question.
    TurnTexts {
        /// The button that copies a question.
        copy = "Copy question";
        /// The button that opens the field in which a question is changed.
        edit = "Edit question";
        /// The button that deletes a question with its answer.
        delete = "Delete question and answer";
        /// Asked before it is deleted.
        confirm_delete = "Delete this question and its answer permanently? The rest of the conversation stays.";
        /// The field, for screen readers.
        field = "Your question";
        /// What becomes of the question that is changed.
        stays = "The former question and what followed stay as another version.";
        /// Between the turns that are left out and those that are sent.
        sent_from = "The model no longer sees the turns above.";
        /// The button that takes that back.
        send_again = "Send it again";
        /// The button that sends the changed question.
        ask = "Ask again";
    }
}

table! {
    /// Steps through versions of a question or an answer.
    VersionsTexts {
        /// The buttons together, for screen readers.
        questions = "Versions of the question";
        /// The buttons together, for screen readers.
        answers = "Versions of the answer";
        /// The button, for screen readers.
        former_question = "Former question";
        /// The button, for screen readers.
        next_question = "Next question";
        /// The button, for screen readers.
        former_answer = "Former answer";
        /// The button, for screen readers.
        next_answer = "Next answer";
        /// Which version is shown, between the buttons.
        place(shown: Count, all: Count) = "{ $shown }/{ $all }";
        /// The same for screen readers.
        said(shown: Count, all: Count) = "Version { $shown } of { $all }";
        /// The button that shows two answers at once.
        compare = "Compare with another version";
        /// The same where there is one answer so far.
        another_beside = "Write another answer beside this one";
        /// What stands there, for screen readers.
        beside = "Another answer to the same question";
        /// The button that keeps the answer beside.
        use_this = "Use this answer";
        /// The button that shows one answer again.
        close_beside = "Close the comparison";
    }
}

table! {
    /// Text files that go along with a question.
    AttachTexts {
        /// The button, and the place to drop files.
        title = "Attach text files";
        /// The files of a question that is written, for screen readers.
        files = "Attached files";
        /// About how many tokens a file has.
        tokens(tokens: Count) = "about { $tokens } tokens";
        /// The button that takes a file out again.
        remove(name: Text) = "Remove { $name }";
        /// The name of a file that has too many bytes, and how many all files of a question may have.
        too_large(name: Text, most: Bytes) = "{ $name } is too large: the files of a message may have { $most } together.";
        /// The name of a file that is something else.
        no_text(name: Text) = "{ $name } is not a text file. Copy its text and paste it into the message.";
        /// The most files of a message.
        too_many(most: Count) = "A message can have { $most } files. Send these first, or remove one.";
        /// The name of a file, or of a folder.
        unreadable(name: Text) = "{ $name } cannot be read. If it is a folder, choose the files in it.";
    }
}

table! {
    /// What is wrong with the message in the composer.
    ComposerTexts {
        /// Estimated tokens of the message, and how many fit.
        too_long(tokens: Count, room: Count) = "This message has about { $tokens } tokens, and the conversation has room for { $room }. Shorten it.";
        /// The field for a message.
        label = "Message";
        /// In the empty field.
        placeholder = "Write a message";
        /// The button.
        send = "Send";
        /// The button while an answer is written.
        stop = "Stop";
        /// The button that lets the message wait for the answer that is written.
        ask_next = "Ask next";
        /// The messages that wait, for screen readers.
        waiting = "Questions that wait";
        /// The same, said when that changes.
        wait(questions: Count) = [one] "{ $questions } question waits for the answer."
            [other] "{ $questions } questions wait for the answer.";
        /// Nothing more can wait.
        too_many_wait = "Eight questions already wait in this tab. Take one back, or wait for the answer.";
        /// Before a message that waits.
        asked_next = "Next:";
        /// The button that puts a message that waits back into the field.
        take_back = "Take back";
        /// Tokens of the context that the conversation takes.
        context(used: Count, all: Count) = "Context { $used } of { $all }";
        /// The same, or those of the first message, before the host has counted them.
        context_estimated(used: Count, all: Count) = "Context about { $used } of { $all }";
        /// The same, and about how many the message has that is written.
        context_with(used: Count, message: Count, all: Count) = "Context { $used } + about { $message } of { $all }";
        /// The conversation has no room for the message and an answer. Buttons follow.
        full = "This conversation is almost full.";
        /// The button that begins a conversation with the message that is written.
        anew_with_message = "New conversation with this message";
        /// The button that begins a conversation with the question that was asked last.
        anew_with_last = "New conversation with the last question";
        /// The button after which the oldest turns are not sent to the model any more.
        leave_out = "Leave the oldest turns out";
    }
}

table! {
    /// Why a question cannot be sent yet.
    NotYetTexts {
        /// The model could not be opened.
        no_model = "This room could not open its model. The host can choose another one.";
        /// Dialling.
        connecting = "Connecting to the room.";
        /// The connection is lost.
        reconnecting = "The connection to the relay is lost. Trying again.";
        /// Requests reach the relay and sockets do not.
        sockets_refused = "This browser cannot open a live connection to the relay. Trying again.";
        /// The host is asked.
        waiting_for_host = "Waiting for the host.";
        /// This host opens its model.
        opening_model = "The room is opening its model.";
        /// The room is not seen yet.
        joining = "Joining the room.";
        /// Memory is missing, and the host has not said how much.
        waiting = "The room is waiting for more devices.";
        /// Devices load; nothing is known of how far.
        loading = "Devices are loading. You can type meanwhile.";
        /// Devices load.
        loading_share(percent: Number) = "Devices are loading: { $percent }%. You can type meanwhile.";
    }
}

table! {
    /// The chat around its answers.
    ChatTexts {
        /// The part of the page with the chat.
        heading = "Chat";
        /// The button that opens the list of conversations.
        all = "Chats";
        /// The button that starts a conversation.
        start = "New";
        /// A conversation without a title, and the button that starts one.
        untitled = "New conversation";
        /// The open conversation, for screen readers.
        turns = "Conversation";
        /// Above an empty conversation.
        welcome = "What shall we cook up?";
        /// What happens with a question.
        welcome_hint = "Ask something. The devices at the table compute the answer together. The host's device sees your questions and the answers. This page saves them only in this browser.";
        /// A question to begin with.
        try_story = "Tell me a short story about a soup.";
        /// A question to begin with.
        try_joke = "Tell me a joke.";
        /// A question to begin with.
        try_potluck = "What could I bring to a potluck?";
        /// The button that scrolls down.
        to_end = "Jump to the end";
        /// Before a question, for screen readers.
        asked = "You";
        /// Before an answer, for screen readers.
        answered = "Answer";
        /// Where conversations are read without a room: the link to the front page.
        to_door = "Front page";
        /// There, before a conversation is chosen.
        none_chosen = "Choose a conversation under “Chats”.";
        /// There, in place of the field for a message.
        only_read = "You can read your conversations here. To continue one, open or join a room on the front page.";
    }
}

table! {
    /// The list of conversations.
    ConversationsTexts {
        /// The heading of the list.
        title = "Chats";
        /// The list is empty.
        none = "Conversations appear here as soon as you ask something.";
        /// The field that looks for words in all of them.
        search = "Search";
        /// How many have them.
        found(conversations: Count) = [one] "{ $conversations } conversation found"
            [other] "{ $conversations } conversations found";
        /// The button that shows more of the list.
        show(older: Count) = [one] "Show { $older } older conversation"
            [other] "Show { $older } older conversations";
        /// Asked before one is deleted.
        confirm_delete(title: Text) = "Delete “{ $title }” permanently?";
        /// The button that keeps one at the top of the list, for screen readers. It is pressed or not.
        pin(title: Text) = "Pin { $title }";
        /// The button, for screen readers.
        rename(title: Text) = "Rename { $title }";
        /// The button, for screen readers.
        delete(title: Text) = "Delete { $title }";
        /// The field for another title.
        new_title = "New title";
        /// The button beside the field.
        rename_now = "Rename";
    }
}

table! {
    /// When a conversation was last changed: headings in their list.
    PeriodTexts {
        /// Before all others: those that stay at the top.
        pinned = "Pinned";
        /// The same day.
        today = "Today";
        /// The day before.
        yesterday = "Yesterday";
        /// The five days before that.
        week = "Last 7 days";
        /// A month of a year.
        january(year: Number) = "January { $year }";
        /// A month of a year.
        february(year: Number) = "February { $year }";
        /// A month of a year.
        march(year: Number) = "March { $year }";
        /// A month of a year.
        april(year: Number) = "April { $year }";
        /// A month of a year.
        may(year: Number) = "May { $year }";
        /// A month of a year.
        june(year: Number) = "June { $year }";
        /// A month of a year.
        july(year: Number) = "July { $year }";
        /// A month of a year.
        august(year: Number) = "August { $year }";
        /// A month of a year.
        september(year: Number) = "September { $year }";
        /// A month of a year.
        october(year: Number) = "October { $year }";
        /// A month of a year.
        november(year: Number) = "November { $year }";
        /// A month of a year.
        december(year: Number) = "December { $year }";
    }
}

table! {
    /// Conversations as files.
    TransferTexts {
        /// The heading, which unfolds the rest.
        title = "Export and import";
        /// What the buttons do.
        export_hint = "Export the open conversation. Only Potluck’s own form has all versions.";
        /// The button for a file that people read.
        markdown = "Markdown";
        /// The button for a file that Potluck reads.
        own = "Potluck (JSON)";
        /// The button for a file that programs read.
        messages = "OpenAI messages (JSON)";
        /// The field for a file.
        import = "Import conversations";
        /// What can be imported.
        import_hint = "Exports of Potluck, of ChatGPT and Claude (conversations.json) and of Open WebUI, and OpenAI messages.";
        /// How many conversations came from a file.
        imported(conversations: Count) = [one] "{ $conversations } conversation was imported."
            [other] "{ $conversations } conversations were imported.";
        /// How many others there are.
        unreadable(conversations: Count) = [one] "{ $conversations } other conversation of the file cannot be read."
            [other] "{ $conversations } other conversations of the file cannot be read.";
        /// In place of a picture or a file of another program's conversation.
        not_text = "(not text)";
        /// The same, where its name is known.
        not_text_named(name: Text) = "(not text: { $name })";
        /// The button for a file that browsers show.
        page = "Web page (HTML)";
        /// A file that is not read.
        too_large(limit: Bytes) = "This file is too large: files of up to { $limit } can be imported, with up to 5,000 turns a conversation.";
        /// A file that is not read.
        not_ours = "This file has no conversation that can be read. Choose an export of Potluck (.potluck.json), ChatGPT or Claude (conversations.json) or Open WebUI, or OpenAI messages.";
        /// A file that is not read.
        newer = "A newer version of Potluck exported this conversation. Reload this page, or ask whoever runs the relay to update it.";
        /// A file that is not read.
        broken = "This file is damaged. Export the conversation once more, and choose the new file.";
        /// A file that is not read.
        empty = "This file has no question. Choose another one.";
        /// A conversation from a file without a title.
        untitled = "Imported conversation";
    }
}

table! {
    /// What keys do.
    KeysTexts {
        /// The heading of the list of keys.
        title = "Keyboard";
        /// What Enter does.
        send = "Send the message, or let it wait while an answer is written";
        /// What Shift + Enter does.
        line = "Start a new line";
        /// What Escape does.
        stop = "Stop the answer, or close the dialog";
        /// What ? does.
        list = "Show this list";
    }
}
