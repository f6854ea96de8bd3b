import TestSupport
import Testing

@testable import Database

/// The parsing of a `postgres://` URL before libpq uses it.
@Suite(.timed) struct ServerAddressTests {
    @Test(arguments: [
        ("postgres://bellhop@db.example/x", "db.example", "prefer"),
        ("postgres://bellhop@db.example/x?sslmode=require", "db.example", "require"),
        ("postgres://bellhop@db.example/x?sslmode=verify-ca", "db.example", "verify-ca"),
        ("postgres://bellhop@a.example,localhost,10.0.0.7/x?sslmode=disable", "a.example,10.0.0.7", "disable"),
        ("postgres://bellhop@[2001:db8::1]/x", "2001:db8::1", "prefer"),
        ("postgres://bellhop@localhost/x?hostaddr=192.0.2.1", "192.0.2.1", "prefer"),
        ("postgres://bellhop@127.a.example.org/x", "127.a.example.org", "prefer"),
    ])
    func remoteServersWithoutVerification_areFound(_ url: String, _ hosts: String, _ mode: String) throws {
        let found = try #require(try DatabaseURL(url).unverified)
        #expect(found.hosts.joined(separator: ",") == hosts)
        #expect(found.sslMode == mode)
    }

    @Test(arguments: [
        "postgres://bellhop@db.example/x?sslmode=verify-full", "postgres://bellhop@db.example/x?sslrootcert=system",
        "postgres://bellhop@localhost/x", "postgres://bellhop@127.0.0.1:5433/x", "postgres://bellhop@[::1]/x",
        "postgres://bellhop@/x?host=/run/postgresql", "postgres:///x", "postgres:///x?service=other", "sqlite:a.sqlite",
    ])
    func verifiedServersAndThisMachine_areLeftAlone(_ url: String) throws {
        #expect(try DatabaseURL(url).unverified == nil)
    }

    @Test(arguments: [
        ("postgres://b:pla%nted@h/x", "a % is not followed by two hexadecimal digits"),
        ("postgres://b:planted%@h/x", "a % is not followed by two hexadecimal digits"),
        ("postgres://b:planted@[::1/x", "an IPv6 address must be between [ and ]"),
        ("postgres://b:planted%00@h/x", "it contains NUL"),
        ("postgres://b:planted/y@h/x", "percent-encode special characters"),
        ("postgres://b:5/planted@h/x", "percent-encode special characters"),
        ("postgres://b:y@planted@h/x", "percent-encode special characters"),
        ("postgres://b:planted@h/x?planted=1", "use only parameters that libpq supports"),
    ])
    func urlThatCannotBeRead_isExplainedWithoutIt(_ url: String, _ reason: String) throws {
        let error = #expect(throws: DatabaseError.self) { try DatabaseURL(url) }
        #expect(error?.code == .url)
        #expect(error?.detail.contains(reason) == true, "\(error?.detail ?? "")")
        #expect(error.map { "\($0)".contains("planted") || "\($0)".contains("pla%") } == false)
    }
}
