import TestSupport
import Testing

@testable import MicroHTTP

/// Header fields as blocks of bytes: the fields of answers, and the fields of requests inside their heads.
@Suite(.timed) struct HeaderFieldsTests {
    private static func lines(_ fields: HeaderFields) -> [String] {
        var lines: [String] = []
        fields.forEachCString { lines.append("\(String(cString: $0)): \(String(cString: $1))") }
        return lines
    }

    @Test func fields_keepTheirOrder() {
        var fields: HeaderFields = [("A", "1"), ("B", "")]
        fields.append("C", "three")
        fields.append(HeaderFields([("D", "4")], reserving: 10))
        fields.append("E") { $0 += Array("5".utf8) }
        #expect(Self.lines(fields) == ["A: 1", "B: ", "C: three", "D: 4", "E: 5"])
        #expect(fields.map(\.name) == ["A", "B", "C", "D", "E"])
        #expect(fields["C"] == "three")
        #expect(fields["c"] == nil)
        #expect(Self.lines(fields.without("B")) == ["A: 1", "C: three", "D: 4", "E: 5"])
        #expect(Self.lines(HeaderFields()).isEmpty)
    }

    /// Without this rule, a NUL would turn the rest of the value into the name of another field.
    @Test func value_endsAtItsNUL() {
        var fields = HeaderFields()
        fields.append("A", "1\0X-Forged")
        fields.append("B") { $0.append(0) }
        fields.append((name: "D\0", value: "4\0\0"))
        fields.append("E", "5")
        #expect(Self.lines(fields) == ["A: 1", "B: ", "D: 4", "E: 5"])
    }

    private static let head = Array("X-One\0 1\0\0host\0 h\0\0x-one\0 2\0\0^a\0 c\0\0".utf8)

    private static func read(_ head: UnsafeBufferPointer<UInt8>, _ places: [(Int, Int, Int, Int)]) -> RequestFields {
        let fields = RequestFields()
        fields.begin(head)
        guard let start = head.baseAddress else { return fields }
        for (name, nameCount, value, valueCount) in places {
            fields.add(name: start + name, nameCount, value: start + value, valueCount)
        }
        return fields
    }

    private static func value(_ name: StaticString, of fields: RequestFields) -> String? {
        fields.withValue(UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)) {
            $0.map { String(decoding: $0, as: UTF8.self) }
        }
    }

    /// Fields are found in the buffer, and in the copy after the buffer was reused.
    @Test func fieldsOfRequest_areFoundInAnyCase_afterTheBufferIsReleased() {
        var buffer = Self.head
        buffer.withUnsafeMutableBufferPointer { buffer in
            let fields = Self.read(
                UnsafeBufferPointer(buffer), [(0, 5, 7, 1), (10, 4, 16, 1), (19, 5, 26, 1), (29, 2, 33, 1)])
            let names = ["X-One", "host", "x-one", "^a"]
            for round in 0..<2 {
                #expect(Self.value("x-ONE", of: fields) == "1, 2", "two lines are one list")
                #expect(Self.value("Host", of: fields) == "h")
                #expect(Self.value("^A", of: fields) == "c")
                #expect(Self.value("~a", of: fields) == nil, "differs in the case bit, but is not a letter")
                #expect(Self.value("Hos", of: fields) == nil)
                #expect(fields.texts.map(\.name) == names)
                #expect(fields.texts.map(\.value) == ["1", "h", "2", "c"])
                guard round == 0 else { continue }
                fields.detachFromBuffer()
                buffer.update(repeating: 0xFF)
            }
            fields.forget()
            #expect(fields.texts.count == 4, "copies remain until the next request")
            fields.clear()
            #expect(fields.texts.isEmpty)
        }
    }

    @Test func fieldsThatWereNotCopied_areForgotten() {
        Self.head.withUnsafeBufferPointer { head in
            let fields = Self.read(head, [(0, 5, 7, 1)])
            fields.forget()
            #expect(fields.texts.isEmpty)
            #expect(Self.value("X-One", of: fields) == nil)
        }
    }
}
