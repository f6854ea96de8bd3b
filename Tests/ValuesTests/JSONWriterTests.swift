import TestSupport
import Testing
import Values

@Suite(.timed) struct JSONWriterTests {
    /// Members from several sources are separated by commas, also if some of the sources are empty.
    @Test(
        arguments: [
            ("", "{}", "{}"), ("", #"{"b":2}"#, #"{"b":2}"#), (#""a":1"#, "{}", #"{"a":1}"#),
            (#""a":1"#, #"{"b":2,"c":3}"#, #"{"a":1,"b":2,"c":3}"#),
        ])
    func membersOfSeveralObjects_areSeparated(_ members: String, _ object: String, _ expected: String) {
        let json = JSONWriter.object { writer in
            writer.members(members.utf8)
            writer.members(of: Array(object.utf8))
        }
        #expect(String(decoding: json, as: UTF8.self) == expected)
    }

    @Test func membersWithoutBraces_areTheMembersOfAnObject() {
        let members = JSONWriter.members { writer in
            writer.member("a", 1)
            writer.member("b", "two")
        }
        #expect(String(decoding: members, as: UTF8.self) == #""a":1,"b":"two""#)
        #expect(JSONWriter.members { _ in }.isEmpty)
    }
}
