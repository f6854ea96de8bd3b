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

    /// Calls the body with the first value of a name, in any case.
    func withValue<Result>(
        _ wanted: UnsafeBufferPointer<UInt8>, _ body: (UnsafeBufferPointer<UInt8>?) -> Result
    ) -> Result {
        if let start = head.baseAddress { return body(find(wanted, from: start)) }
        return copy.withUnsafeBufferPointer { copy in body(copy.baseAddress.flatMap { find(wanted, from: $0) }) }
    }

    private func find(
        _ wanted: UnsafeBufferPointer<UInt8>, from start: UnsafePointer<UInt8>
    ) -> UnsafeBufferPointer<UInt8>? {
        guard let name = wanted.baseAddress else { return nil }
        for field in fields where field.nameCount == wanted.count {
            guard strncasecmp(start + field.name, name, wanted.count) == 0 else { continue }
            return UnsafeBufferPointer(start: start + field.value, count: field.valueCount)
        }
        return nil
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
