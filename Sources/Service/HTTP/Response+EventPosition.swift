import MicroHTTP
import Realtime

extension Response {
    /// Adds `Event-Position`: the last event that the shown state includes. A stream opened with it as its
    /// `lastEventId` continues exactly there, so that a client that loads first and subscribes afterwards misses
    /// nothing.
    consuming func positioned(_ sequence: Int64, _ call: Call) -> Response {
        if status == 200 { headers.append("Event-Position", writing: call.ids.cursor(sequence).append) }
        return self
    }
}
