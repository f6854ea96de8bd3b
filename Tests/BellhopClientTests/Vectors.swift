import Foundation

@testable import BellhopClient

/// A machine that vectors drive, with input and state as JSON.
protocol VectorMachine {
    mutating func receive(_ input: JSON) throws -> [JSON]
    /// Returns the state with the names of the vectors.
    func described() throws -> JSON
    /// Returns the state that a device keeps; null if there is none.
    func kept() throws -> JSON
}

extension VectorMachine {
    func kept() -> JSON { .null }
}

/// The vectors that the JavaScript client uses too: `Tests/Fixtures/Client/<machine>.json`.
enum Vectors {
    /// The machines, by the names of their files.
    static let machines = CoreVectors.machines.merging(FeatureVectors.machines) { first, _ in first }

    /// Returns the differences from the expected results, each with its position; an empty list means success.
    static func mismatches(of machine: String, in folder: URL) throws -> [String] {
        let file = try JSON(parsing: Data(contentsOf: folder.appending(path: "\(machine).json")))
        let cases = file["cases"].array ?? []
        var found = cases.isEmpty ? ["\(machine).json has no cases"] : []
        for one in cases {
            // Cases of what all stores have in common name their machine.
            let name = one["machine"].string ?? machine
            guard let make = machines[name] else { return ["there is no machine \(name)"] }
            var state = make(one["options"])
            for (index, step) in (one["steps"].array ?? []).enumerated() {
                let place = "\(one["row"].string ?? ""): \(one["name"].string ?? ""), step \(index + 1)"
                let before = try state.described()
                let told = JSON.array(try state.receive(step["input"]))
                if !step["actions"].isNull, told != step["actions"] {
                    found.append("\(place): actions \(told), not \(step["actions"])")
                }
                let after = try state.described()
                if step["isUnchanged"].bool == true, before != after {
                    found.append("\(place): \(after), not \(before)")
                }
                found += differences(after, step["state"], at: "\(place), state")
                guard let kept = step.object?["kept"] else { continue }
                found += differences(try state.kept(), kept, at: "\(place), kept")
            }
        }
        return found
    }

    /// Compares the actual with the expected value. Lists must have equal length. Objects may have additional
    /// members, unless the expected object is empty. Null may be absent.
    private static func differences(_ actual: JSON, _ expected: JSON, at place: String) -> [String] {
        if let members = expected.object, !members.isEmpty {
            // The models of badges have no time.
            return members.filter { $0.key != "asOf" }
                .flatMap { differences(actual[$0.key], $0.value, at: "\(place).\($0.key)") }
        }
        if let elements = expected.array {
            guard actual.array?.count == elements.count else { return ["\(place): \(actual), not \(expected)"] }
            return elements.indices.flatMap { differences(actual[$0], elements[$0], at: "\(place)[\($0)]") }
        }
        return expected.isNull && place.hasSuffix("state") || actual == expected
            ? [] : ["\(place): \(actual), not \(expected)"]
    }
}
