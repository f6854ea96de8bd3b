import TestSupport
import Testing

@testable import Visibility

/// Keys and templates: a value from outside never becomes another key.
@Suite(.timed) struct AudienceTests {
    @Test(arguments: [
        (["user", "ada"], "user:ada"), (["user", "a:staff"], "user:a%3Astaff"), (["user", "a%3A"], "user:a%253A"),
        (["user", "\u{E9}"], "user:%C3%A9"), (["user", "e\u{301}"], "user:e%CC%81"), (["user", " "], "user:%20"),
    ])
    func key_hasOneReading(segments: [String], key: String) {
        #expect(segments.count == 2 && AudienceKey.make(segments[0], segments[1]) == key)
        #expect(AudienceKey.isKey(key))
        let value = key.utf8.split(separator: UInt8(ascii: ":"))[1]
        #expect(Substring(value).utf8.elementsEqual(value))
        #expect(AudienceKey.decode(value)?.unicodeScalars.elementsEqual(segments[1].unicodeScalars) == true)
    }

    @Test(arguments: ["", "user:", ":a", "user:%3a", "user:%41", "user:%", "user:a b", "user:%FF", "user:\u{E9}"])
    func otherSpellings_areNoKeys(_ text: String) {
        #expect(!AudienceKey.isKey(text))
    }

    @Test(arguments: [
        ("everyone", []), ("user:{user_id}", ["user_id"]), ("shop:{shop_id}:staff", ["shop_id"]),
        ("class:{school}:{class}", ["school", "class"]),
    ])
    func template_namesItsColumns(_ text: String, columns: [String]) throws {
        let template = try AudienceTemplate(text)
        #expect(template.columns == columns && template.description == text)
    }

    @Test(arguments: ["", "user:", "user:{}", "user:{a}b", "user:{a", "a%3A", "us er", "user:{a{b}"])
    func malformedTemplates_areRefused_withTheReason(_ text: String) {
        let error = #expect(throws: AudienceTemplate.Malformed.self) { try AudienceTemplate(text) }
        #expect(error?.template == text && error?.reason.isEmpty == false)
    }
}
