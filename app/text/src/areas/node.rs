//! What a node says by itself, on a page and in a terminal: nothing here may name only one of them.

table! {
    /// The relay, as a node meets it.
    NodeRelayTexts {
        /// Its protocol is another one.
        other_version = "The relay and this device run different versions of Potluck. Open Potluck again; if that is not enough, update the older of the two.";
        /// Its answer is not what the API says.
        unreadable(error: Text) = "The relay's answer cannot be read ({ $error }). Something else may answer at its address, or it runs another version of Potluck.";
        /// It lacks the model that was asked for, and has none.
        has_no_model(name: Text) = "The relay has no model called \"{ $name }\", and no other model.";
        /// It has only these.
        has_other_models(name: Text, served: Text) = "The relay has no model called \"{ $name }\". It has { $served }.";
        /// The end of a long list.
        and_more(served: Text, more: Count) = "{ $served } and { $more } more";
        /// What answers is not the relay that the address means. The reason begins with a small letter.
        no_relay(host: Text, reason: Text) = "{ $host } cannot be used as a relay: { $reason }.";
        /// No TLS there.
        speaks_no_tls = "it does not use TLS, so use an address that begins with http://";
        /// TLS there.
        speaks_tls = "it does not accept plain HTTP, so use an address that begins with https://";
        /// A web server, a proxy or a captive portal.
        web_server(status: Number) = "a web server answers with status { $status }; check the address, or sign in to this network";
        /// The host's frames exceed every limit, again and again.
        host_floods = "The host sent far more than this device can take, so this device has left the room. Open the room again to try once more.";
        /// The connection ends without a word.
        closed = "it closed the connection";
        /// DNS has no address.
        name_unknown = "its name was not found (DNS)";
        /// A proxy whose own server is away.
        proxy(status: Number) = "a proxy in front of it answers with status { $status }";
    }
}
