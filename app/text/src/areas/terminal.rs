//! The command line. Who reads it has a shell, no page: what to do next is an option or a command.

table! {
    /// What `potluck-node` prints besides answers and links.
    TerminalTexts {
        /// No verb was given.
        no_verb = "Say what to do, for example run, host or join. potluck-node --help lists and explains all commands.";
        /// Follows what is wrong with the arguments of a verb.
        see_help(verb: Text) = "potluck-node { $verb } --help lists the options.";
        /// Follows what is wrong where no command can be made out.
        see_commands = "potluck-node --help lists the commands.";
        /// The manual page of a command that there is not.
        no_command(command: Text) = "There is no command { $command }. potluck-node --help lists the commands.";
        /// The operating system lets no tasks run.
        cannot_start(error: Text) = "The program cannot start: { $error }.";
        /// Standard output cannot be written.
        cannot_write(error: Text) = "The output cannot be written: { $error }.";
        /// Nothing says what to ask, and nobody is at the terminal.
        no_question = "There is no question. Give one with --prompt or on standard input, or start the program at a terminal to chat.";
        /// A chat begins.
        chat_welcome = "Ask the model something. /help lists the commands.";
        /// What a chat at the terminal knows.
        chat_help = "/clear begins a new conversation, /bye ends the chat. Three quotation marks before and behind a question let it have several lines. Ctrl-C stops the program.";
        /// A word that looks like a command.
        chat_unknown(command: Text) = "There is no command { $command } here. /help lists the commands.";
        /// The node ended by a fault of its own.
        node_ended = "The node stopped working. Start potluck-node again, and report it if it stops again.";
        /// The first call.
        calling_relay = "Connecting to the relay.";
        /// The relay is called again, with what was heard of the failed call.
        relay_silent(cause: Text) = "The relay does not answer ({ $cause }). Trying again.";
        /// A model on this disk goes with this program.
        deputy_needs_source = "--deputy needs a model of the relay or a link: a file on this disk is of no use to another device once this program has ended.";
        /// The host is lost, and this program was its deputy.
        took_over = "The host is gone. This device hosts the room now.";
        /// Another device took over from this host.
        stepped_down = "Another device hosts this room now. This device takes part in it.";
        /// A listed room, whose host asks nobody.
        visible_admits_nobody = "The relay lists the room, but nobody can join it from the list: joining from the list needs the host's approval, and this program cannot ask for it. Send the link to those who may come in.";
        /// In place of what was heard of a failed call, while the first one goes on.
        nothing_heard = "no reply";
        /// The host is not there, or has not let this device in yet.
        waiting_for_host = "Waiting for the host.";
        /// Why the room runs as it does, and how long a token will take.
        token_expected(reason: Text, millis: Rounded) = "{ $reason } Expect about { $millis } ms per token.";
        /// How much of the prompt is read.
        reading(done: Count, all: Count) = "Reading the prompt: { $done } of { $all } tokens";
        /// The same with its rate.
        reading_at(done: Count, all: Count, rate: Pace) = "Reading the prompt: { $done } of { $all } tokens · { $rate }";
        /// Place in the queue.
        queued(place: Number) = "Others are asking too. This question is number { $place }.";
        /// Behind an answer that reached --max-tokens.
        cut_by_limit(tokens: Count) = "(The answer was cut at { $tokens } tokens. For a longer answer, run it again with a larger --max-tokens.)";
        /// Behind an answer that filled the context.
        cut_by_context(context: Count) = "(The answer was cut: with the prompt it fills the context of { $context } tokens. The host sets a longer one with --context.)";
        /// The relay was not reached in time. The cause is what the last call heard.
        no_relay(relay: Text, cause: Text, seconds: Count) = "The relay at { $relay } has not answered for { $seconds } s ({ $cause }). Check the address and the network. --timeout sets how long to wait.";
        /// The host was not there in time.
        no_host(seconds: Count) = "The host has not answered for { $seconds } s. Try again when it is there. --timeout sets how long to wait.";
        /// There was no plan in time. The reason is a sentence of the room.
        no_plan(reason: Text, seconds: Count) = "The room cannot answer, and nothing has changed for { $seconds } s. { $reason }";
        /// The answer did not go on.
        no_answer(seconds: Count) = "The answer has made no progress for { $seconds } s. Ask again. --timeout sets how long to wait.";
        /// Nothing is known of what is waited for.
        no_progress(seconds: Count) = "Nothing has made progress for { $seconds } s. Try again. --timeout sets how long to wait.";
        /// The link is an invite to chat.
        only_for_chat = "This invite lets a guest ask, but not compute. Add --guest and a --prompt.";
        /// Nothing says which room to join.
        which_room = "Give the room's link. Other users of this machine can see a link on the command line (join LINK). These are safer: \"join -\" reads it from standard input, \"join --link-file FILE\" from a file, and \"join\" alone from the environment variable POTLUCK_LINK.";
        /// A link that was read is none.
        bad_link(error: Text) = "That is not a room link: { $error }.";
        /// Standard input is a terminal, and a link is expected there.
        paste_link = "Paste the room's link:";
        /// Standard input ended or cannot be read.
        no_input(error: Text) = "The link cannot be read from standard input: { $error }.";
        /// Neither a user's folder nor --cache.
        no_cache_folder = "There is nowhere to store downloads and this device's key, because HOME is not set. Choose a folder with --cache FOLDER.";
        /// --protect with a model that is not on this disk.
        protect_needs_file = "--protect works only with a file on this device: anyone can download a model that comes from the relay or from a link.";
        /// A text that begins like a link.
        no_model_link(text: Text) = "{ $text } is not a link to a GGUF file or to a repository that contains GGUF files.";
        /// A repository's list of files cannot be had.
        no_repository(repository: Text, status: Number) = "The files of { $repository } cannot be listed (status { $status }). Check the name, and check that the repository is public.";
        /// After a list of a repository's files.
        choose_a_file(repository: Text, count: Count) = "{ $repository } has { $count } models, listed with their sizes. Give the address of one, or add a colon and the end of its name to the repository, for example hf.co/{ $repository }:Q4_K_M";
        /// A model in several files, to be sent to others.
        split_file = "A split model on this disk cannot be sent to others. Put it in the relay's models folder.";
    }
}

