import OutboundHTTP
import TestSupport
import Testing

/// Addresses have one reading, or none.
@Suite(.timed) struct OutboundURLTests {
    /// Spellings of one address, and its normal form.
    @Test(arguments: [
        ("https://push.example/a", "https://push.example/a"), ("HTTPS://PUSH.Example:443/a", "https://push.example/a"),
        ("https://push.example/%61", "https://push.example/a"), ("http://push.example:80", "http://push.example/"),
        ("https://push.example/a%2fb?c=%7e%2f", "https://push.example/a%2Fb?c=~%2F"),
        ("https://push.example/a:b@c;d?e=/f?g", "https://push.example/a:b@c;d?e=/f?g"),
        ("https://push.example?", "https://push.example/?"), ("https://a_b:8443/", "https://a_b:8443/"),
        ("https://127.0.0.1/a", "https://127.0.0.1/a"), ("https://[0:0::1]:1/a", "https://[::1]:1/a"),
        ("https://[2001:DB8::1]/", "https://[2001:db8::1]/"),
        ("https://xn--bcher-kva.example/", "https://xn--bcher-kva.example/"),
    ])
    func addresses_haveANormalForm(_ text: String, canonical: String) throws {
        let url = try OutboundURL(text)
        #expect(url.canonical == canonical && url.text == text)
        #expect(try OutboundURL(canonical).canonical == canonical)
    }

    @Test(arguments: [
        // The end of the host.
        "https://push.example%2f.evil.example/", "https://push.example%2Fa", "https://push.example%00.evil.example/",
        "https://push.example%40evil.example/", "https://push.example;evil.example/",
        "https://push.example\\.evil.example/",
        "https://push.example\\a", "https:\\\\push.example/", "https:/push.example/", "https:push.example/",
        "//push.example/",
        "https://push.example,evil.example/", "https://push.example$/", "https://(push.example)/",
        "https://push.example\u{0}/",
        // The user.
        "https://u:p@push.example/", "https://u@push.example/", "https://@push.example/",
        "https://push.example@evil.example/",
        // Empty labels, the final dot, long labels.
        "https://", "https:///a", "https://.push.example/", "https://push..example/", "https://push.example./",
        "https://./",
        "https://-push.example/", "https://\(String(repeating: "a", count: 64)).example/",
        "https://\(String(repeating: "a.", count: 127))aa/",
        // Other alphabets, white space, controls.
        "https://pu\u{301}sh.example/", "https://püsh.example/", "https://push。example/", "https://push.example/é",
        " https://push.example/", "https://push.example/ ", "https://push.example/a b", "https://push.\texample/",
        "https://push.example/\n", "https://push.example/%0d%0aHost:evil", "https://push.example/%00",
        "https://push.example/%7f",
        // Numbers that only some programs read as addresses.
        "https://2130706433/", "https://127.1/", "https://0x7f.0.0.1/", "https://0x7f000001/", "https://0177.0.0.1/",
        "https://127.0.0.1.1/", "https://127.0.0.256/", "https://1.2.3.0x4/",
        "https://[127.0.0.1]/", "https://[::1/", "https://::1/", "https://[::1%25lo]/", "https://[fe80::1%lo]/",
        "https://[v1.a]/",
        "https://[]/", "https://[::1]a/",
        // Ports.
        "https://push.example:/", "https://push.example:0/", "https://push.example:0443/",
        "https://push.example:65536/",
        "https://push.example:443443/", "https://push.example:a/", "https://push.example:443:443/",
        "https://push.example:-1/",
        // The path.
        "https://push.example/%", "https://push.example/%2", "https://push.example/%zz", "https://push.example/a/../b",
        "https://push.example/.", "https://push.example/%2e%2E/a", "https://push.example/[a]",
        "https://push.example/a|b",
        "https://push.example/a\"b", "https://push.example/<a>", "https://push.example/a#b", "https://push.example#",
        "ftp://push.example/", "httpss://push.example/", "javascript:a", "nonsense", "",
        "https://push.example/\(String(repeating: "a", count: 2048))",
    ])
    func othersAreRefused(_ text: String) { #expect(throws: OutboundURL.Invalid.self) { try OutboundURL(text) } }

    @Test func patterns_nameAHost_orTheHostsOfADomain() throws {
        let url = try OutboundURL("https://WNS.notify.example/a")
        #expect(url.isHost(matching: "wns.notify.example") && url.isHost(matching: "*.Notify.example"))
        for other in ["*.wns.notify.example", "notify.example", "*.otify.example", "*.example.", "*"] {
            #expect(!url.isHost(matching: other), "\(other)")
        }
    }

    @Test func numbersAreAddresses() throws {
        #expect(try OutboundURL("https://[::1]/").address?.isPublic == false)
        #expect(try OutboundURL("https://8.8.8.8/").address?.isPublic == true)
        #expect(try OutboundURL("https://push.example/").address == nil)
    }
}
