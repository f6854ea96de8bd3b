import Database
import Domain
import MicroHTTP
import Realtime

extension StreamHub {
    /// Has a worker read the keys that the stream's user holds by rows of the service; the stream begins when they are
    /// there: what the log tells to them is read with the rest, from one place on.
    func learnKeys(_ stream: StreamHandle, _ reader: StreamReader) {
        let slot = Int32(stream.index)
        learning[slot] = []
        let shard = shard
        let isAdmitted = surroundings.workers.submit {
            let keys = try? reader.rowKeys()
            shard.post(.held(stream, keys))
        }
        if !isAdmitted { end(slot, .unavailable) }
    }

    func learned(_ stream: StreamHandle, _ keys: Set<String>?) {
        let slot = Int32(stream.index)
        guard isPresent(stream), sessions[Int(slot)]?.isEnding == false else { return }
        guard var keys, let scope = sessions[Int(slot)]?.caller.scope.keys else { return end(slot, .unavailable) }
        // What the log has told meanwhile is newer than what was read, or the same; if it is older, the rest is on its
        // way.
        for change in learning.removeValue(forKey: slot) ?? [] {
            if change.isHeld { keys.insert(change.key) } else { keys.remove(change.key) }
        }
        // The token, or its memberships, may have been renewed since rows were read; its keys come first, since they are
        // the ones that most events find.
        hub.replaceScope(of: slot, with: Array(scope) + keys.subtracting(scope))
        begin(stream, held: keys.union(scope))
    }

    /// Gives the streams of one user a key, or takes it.
    func change(_ change: HeldChange) {
        var slots: [Int32] = []
        hub.forEachStream(tenant: change.tenant, key: change.holder) { slots.append($0) }
        for slot in slots {
            guard learning[slot] == nil else {
                learning[slot]?.append(change)
                continue
            }
            if change.isHeld {
                hub.add(change.key, toScopeOf: slot)
            } else if sessions[Int(slot)]?.caller.scope.keys.contains(change.key) == false {
                hub.remove(change.key, fromScopeOf: slot)
            }
        }
    }

    /// Replaces what a stream's token brings; what its user holds by rows stays.
    func replaceScope(of slot: Int32, from old: Set<String>, to new: Set<String>) {
        let held = hub.scope(of: slot).filter { !old.contains($0) }
        hub.replaceScope(of: slot, with: Array(new) + held)
    }
}
