/// Decides which of the identities that a device knows shows before the service has answered, and what closes when it
/// answers (R-SCH-FR-001). An identity is the service's digest of the rights of a token.
package struct SessionMachine: Sendable, Hashable {
    /// An identity whose data the device keeps, with its holder and its person. All are digests.
    package struct Known: Sendable, Hashable, Codable {
        package let identity: String
        /// Of the issuer and the subject of its tokens; nil for tokens without a readable subject.
        package let holder: String?
        /// Of the subject alone, for apps that name the user before they have a token.
        package let person: String?

        package init(identity: String, holder: String?, person: String?) {
            self.identity = identity
            self.holder = holder
            self.person = person
        }

        package func belongs(to holder: String?, _ person: String?) -> Bool {
            if let holder { return self.holder == holder }
            return person != nil && self.person == person
        }
    }

    package enum Input: Sendable {
        /// The app's token has that holder; without a token, the app named that person.
        case begin(holder: String?, person: String?, known: [Known])
        /// The service's answer.
        case told(Known)
        /// Another user signed in, or the user signed out.
        case user
    }

    package enum Action: Sendable, Hashable {
        case close
        case open(identity: String)
        /// Stores that the device knows this identity.
        case keep(Known)
        /// The stream and the outbox of the identity may use the token.
        case confirm(identity: String)
    }

    /// The identity that shows.
    package private(set) var identity: String?
    package private(set) var isConfirmed = false

    package init() {}

    package mutating func receive(_ input: Input) -> [Action] {
        switch input {
        case .begin(let holder, let person, let known):
            guard !isConfirmed else { return [] }
            // Two identities of one holder have different rights: without an answer, either could be the wrong one.
            let own = Set(known.filter { $0.belongs(to: holder, person) }.map(\.identity))
            return show(own.count == 1 ? own.first : nil)
        case .told(let known):
            if isConfirmed, identity == known.identity { return [] }
            let actions = show(known.identity)
            isConfirmed = true
            return actions + [.keep(known), .confirm(identity: known.identity)]
        case .user: return show(nil)
        }
    }

    /// Shows another identity; nil shows no identity.
    private mutating func show(_ next: String?) -> [Action] {
        guard next != identity else { return [] }
        let closing: [Action] = identity == nil ? [] : [.close]
        (identity, isConfirmed) = (next, false)
        return closing + (next.map { [.open(identity: $0)] } ?? [])
    }
}

extension SessionMachine: Encodable {
    private enum CodingKeys: CodingKey { case identity, isConfirmed }
}
