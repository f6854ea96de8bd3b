import Values
import Yams

extension Node {
    /// The JSON value of a scalar; null for YAML's null.
    var scalarValue: JSONValue {
        guard case .scalar(let scalar) = self else { return .null }
        guard scalar.style == .plain else { return .string(scalar.string) }
        if null != nil { return .null }
        if let bool { return .bool(bool) }
        if let int { return .integer(Int64(int)) }
        if let float { return .number(float) }
        return .string(scalar.string)
    }
}
