//! The bytes of a model: which version they are of, and whether they are sound.

table! {
    /// What a load has to say about weights.
    WeightsTexts {
        /// Samples of the stored copy differ from the model's source.
        stored_copy_differs = "The model at this link has changed. The stored copy was deleted, and the model is being downloaded again.";
        /// The first time that this device fetches from the server of a link that the host chose.
        from_server(server: Text) = "The model of this room is on the server { $server }. This device downloads its part from there, so that server sees this device's address and which part it downloads.";
        /// A link that the host chose is none of the internet.
        private_link(server: Text) = "The host's link to the model ({ $server }) leads to a private address or does not begin with https. This device does not follow it. The host can serve the file from the relay, or from its disk.";
        /// A server refuses for longer than a device waits.
        server_is_busy(server: Text, minutes: Count) = "{ $server } has had too many requests from this network. What was loaded is kept: try again in { $minutes } min.";
        /// A server wants to know who reads a file: 401 or 403.
        locked(server: Text) = "{ $server } refuses to send this file to this device. If you need to log in or accept a licence first, do that in a browser, then enter an access token of that server in this device's settings (potluck-node: --access-tokens). If the link was made for a limited time, get a new link. Or download the file in a browser, and host it from this disk.";
        /// A link leads to a page, not to a file.
        is_page(server: Text) = "The link to { $server } leads to a web page, not to a GGUF file. Copy the link of its download button, which ends in .gguf.";
        /// Behind "example.org does not send the model: ". The server sent another part of the file than the one asked for.
        other_bytes = "it sends a different part of the file from the one requested. Use another server.";
        /// The same, for 404 and 410.
        no_such_file(status: Number) = "there is no such file (status { $status }). Copy the link again from the page that offers it.";
        /// The same, for statuses of servers that do not work.
        fails_now(status: Number) = "status { $status }. Try again later.";
        /// The same, for all other statuses.
        gives_no_file(status: Number) = "status { $status }. Open the link in a browser to see what is wrong.";
        /// While a model is opened whose server has too many requests.
        server_waits(seconds: Count) = "The model's server is busy. Trying again in { $seconds } s.";
        /// After such a wait.
        server_asked_again = "Trying the model's server again.";
        /// A number of a tensor is infinite or NaN.
        not_finite(tensor: Text) = "The weights of this model are damaged: { $tensor } has numbers that are not finite. Download the file again, or use another file of this model.";
        /// What the GPU has of a tensor is not what was sent to it.
        not_kept(tensor: Text) = "The GPU of this device did not store a part of the model correctly ({ $tensor }). Open Potluck again. If that does not help, update the GPU's driver.";
    }
}
