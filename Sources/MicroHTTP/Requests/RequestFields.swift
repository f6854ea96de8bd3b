import Glibc

/// The header fields of a request, as positions in its head. The head is in libmicrohttpd's buffer while the reactor
/// owns the request, and in a copy afterwards.
final class RequestFields {
    /// Offsets from the beginning of the head. Fields that libmicrohttpd assembled from a damaged head lie outside of
    /// it; such a request never leaves the reactor.
    private struct Field {
        let name: Int
        let nameCount: Int
        let value: Int
        let valueCount: Int
    }

    @exclusivity(unchecked) private var fields: [Field] = []
    @exclusivity(unchecked) private var head = UnsafeBufferPointer<UInt8>(start: nil, count: 0)
    @exclusivity(unchecked) private var copy: [UInt8] = []

    /// Sets the head of the fields that are added next.
    func begin(_ head: UnsafeBufferPointer<UInt8>) { self.head = head }

    /// Removes the fields, and keeps the memory for the next request.
    func clear() {
        if !fields.isEmpty { fields.removeAll(keepingCapacity: true) }
        if !copy.isEmpty { copy = [] }
        head = UnsafeBufferPointer(start: nil, count: 0)
    }

    func add(
        name: UnsafePointer<UInt8>, _ nameCount: Int, value: UnsafePointer<UInt8>, _ valueCount: Int
    ) {
        guard let start = head.baseAddress else { return }
        fields.append(
            Field(name: name - start, nameCount: nameCount, value: value - start, valueCount: valueCount))
    }

    /// Copies the head, so that the buffer is no longer needed.
    func detachFromBuffer() {
        guard head.baseAddress != nil else { return }
        copy = Array(head)
        head = UnsafeBufferPointer(start: nil, count: 0)
    }

    /// Drops the references to the buffer, which is gone.
    func forget() {
        if head.baseAddress != nil { clear() }
    }

    /// Calls the body with the value of a name, in any case. The values of several lines are joined with commas (RFC
    /// 9110 §5.3), the values of cookies with semicolons (RFC 9113 §8.2.3).
    func withValue<Result>(
        _ wanted: UnsafeBufferPointer<UInt8>, _ body: (UnsafeBufferPointer<UInt8>?) -> Result
    ) -> Result {
        if let start = head.baseAddress { return withValue(wanted, from: start, body) }
        return copy.withUnsafeBufferPointer { copy in
            guard let start = copy.baseAddress else { return body(nil) }
            return withValue(wanted, from: start, body)
        }
    }

    private func withValue<Result>(
        _ wanted: UnsafeBufferPointer<UInt8>, from start: UnsafePointer<UInt8>,
        _ body: (UnsafeBufferPointer<UInt8>?) -> Result
    ) -> Result {
        var place = fields.startIndex
        guard let first = next(wanted, from: start, &place) else { return body(nil) }
        guard var value = next(wanted, from: start, &place) else { return body(first) }
        let separator = isName("Cookie", wanted) ? "; " : ", "
        var joined = Array(first)
        while true {
            joined += Array(separator.utf8) + Array(value)
            guard let more = next(wanted, from: start, &place) else { break }
            value = more
        }
        return joined.withUnsafeBufferPointer(body)
    }

    /// Returns the next value of a name, and moves the place behind it.
    private func next(
        _ wanted: UnsafeBufferPointer<UInt8>, from start: UnsafePointer<UInt8>, _ place: inout Int
    ) -> UnsafeBufferPointer<UInt8>? {
        guard let name = wanted.baseAddress else { return nil }
        while place < fields.endIndex {
            let field = fields[place]
            place += 1
            guard field.nameCount == wanted.count, strncasecmp(start + field.name, name, wanted.count) == 0 else {
                continue
            }
            return UnsafeBufferPointer(start: start + field.value, count: field.valueCount)
        }
        return nil
    }

    private func isName(_ name: StaticString, _ wanted: UnsafeBufferPointer<UInt8>) -> Bool {
        guard wanted.count == name.utf8CodeUnitCount, let start = wanted.baseAddress else { return false }
        return name.withUTF8Buffer { $0.baseAddress.map { strncasecmp(start, $0, wanted.count) == 0 } ?? false }
    }

    /// All fields, in order.
    var texts: [(name: String, value: String)] {
        if let start = head.baseAddress { return texts(from: start) }
        return copy.withUnsafeBufferPointer { copy in copy.baseAddress.map(texts(from:)) ?? [] }
    }

    private func texts(from start: UnsafePointer<UInt8>) -> [(name: String, value: String)] {
        func text(_ place: Int, _ count: Int) -> String {
            String(decoding: UnsafeBufferPointer(start: start + place, count: count), as: UTF8.self)
        }
        return fields.map { (text($0.name, $0.nameCount), text($0.value, $0.valueCount)) }
    }
}
