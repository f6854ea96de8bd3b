#if DEBUG
    import Foundation
    import Glibc
    import MicroHTTP
    import OutboundHTTP
    import Realtime
    import Threads
    import Values

    /// Writes what leaves this process to a file of its own, one JSON object a line.
    ///
    /// Of exits with the same facts (``JSONFacts``), only the first is written. So a file has a few hundred lines for each
    /// operation, however long the process runs. Each line is written at once: a killed process loses no line.
    final class ExitRecorder: Sendable {
        enum Kind: String, JSONWritable {
            case answer, event, webhook, push

            func group(of name: String) -> UInt64 { FNV1a.hash(name.utf8, after: FNV1a.hash(rawValue.utf8)) }
        }

        private struct State {
            var facts: Set<UInt64> = []
            /// Lines of each group.
            var counts: [UInt64: Int] = [:]
        }

        private let file: Int32
        private let state = Locked(State())

        /// Groups that are recorded. Paths that do not exist are without end.
        private static let groupsMax = 4000
        /// Lines of one group. Free texts, such as an app's own events, have new facts without end.
        private static let linesMax = 400
        /// A larger body is recorded without its content, so that one test cannot fill the disk.
        private static let bodyBytesMax = 1 << 20
        /// The maximum length of a header's first word that is a fact of its own. Longer words may be random.
        private static let wordBytesMax = 10

        init(folder: String) {
            let path = "\(folder)/\(getpid())-\(UInt64.random(in: 0 ... .max)).jsonl"
            file = open(path, O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0o644)
            precondition(file >= 0, "TEST_EXITS: \(path) cannot be written: \(String(cString: strerror(errno)))")
        }

        // MARK: Exits

        func note(_ response: inout Response, to request: Request) {
            let endpoint = RequestTrace.of(request).endpoint
            let answer = AnswerHead(
                method: request.method.rawValue, route: endpoint?.route ?? "none", path: request.path,
                status: response.status, headers: response.headers)
            switch response.body {
            case .none: note(answer, [])
            case .shared: note(answer, nil)
            case .bytes(let bytes): note(answer, answer.isJSON ? bytes : nil)
            case .pieces(let pieces):
                let whole = Locked([UInt8]())
                response.body = .pieces(
                    pieces.watched { [self] piece in
                        switch piece {
                        case .bytes(let bytes): whole.withLock { $0 += bytes }
                        case .end: note(answer, whole.withLock(\.self))
                        case .failed: break
                        }
                    })
            }
        }

        /// Notes the events in bytes for a stream. Comments, and ids without an event, are left out.
        func note(events bytes: UnsafeRawBufferPointer) {
            var (name, data): (String?, [UInt8]) = (nil, [])
            var rest = bytes
            while let start = rest.baseAddress, let end = memchr(start, 0x0A, rest.count) {
                let line = UnsafeRawBufferPointer(start: start, count: UnsafeRawPointer(end) - start)
                rest = UnsafeRawBufferPointer(rebasing: rest[(line.count + 1)...])
                if line.isEmpty {
                    if let name { note(event: data, named: name) }
                    (name, data) = (nil, [])
                } else if line.starts(with: "event: ".utf8) {
                    name = String(decoding: line.dropFirst(7), as: UTF8.self)
                } else if line.starts(with: "data: ".utf8) {
                    if !data.isEmpty { data.append(0x0A) }
                    data += line.dropFirst(6)
                }
            }
        }

        private func note(event data: [UInt8], named name: String) {
            let group = Kind.event.group(of: name)
            guard isNew(Self.facts(of: data, about: group), in: group) else { return }
            write { line in
                line.member("kind", Kind.event)
                line.member("name", name)
                line.member(body: data)
            }
        }

        /// Notes a request of the service, with its headers.
        ///
        /// - Parameter payload: What the request contains, if its body is encrypted.
        func note(_ request: OutboundPost, as kind: Kind, named name: String, payload: [UInt8]? = nil) {
            let (group, body) = (kind.group(of: name), payload ?? request.body)
            let headers = [(name: "content-type", value: request.contentType)] + request.headers
            let facts = Self.facts(of: headers, about: group) + Self.facts(of: body, about: group)
            guard isNew(facts, in: group) else { return }
            write { line in
                line.member("kind", kind)
                line.member("name", name)
                line.member("headers", headers) { line, field in
                    line.member("name", field.name)
                    line.member("value", field.value)
                }
                line.member(body: body)
            }
        }

        private func note(_ answer: AnswerHead, _ body: [UInt8]?) {
            let group = answer.group
            var facts = answer.facts(about: group)
            if let body, !body.isEmpty { facts += Self.facts(of: body, about: group) }
            guard isNew(facts, in: group) else { return }
            write { line in
                line.member("kind", Kind.answer)
                line.member("method", answer.method)
                line.member("route", answer.route)
                line.member("path", answer.path)
                line.member("status", answer.status)
                line.member("headers", answer.headers) { line, field in
                    line.member("name", field.name)
                    line.member("value", field.value)
                }
                if let body, body.count <= Self.bodyBytesMax { line.member(body: body) }
            }
        }

        // MARK: Facts

        /// Returns the facts about the headers of a request: their names together, and of each value the length and the
        /// first word. The rest is random in signatures, tokens and ids.
        private static func facts(of headers: [(name: String, value: String)], about group: UInt64) -> [UInt64] {
            var fields = group
            var facts: [UInt64] = []
            for (name, value) in headers {
                let field = FNV1a.hash(name.utf8, after: group)
                fields = JSONFacts.mix(fields, field)
                let word = value.utf8.prefix { $0 != 0x20 }
                let isName = word.count <= wordBytesMax && word.allSatisfy { (0x61...0x7A).contains($0 | 0x20) }
                let shape = isName ? FNV1a.hash(word, after: field) : field
                facts.append(JSONFacts.mix(shape, UInt64(min(value.utf8.count, 64))))
            }
            return facts + [fields]
        }

        private static func facts(of body: [UInt8], about group: UInt64) -> [UInt64] {
            let facts = body.withUnsafeBufferPointer { JSONFacts.of($0, about: group) }
            return facts ?? [FNV1a.hash(body.prefix(64), after: group)]
        }

        private func isNew(_ facts: [UInt64], in group: UInt64) -> Bool {
            state.withLock { state in
                var isNew = false
                for fact in facts where state.facts.insert(fact).inserted { isNew = true }
                guard isNew, state.counts[group] != nil || state.counts.count < Self.groupsMax else { return false }
                state.counts[group, default: 0] += 1
                return state.counts[group, default: 0] <= Self.linesMax
            }
        }

        private func write(_ members: (inout JSONWriter) -> Void) {
            let line = JSONWriter.object(members) + [UInt8(ascii: "\n")]
            // The kernel appends each line as a whole.
            _ = line.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
        }
    }

    /// The head of an answer.
    private struct AnswerHead {
        let method: String
        let route: String
        let path: String
        let status: Int
        let headers: HeaderFields

        var isJSON: Bool { headers["Content-Type"].map { $0.hasSuffix("json") } ?? true }

        /// Answers that are refused before their operation is known are grouped by their paths without ids.
        var group: UInt64 {
            let words =
                route == "none" ? path.split(separator: "/").prefix(8).filter(Self.isWord).joined(separator: "/") : ""
            return FNV1a.hash("\(method) \(route)\(words) \(status)".utf8)
        }

        private static func isWord(_ part: Substring) -> Bool {
            part.utf8.count <= 24 && part.utf8.allSatisfy { (0x2D...0x2E).contains($0) || (0x61...0x7A).contains($0) }
        }

        func facts(about group: UInt64) -> [UInt64] {
            var fields = group
            var facts: [UInt64] = []
            for (name, value) in headers {
                let field = FNV1a.hash(name.utf8, after: group)
                fields = JSONFacts.mix(fields, field)
                let json = JSONWriter.bytes(value)
                facts += json.withUnsafeBufferPointer { JSONFacts.of($0, about: field) } ?? []
            }
            return facts + [fields]
        }
    }

    extension JSONWriter {
        /// Writes a body as text, or in Base64 if it is not UTF-8.
        fileprivate mutating func member(body: [UInt8]) {
            if let text = String(validating: body, as: UTF8.self) {
                member("body", text)
            } else {
                member("bytes", RFC4648.encode(body))
            }
        }
    }
#endif
