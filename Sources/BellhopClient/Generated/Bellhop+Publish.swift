// Written by .ci/client-models from openapi.yaml: change that, and run it.

extension Bellhop {
    public struct OwnEvent: Codable, Sendable, Hashable {
        /// Name of the event. Its first part must not be one that the service uses for its own events.
        public internal(set) var event: String
        /// Keys that receive the event, such as `user:ada`, `shop:s1:staff` or `everyone`. A receiver needs one of
        /// them.
        public internal(set) var to: [String]?
        /// A topic that the file of tables declares, such as `order:o1`.
        public internal(set) var topic: String?
        /// Any JSON value of at most 16 KiB.
        public internal(set) var data: JSON
        /// Name of a state that the event carries completely. A newer event with this name replaces an older one that
        /// still waits for a slow or resuming stream. Each topic has its own names; events to keys share the names of
        /// the tenant.
        public internal(set) var collapse: String?

        public init(event: String, to: [String]? = nil, topic: String? = nil, data: JSON, collapse: String? = nil) {
            self.event = event
            self.to = to
            self.topic = topic
            self.data = data
            self.collapse = collapse
        }
    }

    public struct Published: Codable, Sendable, Hashable {
        public internal(set) var accepted: Int

        public init(accepted: Int) {
            self.accepted = accepted
        }
    }
}
