import MicroHTTP
import Realtime
import Values

/// An entity tag (RFC 9110, 8.8.3). All are made here: `"<version>-<epoch>-<whose>"`.
///
/// A version alone says little: two users see different things in the same version of a session or a leaderboard, and a
/// database that was restored counts on from a version that clients have seen with another content. So a tag is of one
/// version in one epoch, as one caller is shown it, and confirms nothing else.
struct EntityTag: Sendable {
    /// With its quotes.
    let text: String

    /// - Parameter variant: what else the answer depends on, of what one address may be asked for.
    init(_ version: some BinaryInteger, in epoch: String, for caller: Caller, variant: String = "") {
        self.init(String(version), epoch, caller, variant)
    }

    /// For what changes without any version: the bytes are their own.
    init(content: [UInt8], in epoch: String, for caller: Caller) {
        self.init(OpaqueID(bits: FNV1a.hash(content)).text, epoch, caller, "")
    }

    /// For what everybody is shown alike.
    init(ofAll content: [UInt8]) { text = "\"\(OpaqueID(bits: FNV1a.hash(content)).text)\"" }

    private init(_ version: String, _ epoch: String, _ caller: Caller, _ variant: String) {
        // A role is among what decides what a user is shown; an id has no NUL.
        var whose = FNV1a.hash(caller.tenant.text.utf8)
        for part in [caller.userId.text, caller.role, variant] {
            whose = FNV1a.hash(part.utf8, after: FNV1a.hash(CollectionOfOne(0), after: whose))
        }
        var text = ""
        text.reserveCapacity(version.utf8.count + epoch.utf8.count + OpaqueID.digits + 4)
        text += "\""
        text += version
        text += "-"
        text += epoch
        text += "-"
        text += OpaqueID(bits: whose).text
        text += "\""
        self.text = text
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

extension Request {
    /// The tag, if `If-None-Match` names it; it is not even made for a request without that header.
    func seen(_ tag: @autoclosure () -> EntityTag) -> EntityTag? {
        guard withHeader("If-None-Match", { $0 != nil }) else { return nil }
        let tag = tag()
        return hasSeen(tag.text) ? tag : nil
    }

    /// Whether `If-None-Match` names a tag. Tags are compared weakly (RFC 9110, 13.1.2).
    func hasSeen(_ tag: String) -> Bool {
        withHeader("If-None-Match") { header in
            guard let header else { return false }
            // As it was sent out: what nearly every poll has.
            if header.count == tag.utf8.count, header.elementsEqual(tag.utf8) { return true }
            return String(decoding: header, as: UTF8.self).split(separator: ",").contains { candidate in
                let text = candidate.drop { $0 == " " }
                return text == "*" || EntityTag.unquoted(String(text)) == EntityTag.unquoted(tag)
            }
        }
    }
}

extension Transaction {
    /// The tag of what the caller is shown in a version.
    func tag(_ version: some BinaryInteger, variant: String = "") -> EntityTag {
        EntityTag(version, in: epoch, for: caller, variant: variant)
    }
}
