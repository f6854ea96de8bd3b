import Database
import MicroHTTP
import Realtime

extension StreamHub {
    /// Has a worker read the membership keys of the stream's user; the stream begins when they are there: what the log
    /// has for them is read with the rest, from one place on.
    func readKeys(_ stream: StreamHandle, _ reader: StreamReader) {
        let slot = Int32(stream.index)
        readingKeys[slot] = []
        onWorker(slot) { shard in shard.post(.keysRead(stream, Result { try reader.membershipKeys() })) }
    }

    func keysRead(_ stream: StreamHandle, _ result: Result<Set<String>, any Error>) {
        let slot = Int32(stream.index)
        guard isPresent(stream), let session = sessions[Int(slot)], !session.isEnding else { return }
        var keys: Set<String>
        switch result {
        case .success(let found): keys = found
        case .failure(let error): return fail(slot, .opening, error)
        }
        // What the log has said meanwhile is newer than what was read, or the same; if it is older, the rest is on its
        // way.
        for change in readingKeys.removeValue(forKey: slot) ?? [] {
            if change.isGranted { keys.insert(change.key) } else { keys.remove(change.key) }
        }
        // The token, or its memberships, may have been renewed since rows were read; its keys come first, since they are
        // the ones that most events find.
        let scope = session.caller.scope.keys
        hub.replaceScope(of: slot, with: Array(scope) + keys.subtracting(scope))
        begin(stream, keys: keys.union(scope))
    }

    /// Gives the streams of one user a key, or takes it.
    func apply(_ change: MembershipKeyChange) {
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

    /// Replaces the keys that a stream's token brings, where they have changed; membership keys stay.
    func replaceScope(of slot: Int32, from old: Caller, to new: Caller) {
        let (old, new) = (old.scope.keys, new.scope.keys)
        guard new != old else { return }
        let granted = hub.scope(of: slot).filter { !old.contains($0) }
        hub.replaceScope(of: slot, with: Array(new) + granted)
        notify(slot, StreamNotice.scope(new))
    }
}
