//! `potluck-node serve`: an HTTP API for other programs.

table! {
    /// What `potluck-node serve` says in its terminal.
    ServeTexts {
        /// The model can answer. Programs are set up with this address and this name.
        ready(model: Text, address: Text) = "Programs can now use { $model } at { $address } as they use OpenAI's or Anthropic's API. Ctrl-C stops this.";
        /// The address is taken, or this machine does not have it.
        cannot_listen(address: Text, error: Text) = "The program cannot listen on { $address }: { $error }. Choose another address with --listen.";
        /// Other machines could ask.
        needs_key(address: Text) = "Other machines can reach { $address }, so requests need a key. Give one with --api-key-file FILE or in the environment variable POTLUCK_API_KEY.";
        /// Every web page could ask.
        any_origin_needs_key = "With --allow-origin \"*\" every web page could use the model, so requests need a key. Give one with --api-key-file FILE or in the environment variable POTLUCK_API_KEY.";
        /// The file or the variable for the key holds none.
        no_key = "The API key must be one line of visible ASCII characters.";
        /// Neither a model nor a room.
        what_to_serve = "Give a model's file or a room's link. Other users of this machine can see a link on the command line. These are safer: \"serve -\" reads it from standard input, \"serve --link-file FILE\" from a file, and \"serve\" alone from the environment variable POTLUCK_LINK.";
        /// An option that only means something with a model of one's own.
        not_in_a_room(option: Text) = "{ $option } is for a model's file: in a room, its host decides that.";
        /// An option that only means something in a room.
        not_alone(option: Text) = "{ $option } is for a room's link: with a model's file, this program uses no network.";
    }
}

table! {
    /// What programs are told by the API of `potluck-node serve`, and show their users.
    ApiTexts {
        /// The key is missing or another one.
        wrong_key = "The API key is missing or wrong. Send the one that potluck-node serve was started with.";
        /// A web page asks, or a program that says where it comes from.
        foreign_origin(origin: Text) = "Requests from { $origin } are not allowed. Start potluck-node serve with --allow-origin to allow them.";
        /// A web page asks, of which only this is known.
        foreign_page = "Requests from web pages are not allowed. Start potluck-node serve with --allow-origin to allow those of one site.";
        /// The request names this machine as a stranger's server might.
        foreign_host = "Without an API key, requests are answered at 127.0.0.1, [::1] and localhost only. Start potluck-node serve with a key to use another name.";
        /// There is nothing at this address.
        no_route = "This API has nothing at that address. It has /v1/chat/completions, /v1/completions, /v1/responses, /v1/messages and /v1/models.";
        /// Tokens and texts are asked of a program that has not the model's file.
        not_here = "Only the room's host has the model's tokenizer. Start potluck-node serve with the model's file to use this.";
        /// Another method.
        no_method(method: Text) = "Use { $method } at this address.";
        /// The name of another model.
        no_model(served: Text) = "There is no model of that name here. The model is { $served }.";
        /// Nothing is known of the room yet.
        not_ready = "The model is not ready yet. Ask again in a moment.";
        /// The body is over the limit.
        too_large(limit: Bytes) = "The request is larger than { $limit }.";
        /// The body did not come.
        too_slow = "The request did not arrive in time.";
        /// The client ended the body early.
        cut_short = "The request ended before it was complete.";
        /// The room or this program ends.
        ended = "The room has ended, or potluck-node was stopped.";
        /// Some of a streamed answer was void.
        void = "A device that computed part of this answer sent wrong results. Ask again.";
        /// The room ended the answer, and this program did not ask it to.
        cut_off = "The room stopped this answer before it was complete. Ask again.";
        /// The room sends more than any model writes.
        endless = "The room sends an answer without end.";
        /// In place of an image.
        image = "(There was an image here. This model reads text only.)";
        /// In place of anything else that is no text.
        no_text = "(There was something here that is not text. This model reads text only.)";
        /// A call is demanded, and it is not clear how one begins.
        no_tools = "This model cannot be made to call a tool. Leave tool_choice out: then the model decides.";
        /// The model's file names no tokens for texts between two others.
        no_infill = "This model cannot write between two texts: its file names no tokens for that. Leave the suffix out.";
        /// A call or a result in the conversation that is not of a function.
        no_tool_messages = "Only calls of functions and their results are passed to the model. Leave this out of the conversation.";
        /// The result of a call that is not there.
        no_call(id: Text) = "There is no call with the id { $id } before this result.";
    }
}
