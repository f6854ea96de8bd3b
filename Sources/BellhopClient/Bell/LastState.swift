import Foundation

/// The last state of the stores of one identity, kept on the device so that an app opens with it offline.
///
/// ``OfflineMachine`` decides which states are written, and when. All states are one value of the storage, which is
/// written as a whole.
@MainActor final class LastState {
    typealias Kept = any Encodable & Sendable

    /// The version of the format. A value of another version is ignored.
    private nonisolated static let format = 1

    private struct Content: Codable, Sendable {
        let format: Int
        let states: [String: Named]
    }

    /// A state, as JSON in a text: a store decodes it when it is created.
    private struct Named: Codable, Sendable {
        let at: Int
        let state: String
    }

    private let storage: any ClientStorage
    private let key: String
    private let clock: ClientClock
    /// Returns the present state of the store of that name.
    private let state: @MainActor (String) -> Kept?
    private var machine = OfflineMachine()
    private var timers = Timers()
    private var texts: [String: String] = [:]
    /// The states of stores that were closed since the last write.
    private var closed: [String: Kept] = [:]
    private var writing: Task<Void, Never>?
    private var isForgotten = false

    init(
        _ storage: any ClientStorage, key: String, clock: ClientClock, state: @escaping @MainActor (String) -> Kept?
    ) {
        (self.storage, self.key, self.clock, self.state) = (storage, key, clock, state)
    }

    func load() async {
        guard let content = await LastState.read(storage, key), content.format == LastState.format else { return }
        texts = content.states.mapValues(\.state)
        receive(.loaded(content.states.mapValues { .init(bytes: $0.state.utf8.count, at: $0.at) }))
    }

    /// Returns the state that a store begins with; nil if the device has no state.
    func find(_ name: String) -> Data? { texts[name].map { Data($0.utf8) } }

    /// Notes that the state of a store has changed. It is written soon.
    func noteChange(of name: String) {
        closed[name] = nil
        receive(.changed(name))
    }

    /// Notes the last state of a store that is closed.
    func noteEnd(of name: String, _ state: Kept?) { closed[name] = state }

    /// Writes the changed states now. The task ends when they are written.
    func flush() -> Task<Void, Never>? {
        receive(.flush)
        return writing
    }

    /// Stops writing. A write that has begun ends before this returns.
    func forget() async {
        isForgotten = true
        receive(.forget)
        await writing?.value
    }

    private func receive(_ input: OfflineMachine.Input) {
        for action in machine.receive(input, now: clock.now()) {
            switch action {
            case .timer(let at):
                timers.set("keep", at: at, clock) { [weak self] number in await self?.fire(number) }
            case .measure(let names): encode(names)
            case .write: break
            }
        }
    }

    private func fire(_ number: Int) {
        if timers.take("keep", number) { receive(.timer) }
    }

    /// Encodes the states and writes the ones that fit, off the main actor and in the order of the calls.
    private func encode(_ names: [String]) {
        let states = names.map { ($0, closed[$0] ?? state($0)) }
        closed = [:]
        let before = writing
        writing = Task {
            await before?.value
            let encoded = await LastState.encoded(states)
            guard !isForgotten else { return }
            for case .write(let written, let removed, let entries) in machine.receive(
                .sized(encoded.mapValues { $0.utf8.count }), now: clock.now())
            {
                for name in removed { texts[name] = nil }
                for name in written { texts[name] = encoded[name] }
                await LastState.write(texts, entries, to: storage, key)
            }
        }
    }

    private nonisolated static func read(_ storage: any ClientStorage, _ key: String) async -> Content? {
        guard let data = try? await storage.get(key) else { return nil }
        return try? JSONDecoder().decode(Content.self, from: data)
    }

    private nonisolated static func encoded(_ states: [(String, Kept?)]) async -> [String: String] {
        let encoder = Bellhop.encoder
        return Dictionary(
            uniqueKeysWithValues: states.map { name, state in
                let data = state.flatMap { try? encoder.encode($0) } ?? Data()
                return (name, String(decoding: data, as: UTF8.self))
            })
    }

    private nonisolated static func write(
        _ texts: [String: String], _ entries: [String: OfflineMachine.Entry], to storage: any ClientStorage,
        _ key: String
    ) async {
        var named: [String: Named] = [:]
        for (name, entry) in entries { named[name] = texts[name].map { Named(at: entry.at, state: $0) } }
        guard let data = try? JSONEncoder().encode(Content(format: format, states: named)) else { return }
        try? await storage.set(key, data)
    }
}
