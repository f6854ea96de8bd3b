import BellhopClient
import Database
import Foundation
import TestSupport
import Testing
import Yams

@testable import Service

/// What belongs to a feature set that is off has no route, no description and no other trace; what is on is unchanged.
@Suite(.timed) struct FeatureSetTests {
    static let sets = FeatureSet.allCases

    private static func names(_ sets: some Sequence<FeatureSet>) -> String {
        sets.map(\.rawValue).sorted().joined(separator: ",")
    }

    private static func start(without off: FeatureSet...) throws -> TestService {
        try TestService.start(["features": names(sets.filter { !off.contains($0) })])
    }

    /// Routes of the whole service by set, from `bellhop routes`.
    private static let routes = Operations.routes.filter { $0.method != "GET" || $0.pattern != "/v1/stream" }

    /// An address of a pattern.
    private static func path(_ pattern: String) -> String {
        pattern.replacing(/\{[^}]+\}/, with: "x1")
    }

    // MARK: Routes

    @Test(arguments: sets) func routesOfASetThatIsOff_areNotFound_whoeverAsks(off: FeatureSet) async throws {
        let service = try Self.start(without: off)
        var counts = (off: 0, on: 0)
        for route in Self.routes {
            let path = Self.path(route.pattern)
            // A body that is no JSON, and one above every limit, are not looked at.
            let bodies: [String?] =
                route.method == "GET" ? [nil] : [nil, "{", String(repeating: "x", count: 2_000_000)]
            for identity in [nil, TestService.Identity.user("ada"), .service()] {
                for body in route.set == off ? bodies : [nil] {
                    let answer = try await service.call(route.method, path, as: identity, body)
                    let isOff = answer.refusal == "404 feature.off"
                    #expect(isOff == (route.set == off), "\(route.method) \(path): \(answer.status)")
                    if isOff {
                        #expect(answer.json["detail"].string?.contains("off on this server (BELLHOP_FEATURES)") == true)
                        counts.off += 1
                    } else {
                        counts.on += 1
                    }
                }
            }
        }
        #expect(counts.off > 0 && counts.on > 0)
    }

    /// Every route of every set, all sets off.
    @Test func alwaysOn_isWhatBelongsToNoSet() async throws {
        // At least one set is on: an empty setting is a mistake.
        let service = try TestService.start(["features": "publish"])
        for route in Self.routes where route.set == nil {
            let answer = try await service.call(route.method, Self.path(route.pattern), as: .service(), nil as JSON?)
            #expect(answer.refusal != "404 feature.off", "\(route.method) \(route.pattern)")
        }
        #expect(try await service.call("GET", "/v1/badges", as: .user("ada"), nil as JSON?).status == 200)
    }

    // MARK: Descriptions

    @Test(arguments: sets) func descriptions_doNotNameWhatIsOff(off: FeatureSet) async throws {
        let service = try Self.start(without: off)
        let features = Catalog.features()
        let events = Set(features.filter { $0.set == off }.flatMap(\.events))
        let open = try await service.call("GET", "/openapi.json", nil as JSON?).json
        let described = Set(
            (open["paths"].object ?? [:]).flatMap { path, item in
                (item.object ?? [:]).keys.filter { $0 != "parameters" }.map { "\($0.uppercased()) \(path)" }
            })
        let expected = Set(Operations.routes.filter { $0.set != off }.map { "\($0.method) \($0.pattern)" })
        #expect(described == expected)
        // Neither an event, nor a tag, nor a component that only those used.
        for (place, document) in [
            ("openapi", open), ("asyncapi", try await service.call("GET", "/asyncapi.json", nil as JSON?).json),
        ] {
            let texts = Self.texts(of: document)
            #expect(events.isDisjoint(with: texts), "\(place): \(events.intersection(texts))")
            let references = Self.references(in: document)
            for (kind, named) in document["components"].object ?? [:] where kind != "securitySchemes" {
                let known = Set((named.object ?? [:]).keys.map { "#/components/\(kind)/\($0)" })
                #expect(known.isSubset(of: references), "\(place) keeps \(known.subtracting(references))")
            }
            for reference in references where reference.hasPrefix("#/components/") {
                let parts = reference.split(separator: "/").map(String.init)
                #expect(document["components"][parts[2]][parts[3]].object != nil, "\(place) lacks \(reference)")
            }
        }
        let tags = Set((open["tags"].array ?? []).compactMap { $0["name"].string })
        let used = Set(Self.operations(open).flatMap { $0["tags"].array ?? [] }.compactMap(\.string))
        #expect(tags == used)
        // The same document, in both forms.
        let yaml = try await service.call("GET", "/openapi.yaml", nil as JSON?).text
        let root = try #require(try Yams.compose(yaml: yaml))
        #expect(Set(root["paths"]?.mapping?.keys.compactMap(\.string) ?? []) == Set((open["paths"].object ?? [:]).keys))
        #expect(root["components"]?["schemas"]?.mapping?.count == open["components"]["schemas"].object?.count)
    }

    /// All sets are served as the contract is written.
    @Test func withAllSets_theDocumentIsTheContract() async throws {
        let service = try TestService.start()
        let served = try await service.call("GET", "/openapi.yaml", nil as JSON?).text
        #expect(served == String(decoding: Resource.bytes("openapi.yaml"), as: UTF8.self))
    }

    /// The tags of the contract name the set of their operations.
    @Test func tags_nameTheSetOfTheirOperations() throws {
        let text = String(decoding: Resource.bytes("openapi.yaml"), as: UTF8.self)
        let document = try #require(try Yams.compose(yaml: text))
        let sets = Dictionary(
            uniqueKeysWithValues: (document["tags"]?.sequence ?? []).map {
                ($0["name"]?.string ?? "", $0["x-set"]?.string)
            })
        for route in Operations.routes {
            let operation = document["paths"]?[route.pattern]?[route.method.lowercased()]
            let tag = try #require(operation?["tags"]?.sequence?.first?.string)
            #expect(sets[tag] == route.set?.rawValue, "\(route.method) \(route.pattern)")
        }
    }

    @Test(arguments: sets) func configuration_namesTheSets_andHasNoConstantsOfOthers(off: FeatureSet) async throws {
        let service = try Self.start(without: off)
        let constants = try await service.call("GET", "/v1/config", nil as JSON?).json
        #expect(constants["features"].array?.compactMap(\.string) == Self.sets.filter { $0 != off }.map(\.rawValue))
        let settings = service.app.runner.settings
        for feature in Catalog.features() {
            for name in feature.constantNames(settings) {
                #expect((constants[name] == .null) == (feature.set == off), "\(name)")
            }
        }
        // The description lists just what the answer has.
        let open = try await service.call("GET", "/openapi.json", nil as JSON?).json
        let members = Set((open["components"]["schemas"]["Config"]["properties"].object ?? [:]).keys)
        #expect(members == Set((constants.object ?? [:]).keys))
    }

    // MARK: Work, metrics, topics

    @Test(arguments: sets) func aSetThatIsOff_doesNoPeriodicWork_exceptTidying(off: FeatureSet) throws {
        let (all, some) = (Catalog.features(), Catalog.features(on: Set(Self.sets).subtracting([off])))
        for (feature, present) in zip(all, some) where feature.set == off {
            #expect(present.ticks.map(\.name) == feature.ticks.filter(\.isTidying).map(\.name))
            #expect(present.reaction == nil && present.live.isEmpty && present.events.isEmpty)
            // What is stored keeps its promises.
            #expect(present.sweeps.map(\.name) == feature.sweeps.map(\.name))
            #expect(present.audits.map(\.name) == feature.audits.map(\.name))
            #expect(present.personSteps.count == feature.personSteps.count)
            #expect(present.tables.map(\.name) == feature.tables.map(\.name))
        }
    }

    @Test func requestsToASetThatIsOff_haveNoMetricsOfTheirOwn() async throws {
        let service = try Self.start(without: .chat)
        _ = try await service.call("GET", "/v1/conversations", as: .user("ada"), nil as JSON?)
        let metrics = try await service.call("GET", "/metrics", nil as JSON?).text
        #expect(!metrics.contains("/v1/conversations"))
        #expect(metrics.contains(#"bellhop_http_requests_total{method="other",route="none",status="404"} 1"#))
    }

    @Test(arguments: [
        (FeatureSet.shops, "queue:s1"), (.shops, "dj:s1"), (.challenges, "leaderboard:c1"),
    ]) func topics_ofASetThatIsOff_areRefused(off: FeatureSet, topic: String) async throws {
        let service = try Self.start(without: off)
        let ada = TestService.Identity.user("ada")
        let ticket = try await service.call("POST", "/v1/stream-tickets", as: ada, ["topics": [.string(topic)]])
        #expect(ticket.refusal == "422 feature.off")
        #expect(ticket.json["errors"][0]["pointer"].string == "/topics/0")
        let stream = try await service.call("GET", "/v1/stream?topics=\(topic)", as: ada, nil as JSON?)
        #expect(stream.refusal == "422 feature.off")
        // An unknown topic is told those that are on.
        let unknown = try await service.call("POST", "/v1/stream-tickets", as: ada, ["topics": ["nothing:1"]])
        #expect(unknown.refusal == "422 request.invalid")
        let prefix = topic.prefix { $0 != ":" }
        #expect(!(unknown.json["errors"][0]["detail"].string ?? "").contains("\(prefix):"))
    }

    @Test func tables_ofASetThatIsOff_areRefused() async throws {
        let ada = TestService.Identity.user("ada")
        for (off, schema, table) in [
            (FeatureSet.social, "bellhop", "posts"), (.rows, "public", "attendance"),
        ] {
            let service = try Self.start(without: off)
            let stream = try await service.listen(as: ada)
            defer { stream.close() }
            let id = try #require(try JSON(parsing: Data(stream.ready.data.utf8))["streamId"].string)
            let answer = try await service.call(
                "PUT", "/v1/streams/\(id)/subscriptions", as: ada,
                ["tables": [["schema": .string(schema), "table": .string(table)]]])
            #expect(answer.refusal == "422 feature.off", "\(answer.text)")
            #expect(answer.json["errors"][0]["pointer"].string == "/tables/0/table")
        }
    }

    // MARK: Stored data

    /// What was stored while a set was on is there when it is on again, and its events are skipped meanwhile.
    @Test func data_staysAndComesBack_andItsEventsAreSkipped() async throws {
        let service = try TestService.start()
        let (ada, bob) = (TestService.Identity.user("ada"), TestService.Identity.user("bob"))
        let position = try await service.position(as: bob)
        let created = try await service.call(
            "POST", "/v1/conversations", as: ada, ["memberIds": ["bob"], "title": "Trip"])
        let id = try #require(created.json["id"].string)
        let message = try await service.call(
            "POST", "/v1/conversations/\(id)/messages", as: ada, ["text": "hello"])
        #expect(message.status == 201, "\(message.text)")
        try await service.restart(with: ["features": Self.names(Self.sets.filter { $0 != .chat })])
        let stream = try await service.listen(as: bob, lastEventID: position)
        _ = try await service.call(
            "POST", "/v1/publish", as: .service(), ["event": "app:mark", "to": ["user:bob"], "data": [:]])
        let seen = try await stream.upTo("app:mark")
        #expect(!seen.contains { $0.hasPrefix("message:") || $0.hasPrefix("conversation:") }, "\(seen)")
        #expect(seen.first == "app:mark" || seen.contains("badges:update"), "\(seen)")
        stream.close()
        try await service.restart(with: ["features": "all"])
        let list = try await service.call("GET", "/v1/conversations", as: bob, nil as JSON?)
        #expect(list.items.count == 1, "\(list.text)")
        let again = try await service.listen(as: bob, lastEventID: position)
        #expect(try await again.upTo("app:mark").contains("message:created"))
        again.close()
    }

    /// A booking without the bell makes no notification.
    @Test func reactions_ofASetThatIsOff_doNotRun() async throws {
        let service = try Self.start(without: .bell)
        let ada = TestService.Identity.user("ada")
        let request = try await service.call(
            "POST", "/v1/requests", as: ada, ["toUserId": "bob", "kind": "friend", "fromName": "Ada"])
        #expect(request.status == 201, "\(request.text)")
        let count = try service.app.store.read { try $0.integer("SELECT count(*) FROM notifications") }
        #expect(count == 0)
        #expect(try await service.call("GET", "/v1/badges", as: .user("bob"), nil as JSON?).json["requests"].int == 1)
    }

    // MARK: The setting

    @Test(arguments: [
        ("bells", "bells is not a feature set; did you mean bell?"),
        (
            "everything",
            "everything is not a feature set; known are bell, chat, requests, social, shops, challenges, rows, publish"
        ),
        ("bell,all", "all stands alone"), (",", "must not be empty"),
    ]) func anUnknownSet_endsTheStart(text: String, reason: String) throws {
        let mistake = #expect(throws: Settings.Mistake.self) {
            _ = try TestService.settings(["jwtSecret": TestService.secret, "features": text])
        }
        #expect(mistake?.description == "features (BELLHOP_FEATURES): \(reason)")
    }

    @Test func aSource_needsRows() throws {
        let mistake = #expect(throws: Settings.Mistake.self) {
            _ = try TestService.settings([
                "jwtSecret": TestService.secret, "features": "bell", "source": "postgres://app@127.0.0.1/app",
            ])
        }
        #expect(mistake?.description.hasSuffix("needs the feature set rows, which is off (BELLHOP_FEATURES)") == true)
    }

    /// A rule about contacts that nothing asks would promise protection.
    @Test(arguments: [
        ("requests: []", "chat,social", "contacts.requests needs the feature set requests, which is off"),
        ("conversations: []", "requests,social", "contacts.conversations needs the feature set chat, which is off"),
        ("follows: []", "chat,requests", "contacts.follows needs the feature set social, which is off"),
        (
            "requests: {any: [everyone], not: ['blocked-by:{user}']}", "requests",
            "contacts.requests.not needs the feature set rows, which is off"
        ),
    ])
    func contacts_needTheirSet(rule: String, others: String, reason: String) throws {
        let directory = try TemporaryDirectory()
        let file = directory.file("tables.yaml")
        let blocks = """
            tables: [{table: blocks, primaryKey: [id], tenant: {constant: default}, audience: {select: ['user:{a}']},
              memberships: [{name: blocked, subject: 'user:{b}', grants: 'blocked-by:{a}'}]}]
            """
        try "version: 1\ncontacts: {\(rule)}\n\(blocks)\n".write(toFile: file, atomically: true, encoding: .utf8)
        let mistake = #expect(throws: Settings.Mistake.self) {
            _ = try TestService.settings(["jwtSecret": TestService.secret, "features": others, "tables": file])
        }
        #expect(mistake?.description.contains(reason) == true, "\(mistake as Any)")
    }

    // MARK: Reading documents

    private static func operations(_ open: JSON) -> [JSON] {
        (open["paths"].object ?? [:]).values.flatMap { ($0.object ?? [:]).filter { $0.key != "parameters" }.values }
    }

    /// The keys and the texts of a document.
    private static func texts(of document: JSON) -> Set<String> {
        var found: Set<String> = []
        func walk(_ value: JSON) {
            if let text = value.string { found.insert(text) }
            for (key, member) in value.object ?? [:] {
                found.insert(key)
                walk(member)
            }
            for element in value.array ?? [] { walk(element) }
        }
        walk(document)
        return found
    }

    private static func references(in document: JSON) -> Set<String> {
        texts(of: document).filter { $0.hasPrefix("#/components/") }
    }
}

extension StreamListener {
    /// Returns the names of the events up to one.
    fileprivate func upTo(_ name: String) async throws -> [String] {
        var seen: [String] = []
        while seen.last != name { seen.append(try await next().name) }
        return seen
    }
}
