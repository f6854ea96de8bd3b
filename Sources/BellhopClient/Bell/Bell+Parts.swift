import Foundation

/// The tokens of the signed-in user.
final class CurrentTokens: Sendable {
    private let tokens = Guarded<Tokens?>(nil)

    func set(_ next: Tokens?) {
        let before = tokens.withLock { tokens in
            defer { tokens = next }
            return tokens
        }
        before?.close()
    }

    /// The token that was given out last, for a call that ends the session.
    var last: String? { tokens.withLock { $0?.last } }

    /// The holder of the app's last token.
    var holder: String? { tokens.withLock { $0?.claims?.holder } }

    /// Returns a token for a retry. If another user has signed in meanwhile, the refused call is not retried with that
    /// user's token.
    ///
    /// - Throws: A ``TokenFailure`` if the user has signed out, or the app has no token.
    func get(_ spent: SpentToken?) async throws -> String? {
        guard let tokens = tokens.withLock({ $0 }) else {
            throw TokenFailure(code: "token.none", detail: "The user has signed out.")
        }
        guard spent.map({ tokens.hasIssued($0.token) }) ?? true else { throw TokenFailure(code: "token.none") }
        return try await tokens.require(spent)
    }
}

/// Stores the position in the stream. One write runs at a time; positions that arrive meanwhile go into the next write.
final class CursorKeeper: Sendable {
    private let storage: any ClientStorage
    private let key: String
    private let state = Guarded(State())

    private struct State {
        var wanted = ""
        var kept = ""
        /// The running write; nil between two writes.
        var writing: Task<Void, Never>?
    }

    init(_ storage: any ClientStorage, key: String) {
        self.storage = storage
        self.key = key
    }

    func load() async -> String {
        let text = (try? await storage.get(key)).map { String(decoding: $0, as: UTF8.self) } ?? ""
        state.withLock { $0 = State(wanted: text, kept: text) }
        return text
    }

    func keep(_ id: String) {
        state.withLock { state in
            state.wanted = id
            guard state.writing == nil, state.wanted != state.kept else { return }
            state.writing = Task { while let id = next() { try? await storage.set(key, Data(id.utf8)) } }
        }
    }

    /// Waits until the last position is written. A sign-out deletes it afterwards.
    func end() async { await state.withLock { $0.writing }?.value }

    private func next() -> String? {
        state.withLock { state in
            guard state.wanted != state.kept else {
                state.writing = nil
                return nil
            }
            state.kept = state.wanted
            return state.wanted
        }
    }
}

/// Plays each notification's haptics and sound once, for whichever of its events arrives first.
struct PlayedKeys {
    /// Beyond this number the oldest keys are dropped.
    private static let keysMax = 500

    private var keys: [String: (haptic: Bool, sound: Bool)] = [:]
    private var order: [String] = []

    /// Returns the parts that have not been played yet, or nil if all have. One event may carry the haptic and the
    /// other event of the same change the sound.
    mutating func take(_ key: String, haptic: Bool, sound: Bool) -> (haptic: Bool, sound: Bool)? {
        let before = keys[key] ?? (false, false)
        let left = (haptic: haptic && !before.haptic, sound: sound && !before.sound)
        guard left.haptic || left.sound else { return nil }
        if keys[key] == nil { order.append(key) }
        keys[key] = (before.haptic || haptic, before.sound || sound)
        if order.count > PlayedKeys.keysMax { keys[order.removeFirst()] = nil }
        return left
    }
}