table! {
    /// What is wrong with the path of a model.
    ModelPathTexts {
        /// Nothing is there.
        missing(path: Text) = "There is no file { $path }.";
        /// Nothing is there, but something with nearly this name.
        missing_near(path: Text, near: Text) = "There is no file { $path }. Did you mean { $near }?";
        /// It is a folder without models.
        folder(path: Text) = "{ $path } is a folder without .gguf files. Give a model's file.";
        /// It is a folder with these models.
        folder_with(path: Text, files: Text) = "{ $path } is a folder. Give a file in it: { $files }.";
        /// It has no bytes.
        empty(path: Text) = "{ $path } is empty. Download it again.";
        /// It is a device, a socket or a pipe.
        special(path: Text) = "{ $path } is not a regular file. Give a .gguf file.";
        /// The operating system refuses.
        unreadable(path: Text, error: Text) = "{ $path } cannot be read: { $error }. Check its permissions.";
    }
}

table! {
    /// What is wrong with a file that holds keys.
    SecretFileTexts {
        /// The keys of a hosted room.
        not_of_room(path: Text, error: Text) = "{ $path } does not contain a room's keys ({ $error }). Check the path. If this is the right file, it is damaged: delete it, and the next start creates a new room.";
        /// The key of this device.
        not_of_device(path: Text, error: Text) = "{ $path } does not contain a device's key ({ $error }). Delete it to create a new one.";
        /// Reading failed.
        unreadable(path: Text, error: Text) = "{ $path } cannot be read: { $error }.";
        /// Writing failed.
        unwritable(path: Text, error: Text) = "{ $path } cannot be written: { $error }.";
        /// The folder for downloads cannot be made.
        no_folder(path: Text, error: Text) = "{ $path } cannot be created: { $error }. --cache FOLDER names another folder.";
    }
}
