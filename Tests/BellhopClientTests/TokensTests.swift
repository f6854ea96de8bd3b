import Foundation
import TestSupport
import Testing

@testable import BellhopClient

/// Calls and the stream request tokens concurrently.
@Suite(.timed) struct TokensTests {
    /// Other callers may still receive the refused token. A caller that has already tried it needs a new one.
    @Test func refusedToken_isNotReturnedToACallerThatTriedIt() async {
        // The clock stands still, so that the app's answer is never late on a busy machine.
        let clock = StandingClock().clock
        // The rounds run concurrently. In sequence, each of thousands of steps would wait for its turn among the
        // other tests.
        await withTaskGroup { group in
            for round in 0..<500 {
                group.addTask {
                    let tokens = Tokens(.init(renewing: { $0 ? "new" : "old" }), clock: clock)
                    #expect(await tokens.get() == "old")
                    async let others = (tokens.get(), tokens.get())
                    async let next = tokens.get(spent: "old")
                    let given = await next
                    #expect(given == "new", "round \(round)")
                    _ = await others
                    tokens.close()
                }
            }
        }
    }
}

@Suite(.timed) struct StorageNameTests {
    /// The claims of a real issuer take a kilobyte, and differ in their last letter.
    @Test func identities_haveDistinctStorageNames() async throws {
        let claims = (1...20).map { #""claim\#($0)":"a value of some length""# }.joined(separator: ",")
        let names = ["north", "south"].map { StorageName.short("{\(claims),\"tenant\":\"\($0)\"}") }
        #expect(names[0] != names[1])
        let directory = try TemporaryDirectory()
        let storage = FileStorage(directory: URL(fileURLWithPath: directory.path))
        for name in names { try await storage.set("bellhop 2 https://bells.example \(name) cursor", Data(name.utf8)) }
        for name in names {
            let kept = try await storage.get("bellhop 2 https://bells.example \(name) cursor")
            #expect(kept == Data(name.utf8))
        }
    }
}
