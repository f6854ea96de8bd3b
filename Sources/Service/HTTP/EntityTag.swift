import MicroHTTP
import Realtime
import Values

/// An entity tag (RFC 9110 §8.8.3), in the form `"<version>-<epoch>-<whose>"`. All tags are made here.
///
/// A version alone is not enough. Two users see different contents in the same version of a session or a leaderboard. A
/// restored database reuses versions that clients have seen with other content. A tag therefore identifies one version
/// in one epoch as one caller sees it.
struct EntityTag: Sendable {
    /// With its quotes, in ASCII.
    let bytes: [UInt8]

    /// - Parameter variant: further inputs of the answer, if one address has several answers.
    init(_ version: some BinaryInteger, in epoch: String, for caller: Caller, variant: String = "") {
        self.init(epoch, caller, variant) { $0.append(decimal: Int64(version)) }
    }

    /// Makes a tag from the content, for resources without a version.
    init(content: [UInt8], in epoch: String, for caller: Caller) {
        self.init(epoch, caller, "") { OpaqueID(bits: FNV1a.hash(content)).append(to: &$0) }
    }

    /// Makes a tag for content that is the same for all callers.
    init(ofAll content: [UInt8]) { bytes = Array("\"\(OpaqueID(bits: FNV1a.hash(content)).text)\"".utf8) }

    private init(_ epoch: String, _ caller: Caller, _ variant: String, version: (inout [UInt8]) -> Void) {
        // The separator is unambiguous, because a variant contains no NUL.
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

    /// Returns the versions that the tags of an `If-Match` header name in an epoch. Tags of another epoch or without a
    /// version are left out. A write ignores the caller's part, which may be missing: clients can form `"3-k3f9ab"`
    /// from an event's `version` and `epoch`. It also ignores what a proxy has added, because a version is exact.
    static func versions(namedBy header: UnsafeBufferPointer<UInt8>, in epoch: String) -> [Int] {
        var versions: [Int] = []
        forEachTag(in: header) { tag in
            let parts = String(decoding: tag, as: UTF8.self).split(
                separator: "-", maxSplits: 2, omittingEmptySubsequences: false)
            if parts.count >= 2, parts[1] == epoch, let version = Int(parts[0]) { versions.append(version) }
            return true
        }
        return versions
    }
}

extension Request {
    /// Returns the tag if `If-None-Match` names it. Without that header, the tag is not even computed.
    func seen(_ tag: @autoclosure () -> EntityTag) -> EntityTag? {
        withHeader("If-None-Match") { header in
            guard let header else { return nil }
            let tag = tag()
            return tag.bytes.withUnsafeBufferPointer { EntityTag.isNamed($0, by: header) } ? tag : nil
        }
    }

    /// Returns whether `If-None-Match` names the tag of a response.
    func hasSeen(_ response: Response) -> Bool {
        withHeader("If-None-Match") { header in
            guard let header, let tag = response.headers["ETag"] else { return false }
            return tag.withUTF8Bytes { EntityTag.isNamed($0, by: header) }
        }
    }
}

extension EntityTag {
    /// Returns whether an `If-None-Match` header names a tag. Tags are compared weakly (RFC 9110 §13.1.2).
    static func isNamed(_ tag: UnsafeBufferPointer<UInt8>, by header: UnsafeBufferPointer<UInt8>) -> Bool {
        // The fast path for nearly every poll: the tag exactly as it was sent.
        if header.isSame(as: tag) || header.count == 1 && header[0] == UInt8(ascii: "*") { return true }
        let wanted = UnsafeBufferPointer(rebasing: tag.dropFirst().dropLast())
        var isNamed = false
        forEachTag(in: header) { candidate in
            isNamed = isMarked(candidate, wanted)
            return !isNamed
        }
        return isNamed
    }

    /// Whether a tag is the wanted one, or that with the mark of a proxy that compresses: Apache, Caddy and Jetty add the
    /// coding (`-gzip`, `--gzip`). The content behind the mark is the same.
    private static func isMarked(_ tag: Slice<UnsafeBufferPointer<UInt8>>, _ wanted: UnsafeBufferPointer<UInt8>) -> Bool
    {
        guard tag.count >= wanted.count, tag.prefix(wanted.count).elementsEqual(wanted) else { return false }
        let mark = tag.dropFirst(wanted.count)
        return mark.isEmpty || marks.contains { mark.elementsEqual($0.utf8) }
    }

    private static let marks = ["-gzip", "--gzip", "-br", "-zstd", "-deflate"]

    /// Calls the body with the content of each tag of a list (RFC 9110 §8.8.3), for weak tags and for tags without
    /// quotes too. The body returns false to end.
    private static func forEachTag(
        in header: UnsafeBufferPointer<UInt8>, _ body: (Slice<UnsafeBufferPointer<UInt8>>) -> Bool
    ) {
        let (quote, comma) = (UInt8(ascii: "\""), UInt8(ascii: ","))
        func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
        var rest = header[...]
        while true {
            rest = rest.drop { isBlank($0) || $0 == comma }
            guard !rest.isEmpty else { return }
            if rest.first == UInt8(ascii: "W"), rest.dropFirst().first == UInt8(ascii: "/") { rest = rest.dropFirst(2) }
            var tag: Slice<UnsafeBufferPointer<UInt8>>
            if rest.first == quote {
                tag = rest.dropFirst().prefix { $0 != quote }
                rest = header[tag.endIndex...].drop { $0 != comma }
            } else {
                tag = rest.prefix { $0 != comma }
                rest = header[tag.endIndex...]
                while let last = tag.last, isBlank(last) { tag = tag.dropLast() }
            }
            guard body(tag) else { return }
        }
    }
}

extension Transaction {
    /// Returns the tag of a version as the caller sees it.
    func tag(_ version: some BinaryInteger, variant: String = "") -> EntityTag {
        EntityTag(version, in: epoch, for: caller, variant: variant)
    }
}
