import Foundation

/// Plays what a notification asks for (R-VIS-FR-4.1 to R-VIS-FR-4.3).
public protocol NotificationPlayer: Sendable {
    /// - Parameter haptic: nil where it is sound alone.
    func play(haptic: Bellhop.Haptic?, sound: Bool) async
}

/// Topics of the app's own; ends when it is cancelled, or nobody holds it.
public final class TopicSubscription: Sendable {
    private let bell: WeakBell

    /// `@unchecked Sendable`: a weak reference is read and cleared atomically, and what it leads to is Sendable.
    private struct WeakBell: @unchecked Sendable {
        weak var bell: Bell?
    }

    @MainActor init(_ bell: Bell) {
        self.bell = WeakBell(bell: bell)
    }

    deinit { cancel() }

    public func cancel() {
        let (key, bell) = (ObjectIdentifier(self), bell)
        Task { @MainActor in bell.bell?.unsubscribe(key) }
    }
}

/// The tokens of whoever is signed in.
final class CurrentTokens: Sendable {
    private let tokens = Locked<Tokens?>(nil)

    func set(_ next: Tokens?) {
        let before = tokens.withLock { tokens in
            defer { tokens = next }
            return tokens
        }
        before?.close()
    }

    /// A call that was refused is not made again with the token of another user, who has signed in meanwhile.
    func get(spent: String?) async -> String? {
        guard let tokens = tokens.withLock({ $0 }), spent.map(tokens.hasGiven) ?? true else { return nil }
        return await tokens.get(spent: spent)
    }
}

/// Keeps the place in the stream: one write at a time; what comes meanwhile is in the next.
final class CursorKeeper: Sendable {
    private let storage: any ClientStorage
    private let key: String
    private let state = Locked<(wanted: String, kept: String, isBusy: Bool)>(("", "", false))

    init(_ storage: any ClientStorage, key: String) {
        self.storage = storage
        self.key = key
    }

    func load() async -> String {
        let text = (try? await storage.get(key)).map { String(decoding: $0, as: UTF8.self) } ?? ""
        state.withLock { $0 = (text, text, false) }
        return text
    }

    func keep(_ id: String) {
        let begins = state.withLock { state in
            state.wanted = id
            guard !state.isBusy, state.wanted != state.kept else { return false }
            state.isBusy = true
            return true
        }
        guard begins else { return }
        Task {
            while let id = next() { try? await storage.set(key, Data(id.utf8)) }
        }
    }

    private func next() -> String? {
        state.withLock { state in
            guard state.wanted != state.kept else {
                state.isBusy = false
                return nil
            }
            state.kept = state.wanted
            return state.wanted
        }
    }
}

/// Each notification moves the phone, and sounds, once: by whichever of its events is first.
struct PlayedKeys {
    /// The oldest go.
    private static let keysMax = 500

    private var keys: [String: (haptic: Bool, sound: Bool)] = [:]
    private var order: [String] = []

    /// What of it was not played before; nil where all was. One event may have had the haptic and the other, of the same
    /// moment, the sound.
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
