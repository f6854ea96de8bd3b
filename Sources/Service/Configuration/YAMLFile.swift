import Foundation
import Values
import Yams

/// A YAML file that a setting names. Mistakes are reported with their line.
struct YAMLFile {
    /// Bytes of a file. The largest file within the limits is far smaller.
    private static let bytesMax = 4 << 20
    /// Values of a file, counted each time that an alias repeats them. Nine lines of aliases can expand to billions of
    /// values.
    private static let valuesMax = 200_000

    let document: JSONValue
    /// The line of each place, by its JSON pointer.
    private let lines: [String: Int]

    /// The reason why a file cannot be used.
    enum Unusable: Error {
        case unreadable(String)
        case invalid(String)
    }

    init(path: String) throws(Unusable) {
        guard let data = FileManager.default.contents(atPath: path), data.count <= Self.bytesMax,
            let text = String(validating: data, as: UTF8.self)
        else { throw .unreadable(Self.obstacle(to: path)) }
        try self.init(text)
    }

    /// Returns the reason why a file cannot be read as text.
    private static func obstacle(to path: String) -> String {
        func isFolder(_ path: String) -> Bool? {
            var isFolder: ObjCBool = false
            return FileManager.default.fileExists(atPath: path, isDirectory: &isFolder) ? isFolder.boolValue : nil
        }
        switch isFolder(path) {
        case true?: return "it is a folder"
        case false?: return "it is not readable text of at most \(bytesMax) bytes"
        case nil:
            let folder = URL(fileURLWithPath: path).deletingLastPathComponent().path
            return isFolder(folder) == nil ? "the folder \(folder) does not exist" : "the file does not exist"
        }
    }

    init(_ text: String) throws(Unusable) {
        let node: Node?
        do {
            // `value` interprets plain scalars. The default rules would compile many regular expressions for this,
            // which takes 5 MB at every start.
            node = try Yams.compose(yaml: text, .basic)
        } catch {
            throw .invalid("is not valid YAML: \(Self.reason(error))")
        }
        var lines: [String: Int] = [:]
        document = node.map { Self.value(of: $0, at: "", &lines) } ?? .null
        guard lines.count < Self.valuesMax else {
            throw .invalid("has more than \(Self.valuesMax) values (repeated aliases count)")
        }
        self.lines = lines
    }

    /// Returns the mistake and its place, without the text around it, because a file may be one long line.
    private static func reason(_ error: any Error) -> String {
        switch error as? YamlError {
        case .scanner(_, let problem, let mark, _), .parser(_, let problem, let mark, _),
            .composer(_, let problem, let mark, _):
            "line \(mark.line), column \(mark.column): \(problem)"
        default: String("\(error)".prefix { $0 != "\n" }.prefix(300))
        }
    }

    /// Returns the line of a place, or of the object in which it is missing.
    func line(of pointer: String) -> Int {
        var place = Substring(pointer)
        while true {
            if let line = lines[String(place)] { return line }
            guard let slash = place.lastIndex(of: "/") else { return 1 }
            place = place[..<slash]
        }
    }

    private static func value(of node: Node, at pointer: String, _ lines: inout [String: Int]) -> JSONValue {
        guard lines.count < valuesMax else { return .null }
        lines[pointer] = node.mark?.line ?? 1
        switch node {
        case .mapping(let mapping):
            var members: [String: JSONValue] = [:]
            for (key, value) in mapping {
                let name = key.string ?? ""
                members[name] = Self.value(of: value, at: "\(pointer)/\(name)", &lines)
            }
            return .object(members)
        case .sequence(let sequence):
            return .array(sequence.enumerated().map { value(of: $1, at: "\(pointer)/\($0)", &lines) })
        default: return node.scalarValue
        }
    }
}
