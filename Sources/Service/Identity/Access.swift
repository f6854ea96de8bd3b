import Values

/// The callers of an endpoint. Which rows they may act on is decided by the tables' policies, never here.
enum Access: String, Sendable {
    case anyone, bearer, service, staffOrService, adminOrService
    /// A backend, or a feed of table changes that authenticates with a secret (`FeedCredentials`).
    case feed

    /// Whether only callers with a certain role may call.
    var isRoleBound: Bool { self != .anyone && self != .bearer }

    /// - Throws: `forbidden`, with the role of the caller and the roles of the endpoint. Both are no secrets: a token's
    ///   bearer can read it, and the contract names the roles.
    func require(_ caller: Caller) throws(Failure) {
        guard !admits(caller) else { return }
        let needed = roles.map(\.rawValue).joined(separator: " or ")
        throw .forbidden("This operation requires the role \(needed). The token has the role \(caller.role).")
    }

    private func admits(_ caller: Caller) -> Bool {
        if !isRoleBound || caller.isService { return true }
        return switch self {
        case .staffOrService: caller.isStaff
        case .adminOrService: caller.privilege == .administrator
        case .anyone, .bearer, .service, .feed: false
        }
    }

    private var roles: [TokenRole] {
        switch self {
        case .anyone, .bearer: []
        case .service, .feed: [.backend]
        case .staffOrService: [.staff, .barber, .admin, .backend]
        case .adminOrService: [.admin, .backend]
        }
    }
}

extension Capability {
    /// - Throws: `forbidden`, with this capability and those of the caller, for a backend without it.
    func require(_ caller: Caller) throws(Failure) {
        guard let held = caller.capabilities, !held.contains(self) else { return }
        let names = Self.allCases.filter(held.contains).map(\.rawValue).joined(separator: ", ")
        throw .forbidden(
            "This operation requires the capability \(rawValue). The backend has \(names.isEmpty ? "no capability" : names)."
        )
    }
}
