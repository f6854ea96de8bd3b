import Foundation
import Values

/// Foundation must accept every document that our reader accepts, and our writer's output must read back the same.
/// Two readers that interpret one document differently are an attack vector.
let readJSON: FuzzTarget = { input in
    for isExact in [false, true] {
        guard let value = try? JSONValue(parsing: input, isExact: isExact) else { continue }
        let bytes = JSONWriter.bytes(value)
        // -5e2 is written as -500, which reads as an integer, so the comparison is on bytes.
        let again = try? JSONValue(parsing: bytes, isExact: isExact)
        require(again.map { JSONWriter.bytes($0) } == bytes, "the written value reads differently")
        // Exact numbers may exceed the range of Foundation's.
        if isExact { continue }
        let foundations = try? JSONSerialization.jsonObject(with: Data(input), options: .fragmentsAllowed)
        require(foundations != nil, "Foundation refuses the document")
    }
}
