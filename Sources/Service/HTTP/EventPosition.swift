import MicroHTTP
import Realtime

extension Response {
    /// Adds `Event-Position`: the event behind which the state is that is shown. A stream that is opened with it as its
    /// `lastEventId` goes on exactly there, so that whoever loads first and listens then misses nothing.
    consuming func positioned(_ sequence: Int64, _ call: Call) -> Response {
        if status == 200 { headers.append("Event-Position", writing: call.ids.cursor(sequence).append) }
        return self
    }
}
