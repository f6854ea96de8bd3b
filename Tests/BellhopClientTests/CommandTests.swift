import TestSupport
import Testing

@testable import BellhopClient

/// Commands are types: what the vectors give as JSON is a command of its machine, or an error.
@Suite(.timed) struct CommandTests {
    @Test(arguments: FeatureVectors.machines.keys.sorted())
    func unknownCommand_isAnError(_ machine: String) throws {
        let make = try #require(FeatureVectors.machines[machine])
        var running = make(["filter": "list_id=eq.7"])
        #expect(throws: UnknownCommand.self) { try running.receive(["type": "explode", "id": "x"]) }
    }

    @Test func missingMember_isAnError() throws {
        #expect(throws: UnknownCommand.self) { try NotificationsCommand(["type": "change", "set": ["read": true]]) }
        #expect(throws: UnknownCommand.self) { try DJCommand(["type": "vote", "trackId": "t1", "vote": "sideways"]) }
    }
}
