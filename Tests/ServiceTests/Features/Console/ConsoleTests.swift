import BellhopClient
import Foundation
import TestSupport
import Testing

@testable import Service

/// The page at `/` and its library, as they are served. `Tests/browser/page.py` tests their behavior.
@Suite(.timed) struct ConsoleTests {
    private static let origin = ["Origin": "https://app.example"]

    // MARK: The library

    @Test(arguments: [
        "/bellhop.js", "/bellhop-core.js", "/bellhop-features.js", "/bellhop-tabs.js", "/bellhop-worker.js",
        "/bellhop-offline.js", "/bellhop-push.js", "/bellhop-sw.js",
    ])
    func library_isAModule_askedForAgainEachTime(_ path: String) async throws {
        let service = try TestService.start()
        let answer = try await service.call("GET", path)
        #expect(answer.status == 200)
        #expect(answer[header: "Content-Type"] == "text/javascript; charset=utf-8")
        #expect(answer[header: "Cache-Control"] == "no-cache")
        let tag = try #require(answer[header: "ETag"])
        let again = try await service.call("GET", path, headers: ["If-None-Match": tag])
        #expect(again.status == 304)
        #expect(again.body.isEmpty)
        #expect(again[header: "ETag"] == tag)
    }

    /// Browsers fetch modules with CORS from any page. The header appears exactly once, whatever the setting says.
    @Test(arguments: ["", "*", "https://app.example"])
    func library_isReadByPagesOfAnyOrigin(_ corsOrigins: String) async throws {
        let service = try TestService.start(["corsOrigins": corsOrigins])
        let raw = try RawConnection(service.port)
        try raw.send("GET /bellhop.js HTTP/1.1\r\nHost: x\r\nOrigin: https://app.example\r\n\r\n")
        let head = try raw.read(until: "\r\n\r\n").lowercased()
        #expect(head.contains("\r\naccess-control-allow-origin: *\r\n"))
        #expect(head.components(separatedBy: "access-control-allow-origin").count == 2)
        #expect(!head.contains("access-control-allow-credentials"))
    }

    @Test(arguments: ["/bellhop.js", "/bellhop-tabs.js"])
    func library_hasItsWorkerBesideIt(_ path: String) async throws {
        let service = try TestService.start()
        let library = try await service.call("GET", path).text
        #expect(library.contains(#""./bellhop-worker.js",import.meta.url"#))
    }

