import Foundation
import TestSupport
import Testing

/// Runs the machines with the same vectors as the JavaScript client.
@Suite(.timed) struct VectorTests {
    private static let folder = repository.appendingPathComponent("Tests/Fixtures/Client")

    @Test(arguments: Vectors.machines.keys.sorted())
    func machine_matchesItsVectors(_ machine: String) throws {
        let found = try Vectors.mismatches(of: machine, in: Self.folder)
        #expect(found.isEmpty, "\(found.joined(separator: "\n"))")
    }
}
