import Foundation
import Testing

/// Rows are deleted because of their age only by a time that is not in doubt.
extension TidyTests {
    /// The files with rules by age. `ClockStepsTests` has a row of the table of each rule.
    private static let filesByAge = [
        "Configuration/Clock.swift", "Configuration/SteadyClock.swift", "Features/Audit/Audit+Tables.swift",
        "Features/Changes/Changes.swift", "Features/Conversations/Conversations+Retention.swift",
        "Features/Conversations/Conversations+Upkeep.swift", "Features/DJ/DJ+Reactions.swift",
        "Features/Erasure/Erasure+Tables.swift", "Features/Notifications/Notifications+Retention.swift",
        "Features/Notifications/Notifications.swift", "Features/Requests/Requests+Tables.swift",
        "Features/Shops/Shops+Retention.swift", "Features/Streams/Streams+Tables.swift",
        "HTTP/Idempotency.swift", "Identity/Backends.swift", "Identity/RateSharing.swift", "Log/EventLog+Upkeep.swift",
        "Outbox/Outbox+Attempts.swift", "Outbox/Outbox+Upkeep.swift", "Outbox/OutboxSender.swift",
        "Streams/StreamTickets.swift", "Transactions/Transaction.swift", "Upkeep/Sweep.swift", "Upkeep/Ticker.swift",
    ]

    /// Deletions that compare a time for another reason than age.
    private static let otherDeletions = [
        // A ticket is deleted because it is used.
        "Sources/Service/Streams/StreamTickets.swift": 1,
        // The row that this transaction has just removed.
        "Sources/Service/Features/Notifications/Notifications+Creation.swift": 1,
    ]

    @Test func rulesByAge_areListed() throws {
        let signs = ["AgeTime", "Tick.forgetting", "Sweep.deleting", "age, place, tx in", "clock.age()"]
        let found = try Self.files(under: ["Sources/Service"], endingWith: ".swift").filter { file in
            signs.contains { file.text.contains($0) }
        }.map { String($0.path.dropFirst("Sources/Service/".count)) }
        let unlisted = Set(found).subtracting(Self.filesByAge).subtracting(Self.filesThatPass)
        #expect(unlisted.isEmpty, "add the rule to ClockStepsTests: \(unlisted.sorted())")
        #expect(Set(Self.filesByAge).isSubset(of: found))
    }

    /// Files that pass the time to a rule.
    private static let filesThatPass = ["HTTP/Dispatcher.swift"]

    @Test func deletionsByAge_useATimeThatIsNotInDoubt() throws {
        for file in try Self.files(under: ["Sources/Service"], endingWith: ".swift") {
            let found = Self.deletionsByNow(in: file.text)
            #expect(
                found.count <= Self.otherDeletions[file.path] ?? 0,
                "\(file.path) deletes by a time that may be wrong: \(found)")
        }
    }

    @Test func deletionReader_findsTimes() {
        let found = Self.deletionsByNow(
            in: #"""
                try db.run("DELETE FROM \(a) WHERE at < \(tx.now)")
                try db.run("DELETE FROM \(b) WHERE at < \(age.end(ofDays: 1))"); let c = "\(tx.now)"
                let sql = """
                    DELETE FROM \(d)
                    WHERE at < \(now.adding(seconds: -1))
                    """
                """#)
        #expect(found.map { $0.prefix(15) } == [#"DELETE FROM \(a"#, #"DELETE FROM \(d"#])
    }

    /// Returns the statements that delete rows by the present time.
    private static func deletionsByNow(in text: String) -> [String] {
        text.components(separatedBy: "DELETE FROM").dropFirst().enumerated().compactMap { index, rest in
            let before = text.components(separatedBy: "DELETE FROM")[index]
            let line = before.split(separator: "\n", omittingEmptySubsequences: false).last ?? ""
            let isOneLine = line.filter { $0 == "\"" }.count % 2 == 1
            let end = isOneLine ? rest.range(of: "\"")?.lowerBound : rest.range(of: "\"\"\"")?.lowerBound
            let statement = rest[..<(end ?? rest.endIndex)]
            let isByNow = ["\\(now", "\\(tx.now", "(at: now", "(at: tx.now"].contains { statement.contains($0) }
            return isByNow ? "DELETE FROM\(statement)" : nil
        }
    }
}