    /// No part is fetched twice, whichever parts a page imports.
    @Test func library_partsImportFromTheCoreBesideThem() async throws {
        let service = try TestService.start()
        let features = try await service.call("GET", "/bellhop-features.js").text
        let imported = features.matches(of: /from"(?<path>[^"]+)"/).map { String($0.path) }
        #expect(Set(imported) == ["./bellhop-core.js"])
    }

    // MARK: The page

    @Test func page_loadsOwnFilesOnly_withoutInlineCode() async throws {
        let service = try TestService.start()
        let page = try await service.call("GET", "/")
        let policy = try #require(page[header: "Content-Security-Policy"])
        #expect(policy.hasPrefix("default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self'; "))
        #expect(!policy.contains("unsafe"))
        #expect(policy.contains("frame-ancestors 'none'"))
        #expect(!page.text.contains("<style"))
        #expect(!page.text.contains(" style="))
        #expect(!page.text.contains("<script>"))
        var files = page.text.matches(of: /(?:href|src)="(?<path>(?:console\/|bellhop)[^"]+)"/).map { String($0.path) }
        var seen: Set<String> = []
        while let path = files.popLast() {
            guard seen.insert(path).inserted else { continue }
            let file = try await service.call("GET", "/\(path)")
            #expect(file.status == 200, "\(path)")
            #expect(file[header: "ETag"] != nil)
            guard path.hasPrefix("console/") else { continue }
            files += file.text.matches(of: /from "\.\/(?<name>[^"]+)"|import "\.\/(?<effect>[^"]+)"/).map {
                "console/\($0.name ?? $0.effect ?? "")"
            }
        }
        #expect(seen.count == 14, "\(seen.sorted())")
        #expect(try await service.call("GET", "/console/nothing.js").status == 404)
    }

    @Test func page_isAskedForAgain_andAnsweredBy304() async throws {
        let service = try TestService.start()
        let tag = try #require(try await service.call("GET", "/")[header: "ETag"])
        #expect(try await service.call("GET", "/", headers: ["If-None-Match": tag]).status == 304)
    }

    /// The two forms of a file have different tags, and a cache keeps them apart.
    @Test(arguments: [
        "/bellhop.js", "/openapi.json", "/openapi.yaml", "/", "/docs", "/console/app.js", "/console/console.css",
    ])
    func files_areCompressedForClientsThatAcceptIt(_ path: String) async throws {
        let service = try TestService.start()
        let raw = try RawConnection(service.port)
        func get(_ fields: String) throws -> RawConnection.Answer {
            try raw.send("GET \(path) HTTP/1.1\r\nHost: x\r\n\(fields)\r\n")
            return try raw.readAnswer()
        }
        let plain = try get("")
        #expect(plain.headers["content-encoding"] == nil)
        #expect(plain.headers["vary"] == "Accept-Encoding")
        for refusal in ["gzip;q=0", "br", "gzip;q=0, *", "identity"] {
            #expect(try get("Accept-Encoding: \(refusal)\r\n").headers["content-encoding"] == nil, "\(refusal)")
        }
        for acceptance in ["gzip", "br, GZIP;q=0.5", "*", "deflate, *;q=0.1"] {
            let small = try get("Accept-Encoding: \(acceptance)\r\n")
            #expect(small.headers["content-encoding"] == "gzip", "\(acceptance)")
            #expect(small.headers["vary"] == "Accept-Encoding")
            #expect(small.body.count < plain.body.count * 2 / 3)
            let tag = try #require(small.headers["etag"])
            #expect(tag != plain.headers["etag"])
            #expect(try get("Accept-Encoding: \(acceptance)\r\nIf-None-Match: \(tag)\r\n").status == 304)
            #expect(try get("If-None-Match: \(tag)\r\n").status == 200)
        }
        #expect(try get("Accept-Encoding: br\r\nAccept-Encoding: gzip\r\n").headers["content-encoding"] == "gzip")
        // The client decompresses it.
        let read = try await service.call("GET", path, headers: ["Accept-Encoding": "gzip"])
        #expect(read.body.elementsEqual(plain.body))
    }

    // MARK: Development tokens

    /// Other possible callers: another page in the browser, a page whose host name resolves to this server, or a
    /// program.
    @Test(arguments: [
        ("127.0.0.1:80", "same-origin", true), ("localhost", "same-origin", true), ("[::1]:80", "same-origin", true),
        ("127.0.0.1:80", "cross-site", false), ("127.0.0.1:80", "same-site", false), ("127.0.0.1:80", "none", false),
        ("evil.example:80", "same-origin", false), ("127.0.0.1.evil.example", "same-origin", false),
        ("[::1].evil.example", "same-origin", false), ("[::1]evil.example:80", "same-origin", false),
        ("[::1", "same-origin", false), ("localhost:evil.example", "same-origin", false),
        ("127.1.evil", "same-origin", false), ("[evil.example]", "same-origin", false), ("", "same-origin", false),
    ])
    func developmentTokens_areServedToLoopbackOnly(_ host: String, _ site: String, _ isTold: Bool) async throws {
        let service = try TestService.start(["consoleTokens": "a.b.c,d.e.f", "corsOrigins": "*"])
        let raw = try RawConnection(service.port)
        try raw.send("GET /console/tokens HTTP/1.1\r\nHost: \(host)\r\nSec-Fetch-Site: \(site)\r\n\r\n")
        let answer = try raw.readAnswer()
        #expect(answer.status == 200)
        #expect(
            String(decoding: answer.body, as: UTF8.self).contains(
                isTold ? #"{"tokens":["a.b.c","d.e.f"]}"# : #"{"tokens":[]}"#))
    }

    @Test(arguments: ["0.0.0.0", "::", "10.0.0.7", "127.example"])
    func developmentTokens_areRefusedForAPublicService(_ host: String) throws {
        #expect(throws: Settings.Mistake.self) {
            try TestService.settings(["jwtSecret": TestService.secret, "consoleTokens": "a.b.c", "host": host])
        }
    }
}
