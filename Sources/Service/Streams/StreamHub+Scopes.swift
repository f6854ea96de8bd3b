import Database
import MicroHTTP
import Realtime

extension StreamHub {
    /// Makes a worker read the granted keys of the stream's user. The stream begins when they are available. The log
    /// for these keys is read together with the rest, from one position on.
    func readKeys(_ stream: StreamHandle, _ reader: StreamReader) {
        let slot = Int32(stream.index)
        readingKeys[slot] = []
        onWorker(slot) { shard in shard.post(.keysRead(stream, Result { try reader.grantedKeys() })) }
    }

    func keysRead(_ stream: StreamHandle, _ result: Result<Set<String>, any Error>) {
        let slot = Int32(stream.index)
        guard isPresent(stream), let session = sessions[Int(slot)], !session.isEnding else { return }
        var keys: Set<String>
        switch result {
        case .success(let found): keys = found
        case .failure(let error): return fail(slot, .opening, error)
        }
        // Changes from the log are at least as new as the result of the read. If one of them is older, a later change
        // is already on its way.
        for change in readingKeys.removeValue(forKey: slot) ?? [] {
            if change.isGranted { keys.insert(change.key) } else { keys.remove(change.key) }
        }
        // After the keys of the token, because most events use those.
        hub.add(keys, toScopeOf: slot)
        // The token, or its memberships, may have been renewed since rows were read.
        begin(stream, keys: session.caller.scope.keys.union(keys))
    }

    /// Grants a key to, or revokes it from, the streams of one user.
    func apply(_ change: KeyGrantChange) {
        var slots: [Int32] = []
        hub.forEachStream(tenant: change.tenant, key: change.holder) { slots.append($0) }
        for slot in slots {
            guard readingKeys[slot] == nil else {
                readingKeys[slot]?.append(change)
                continue
            }
            if change.isGranted {
                hub.add(change.key, toScopeOf: slot)
            } else if sessions[Int(slot)]?.caller.scope.keys.contains(change.key) == false {
                hub.remove(change.key, fromScopeOf: slot)
            }
        }
    }

    /// Returns a caller with the keys of the memberships at the shard's head.
    func scoped(_ caller: Caller) -> Caller { dependencies.memberships.scoped(caller, by: memberships) }

    /// Replaces the keys from a stream's token if they have changed. Granted keys stay.
    func replaceScope(of slot: Int32, from old: Caller, to new: Caller) {
        let (before, after) = (old.scope.keys, new.scope.keys)
        guard after != before || new.omittedKeys != old.omittedKeys else { return }
        noteKeys(of: new, instead: old)
        guard wideKeyCount <= wideKeysMax else { return refuseWideScope(slot) }
        let (lost, gained) = (before.subtracting(after), after.subtracting(before))
        if lost.count + gained.count <= Self.singleKeyChangesMax {
            for key in lost { hub.remove(key, fromScopeOf: slot) }
            for key in gained { hub.add(key, toScopeOf: slot) }
        } else {
            let granted = hub.scope(of: slot).filter { !before.contains($0) }
            hub.replaceScope(of: slot, with: Array(after) + granted)
        }
        notify(slot, StreamNotice.scope(of: new))
    }

    /// Up to this number, keys are changed one by one. A row of a wide scope changes one of thousands.
    private static let singleKeyChangesMax = 8

    // MARK: Wide scopes

    private var wideKeysMax: Int { StreamLimits.wideKeysMax / max(1, dependencies.settings.shards) }

    /// Adds the size of a scope to the metrics, and reports if it lacks keys.
    func noteKeys(of caller: Caller?, instead old: Caller?) {
        func count(_ caller: Caller?) -> Int {
            let count = caller?.scope.keys.count ?? 0
            return count > StreamLimits.listedKeysMax ? count : 0
        }
        wideKeyCount += count(caller) - count(old)
        guard let caller, caller.omittedKeys > 0, caller.omittedKeys != old?.omittedKeys else { return }
        dependencies.failures.noteOmittedKeys(caller)
    }

    /// Whether all wide scopes, including this one, fit the limit. Otherwise its stream ends.
    func hasRoomForScope(of slot: Int32) -> Bool {
        guard wideKeyCount > wideKeysMax, let caller = sessions[Int(slot)]?.caller,
            caller.scope.keys.count > StreamLimits.listedKeysMax
        else { return true }
        refuseWideScope(slot)
        return false
    }

    private func refuseWideScope(_ slot: Int32) {
        dependencies.failures.note(.keys)
        end(slot, .unavailable)
    }
}
