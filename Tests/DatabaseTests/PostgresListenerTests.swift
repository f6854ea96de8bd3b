import PostgresServer
import TestSupport
import Testing

@testable import Database

/// What listeners learn about the connection that receives notifications.
@Suite(.timed) struct PostgresListenerTests {
    private func signals(
        _ change: (inout StoreOptions) -> Void = { _ in }, _ body: (Stores, Collected<ChannelSignal>) throws -> Void
    ) throws {
        let stores = try Stores(
            Migration("0001_items", sql: ["CREATE TABLE items (id INTEGER PRIMARY KEY) STRICT"]),
            tables: [ServiceTable("items").table],
            options: change)
        defer { stores.close() }
        let found = Collected<ChannelSignal>()
        let stop = stores.postgres.listen(to: "test_channel") { found.append($0) }
        defer { stop?() }
        try body(stores, found)
    }

    @Test func lostConnection_isTold_andTheNextOne() throws {
        try signals { stores, found in
            #expect(found.wait(for: 1) == [.began])
            try stores.postgres.writeAndWait { try $0.notify("test_channel", "a") }
            #expect(found.wait(for: 2) == [.began, .notified("a")])
            try PostgresServer.shared().run(
                ["SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '\(stores.database)'"])
            #expect(found.wait(for: 4).suffix(2) == [.ended, .began])
        }
    }

    /// A replica that asked the others now would wait for answers that do not arrive.
    @Test func failedConnection_isNoBeginning() throws {
        try signals({ $0.listenURL = try? DatabaseURL("postgres://bellhop@127.0.0.1:1/none") }) { _, found in
            #expect(found.wait(for: 2).allSatisfy { $0 == .ended })
        }
    }
}
