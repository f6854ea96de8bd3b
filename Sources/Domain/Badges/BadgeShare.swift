/// One of the counts of a user's badges. One feature maintains it, whether it is shown or not.
public enum BadgeShare: String, Sendable, CaseIterable {
    case messages, requests, bell

    /// The name of its column in the stored counts.
    public var column: String { rawValue }

    /// Its bit in the stored set of hidden shares. Rows keep the bits, so a bit is never used for another share.
    var bit: Int {
        switch self {
        case .messages: 1
        case .requests: 2
        case .bell: 4
        }
    }
}

/// A set of shares, stored as a number.
public struct BadgeShares: OptionSet, Sendable {
    public let rawValue: Int

    public init(rawValue: Int) { self.rawValue = rawValue }

    public init(_ share: BadgeShare) { rawValue = share.bit }

    public static let messages = BadgeShares(.messages)
    public static let requests = BadgeShares(.requests)
    public static let bell = BadgeShares(.bell)
}

extension BadgeChange {
    public subscript(share: BadgeShare) -> Int {
        switch share {
        case .messages: messages
        case .requests: requests
        case .bell: bell
        }
    }
}

extension Badges {
    /// Returns the counts that a user sees: a hidden share is zero.
    public func hiding(_ hidden: BadgeShares) -> Badges {
        guard !hidden.isEmpty else { return self }
        var shown = self
        if hidden.contains(.messages) { shown.messages = 0 }
        if hidden.contains(.requests) { shown.requests = 0 }
        if hidden.contains(.bell) { shown.bell = 0 }
        return shown
    }
}
