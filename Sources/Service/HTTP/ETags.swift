import MicroHTTP
import Realtime
import Values

/// An entity tag (RFC 9110, 8.8.3). All are made here: `"<version>-<epoch>-<whose>"`.
///
/// A version alone says little: two users see different things in the same version of a session or a leaderboard, and a
/// database that was restored counts on from a version that clients have seen with another content. So a tag is of one
/// version in one epoch, as one caller is shown it, and confirms nothing else.
struct EntityTag: Sendable {
    /// With its quotes, in ASCII.
    let bytes: [UInt8]

    /// - Parameter variant: what else the answer depends on, of what one address may be asked for.
    init(_ version: some BinaryInteger, in epoch: String, for caller: Caller, variant: String = "") {
        self.init(epoch, caller, variant) { $0.append(decimal: Int64(version)) }
    }

    /// For what changes without any version: the bytes are their own.
    init(content: [UInt8], in epoch: String, for caller: Caller) {
        self.init(epoch, caller, "") { OpaqueID(bits: FNV1a.hash(content)).append(to: &$0) }
    }

    /// For what everybody is shown alike.
    init(ofAll content: [UInt8]) { bytes = Array("\"\(OpaqueID(bits: FNV1a.hash(content)).text)\"".utf8) }

    private init(_ epoch: String, _ caller: Caller, _ variant: String, version: (inout [UInt8]) -> Void) {
        // A variant has no NUL.
        let whose = FNV1a.hash(variant.utf8, after: FNV1a.hash(CollectionOfOne(0), after: caller.digest))
        var bytes: [UInt8] = []
        bytes.reserveCapacity(64)
        bytes.append(UInt8(ascii: "\""))
        version(&bytes)
        bytes.append(UInt8(ascii: "-"))
        bytes.append(contentsOf: epoch.utf8)
        bytes.append(UInt8(ascii: "-"))
        OpaqueID(bits: whose).append(to: &bytes)
        bytes.append(UInt8(ascii: "\""))
        self.bytes = bytes
    }

    /// The version that a tag names in an epoch; nil for a tag of another epoch, or of no version. Whose it is does not
    /// matter for what is to be changed, and may be missing: `"3-k3f9ab"` is made of an event's `version` and `epoch`.
    static func version(namedBy tag: String, in epoch: String) -> Int? {
        let parts = unquoted(tag).split(separator: "-", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count >= 2, parts[1] == epoch else { return nil }
        return Int(parts[0])
    }

    /// What a tag says, whether it is a weak one or lacks its quotes.
    static func unquoted(_ tag: String) -> String {
        var text = tag.drop { $0 == " " }
        if text.hasPrefix("W/") { text = text.dropFirst(2) }
        while text.last == " " { text = text.dropLast() }
        guard text.count >= 2, text.first == "\"", text.last == "\"" else { return String(text) }
        return String(text.dropFirst().dropLast())
    }
}

extension Response {
    /// A file of the binary, for everybody: asked for again each time, and mostly answered by a 304.
    static func file(_ content: [UInt8], type: String, headers: HeaderFields = []) -> Response {
        var headers = headers
        headers.append("Content-Type", type)
        headers.append("Cache-Control", "no-cache")
        headers.append("ETag", String(decoding: EntityTag(ofAll: content).bytes, as: UTF8.self))
        return Response(status: 200, headers: headers, body: .shared(SharedBody(content)))
    }
}

extension Request {
    /// The tag, if `If-None-Match` names it; it is not even made for a request without that header.
    func seen(_ tag: @autoclosure () -> EntityTag) -> EntityTag? {
        withHeader("If-None-Match") { header in
            guard let header else { return nil }
            let tag = tag()
            return tag.bytes.withUnsafeBufferPointer { EntityTag.isNamed($0, by: header) } ? tag : nil
        }
    }

    /// Whether `If-None-Match` names the tag of an answer.
    func hasSeen(_ response: Response) -> Bool {
        withHeader("If-None-Match") { header in
            guard let header, let tag = response.headers["ETag"] else { return false }
            return tag.withUTF8Bytes { EntityTag.isNamed($0, by: header) }
        }
    }
}

extension EntityTag {
    /// Whether an `If-None-Match` names a tag. Tags are compared weakly (RFC 9110, 13.1.2).
    static func isNamed(_ tag: UnsafeBufferPointer<UInt8>, by header: UnsafeBufferPointer<UInt8>) -> Bool {
        // As it was sent out: what nearly every poll has.
        if header.isSame(as: tag) { return true }
        let wanted = unquoted(String(decoding: tag, as: UTF8.self))
        return String(decoding: header, as: UTF8.self).split(separator: ",").contains { candidate in
            let text = candidate.drop { $0 == " " }
            return text == "*" || unquoted(String(text)) == wanted
        }
    }
}

extension Transaction {
    /// The tag of what the caller is shown in a version.
    func tag(_ version: some BinaryInteger, variant: String = "") -> EntityTag {
        EntityTag(version, in: epoch, for: caller, variant: variant)
    }
}
