import Foundation
import Values

/// What our reader takes, Foundation's takes too, and what it writes again reads the same: two readers that
/// understand one document differently are an attack.
let readJSON: FuzzTarget = { input in
    for isExact in [false, true] {
        guard let value = try? JSONValue(parsing: input, isExact: isExact) else { continue }
        let bytes = JSONWriter.bytes(value)
        // -5e2 is written as -500, which reads as a whole number: bytes are what stays.
        let again = try? JSONValue(parsing: bytes, isExact: isExact)
        require(again.map { JSONWriter.bytes($0) } == bytes, "what was written reads differently")
        // Exact numbers may be larger than Foundation's.
        if isExact { continue }
        let foundations = try? JSONSerialization.jsonObject(with: Data(input), options: .fragmentsAllowed)
        require(foundations != nil, "Foundation refuses it")
    }
}
