import Database
import Rows
import Threads
import Values

/// An item of an app's log, in log order.
enum SourceItem: Sendable {
    case change(TableChange)
    case rejected(String)
    case message(SourceMessage)
}

/// A message that `bellhop.notify` or `bellhop.publish` has written into the log.
struct SourceMessage: Sendable {
    /// `notify` or `publish`.
    let kind: String
    let tenant: ID<Tenant>
    let members: [String: JSONValue]

    /// Performs a message within a transaction of its tenant.
    typealias Receiver = @Sendable (_ members: [String: JSONValue], Transaction) throws -> Void
}

extension SourceMessage {
    /// Reads `{"kind": "notify", "tenant": "A", …}`; without a tenant it belongs to the default one.
    init(reading content: ArraySlice<UInt8>) throws(Failure) {
        guard content.count <= SourceLimits.messageBytesMax else {
            throw Failure.invalid(
                "", "has \(content.count) bytes; at most \(SourceLimits.messageBytesMax) are accepted")
        }
        guard case .object(var members) = try JSONValue(parsing: Array(content)) else {
            throw Failure.invalid("", "must be a JSON object")
        }
        var fields = Fields(members)
        kind = fields.string("kind", bytesMax: 16)
        tenant = fields.optionalID("tenant", Tenant.self) ?? "default"
        for name in members.keys where name != "kind" && name != "tenant" { _ = fields.value(name) }
        try fields.finish()
        members["kind"] = nil
        members["tenant"] = nil
        self.members = members
    }
}

/// The intake of an app's log into our database, part by part, each with its position in one transaction.
struct SourceIntake: Sendable {
    /// The outcome of a part.
    struct Outcome: Sendable {
        var taken = 0
        /// The reasons for which items were rejected.
        var rejected: [String] = []
    }

    let runner: TransactionRunner
    let changes: ChangeIntake
    let slot: String
    /// The receivers by kind of message.
    let receivers: [String: SourceMessage.Receiver]

    /// Rows may belong to any tenant.
    private static let caller = Caller.system(tenant: "default", named: "source", spansTenants: true)

    var clock: Clock { runner.clock }

    func position() throws -> SourcePosition? {
        try runner.store.read(isSingle: true) { try SourcePosition.read(slot: slot, in: $0) }
    }

    /// Returns the qualified names of the tables with rows that an earlier rule of the file has stored.
    func outdatedTables() throws -> Set<String> {
        let memberships = try runner.store.read { try changes.memberships.memberships(in: $0).0 }
        return Set(memberships.outdated.map { "\($0.schema).\($0.table)" })
    }

    /// Items, and how they advance the position.
    struct Step {
        let items: [SourceItem]
        let known: SourcePosition?
        /// Nil for items that come before there is a position.
        let position: SourcePosition?
        /// The rows of a snapshot that follows known rows; see ``ChangeIntake/take(_:seen:_:)``.
        let seen: AcceptedRows?

        init(
            _ items: [SourceItem], from known: SourcePosition?, to position: SourcePosition?, seen: AcceptedRows? = nil
        ) {
            (self.items, self.known, self.position, self.seen) = (items, known, position, seen)
        }
    }

    /// Writes a step. Calls `meanwhile` from time to time while it waits.
    ///
    /// - Parameter also: Further writes in the transaction.
    /// - Throws: ``SourcePosition/Moved``, `StoreBusy`, and errors of the database. Then nothing is stored.
    func write(
        _ step: Step, also: @escaping @Sendable (DatabaseConnection) throws -> Void = { _ in },
        meanwhile: () throws -> Void = {}
    ) throws -> Outcome {
        let answer = Locked<Result<Outcome, any Error>?>(nil)
        try runner.store.write { db in
            try step.position?.store(replacing: step.known, slot: slot, at: runner.clock.now(), in: db)
            try also(db)
            return try take(step.items, step.seen, in: db)
        } completion: { result in
            answer.withLock { $0 = result }
            answer.signal()
        }
        while true {
            if let result = answer.wait(atMost: SourceLimits.statusPause, for: { $0 }) { return try result.get() }
            try meanwhile()
        }
    }

    /// Writes like ``write(_:also:meanwhile:)``, and waits for room in the queue of writes while a thread
    /// runs.
    func writeWaitingForRoom(
        _ step: Step, on thread: LoopThread,
        also: @escaping @Sendable (DatabaseConnection) throws -> Void = { _ in }, meanwhile: () throws -> Void = {}
    ) throws -> Outcome {
        while true {
            do {
                return try write(step, also: also, meanwhile: meanwhile)
            } catch let busy as StoreBusy {
                guard thread.pause(for: SourceLimits.congestionPause) else { throw busy }
                try meanwhile()
            }
        }
    }

    private func take(_ items: [SourceItem], _ seen: AcceptedRows?, in db: DatabaseConnection) throws -> Outcome {
        var outcome = Outcome()
        var rest = items[...]
        while let first = rest.first {
            if case .message(let message) = first {
                try take(message, in: db, &outcome)
                rest.removeFirst()
                continue
            }
            let rows = rest.prefix { if case .message = $0 { false } else { true } }
            try take(rows, seen, in: db, &outcome)
            rest = rest[rows.endIndex...]
        }
        return outcome
    }

    /// Takes in consecutive changes of rows in one transaction.
    private func take(
        _ rows: ArraySlice<SourceItem>, _ seen: AcceptedRows?, in db: DatabaseConnection, _ outcome: inout Outcome
    ) throws {
        var changes: [TableChange] = []
        for case .change(let change) in rows { changes.append(change) }
        for case .rejected(let reason) in rows { outcome.rejected.append(reason) }
        guard !changes.isEmpty else { return }
        let outcomes = try runner.write(as: Self.caller, in: db, for: Self.audited) {
            try self.changes.take(changes, seen: seen, $0)
        }
        for (change, result) in zip(changes, outcomes) {
            switch result {
            case .accepted: outcome.taken += 1
            case .duplicate: break
            case .rejected(let fault):
                let place = fault.pointer.isEmpty ? "" : "\(fault.pointer) "
                outcome.rejected.append("\(change.schema).\(change.table): \(place)\(fault.reason)")
            }
        }
    }

    /// Takes in a message. An error affects only this message: its sender has committed, and could not send it again.
    private func take(_ message: SourceMessage, in db: DatabaseConnection, _ outcome: inout Outcome) throws {
        do {
            guard let receiver = receivers[message.kind] else {
                throw Failure.invalid("/kind", "must be one of \(receivers.keys.sorted().joined(separator: ", "))")
            }
            try runner.reader.rows.requireRoom(for: message.tenant)
            try db.savepoint {
                try runner.write(as: .system(tenant: message.tenant), in: db, for: Self.audited) {
                    try receiver(message.members, $0)
                }
            }
            outcome.taken += 1
        } catch let failure as Failure where failure.kind != .unavailable {
            outcome.rejected.append(Self.reason(of: failure, in: "bellhop.\(message.kind)"))
        }
    }

    /// What the audit log counts.
    private static let audited = PerformedRequests(
        acts: [
            PrivilegedAct(
                privilege: .service, actor: "source", action: "bellhop source", requestId: nil, isAlwaysNoted: true,
                isCounted: true)
        ])

    static func reason(of failure: Failure, in subject: String) -> String {
        let place = failure.fields.first.map { "\($0.pointer) \($0.detail)" }
        return "\(subject): \(place ?? failure.detail)"
    }
}
