import Glibc
import Values
import Visibility

/// The forms in which stored JSON and keys name a person.
///
/// An id is a text like any other, and the id of a person may also be the id of a shop or a common word. So there are two
/// questions. ``occur(in:)`` also finds such texts: it is for copies that expire anyway, where too much does no harm.
/// ``arePerson(in:)`` only finds texts that name a person by their place, and is for rows of other users.
struct PersonNames: Sendable {
    let person: ID<User>
    /// The id as a JSON string.
    private let quoted: [UInt8]
    /// The id as a segment of a key (``AudienceKey``).
    private let segment: String
    /// The segment inside a JSON string.
    private let written: [UInt8]

    init(_ person: ID<User>) {
        self.person = person
        quoted = JSONWriter.bytes(person.text)
        segment = AudienceKey.make(person.text)
        written = JSONWriter.escaped(segment)
    }

    /// Whether a key names the person, such as `user:ada` or `follower:ada`. Its first segment is a kind.
    func occur(inKey key: String) -> Bool { key.split(separator: ":").dropFirst().contains { $0 == segment } }

    /// Whether a key is held by the person alone.
    func areOnly(key: String) -> Bool { key == AudienceKey.make("user", person.text) }

    /// Whether the id of an app's event names the person, as in `follow:ada:ben`, whose first part is a kind.
    func occur(inEvent id: String) -> Bool {
        let parts = id.split { ":/|, ".contains($0) }
        return ID(id) == person || parts.dropFirst().contains { ID<User>(String($0)) == person }
    }

    /// Whether JSON names the person: in a member for ids, by a key of the person, or by the id of an app's event.
    func arePerson(in bytes: [UInt8]) -> Bool {
        // Most JSON does not contain the id at all.
        let contains = bytes.withUnsafeBytes { text in
            [written, Array(quoted.dropFirst().dropLast())].contains { id in
                id.withUnsafeBytes { first($0, in: text) } != nil
            }
        }
        guard contains else { return false }
        guard let value = try? JSONValue(parsing: bytes, isExact: true) else { return true }
        return arePerson(value, named: "")
    }

    private func arePerson(_ value: JSONValue, named name: String) -> Bool {
        switch value {
        case .string(let text):
            (ID<User>(text) == person && Self.isForPersons(name))
                || (text.hasPrefix("user:") && occur(inKey: text))
                || (name.lowercased().hasSuffix("eventid") && occur(inEvent: text))
        case .array(let values): values.contains { arePerson($0, named: name) }
        case .object(let members): members.contains { arePerson($1, named: $0) || $0 == person.text }
        case .null, .bool, .integer, .number: false
        }
    }

    /// Whether a member of this name may hold the id of a person, such as `friendId`, `createdBy` or `members`.
    private static func isForPersons(_ name: String) -> Bool {
        let name = name.lowercased()
        return ["id", "ids", "by", "from", "to"].contains { name.hasSuffix($0) }
            || ["user", "member", "author", "sender", "actor", "owner"].contains { name == $0 || name == $0 + "s" }
    }

    /// Whether JSON names the person: by the id as a whole string, or by a key.
    func occur(in bytes: some Collection<UInt8>) -> Bool {
        bytes.withContiguousStorageIfAvailable { occur(in: UnsafeRawBufferPointer($0)) }
            ?? Array(bytes).withUnsafeBytes { occur(in: $0) }
    }

    private func occur(in text: UnsafeRawBufferPointer) -> Bool {
        if quoted.withUnsafeBytes({ first($0, in: text) }) != nil { return true }
        var start = 0
        while let place = written.withUnsafeBytes({ first($0, in: UnsafeRawBufferPointer(rebasing: text[start...])) }) {
            let (first, end) = (start + place, start + place + written.count)
            // Another id may contain the same bytes. A quote inside a string has a backslash before it.
            let isStart = first == 0 || "\":".utf8.contains(text[first - 1])
            if isStart, end == text.count || "\":\\".utf8.contains(text[end]) { return true }
            start = first + 1
        }
        return false
    }

    private func first(_ wanted: UnsafeRawBufferPointer, in text: UnsafeRawBufferPointer) -> Int? {
        guard let start = text.baseAddress, let sought = wanted.baseAddress, let letter = wanted.first else {
            return nil
        }
        var place = 0
        while place + wanted.count <= text.count {
            // The search of libc for one byte is many times faster than a loop.
            guard let found = memchr(start + place, Int32(letter), text.count - wanted.count + 1 - place) else { break }
            place = UnsafeRawPointer(found) - start
            if memcmp(found, sought, wanted.count) == 0 { return place }
            place += 1
        }
        return nil
    }
}
