import Values
import Yams

extension Node {
    /// What a scalar stands for; null for what is none.
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
