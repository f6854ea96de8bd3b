import MicroHTTP
import Realtime

extension Response {
    /// Adds `Event-Position`: the last event of the caller's tenant that the shown state includes. A stream opened with
    /// it as its `lastEventId` continues exactly there, so that a client that loads first and subscribes afterwards
    /// misses nothing.
    ///
    /// - Parameters:
    ///   - known: The tenant's position before the state was read.
    ///   - records: The result of `EventLog.records(after:)` in the snapshot of the state.
    consuming func positioned(
        known: TenantPositions.Known, _ records: [(number: Int, text: String)], _ call: Call
    ) -> Response {
        guard status == 200 else { return self }
        let sequence = EventLog.position(of: call.caller.tenant, known: known, in: records)
        headers.append("Event-Position", writing: known.ids.cursor(sequence).append)
        return self
    }
}
