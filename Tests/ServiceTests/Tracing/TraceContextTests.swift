import TestSupport
import Testing

@testable import Service

/// `traceparent` as defined by W3C Trace Context.
@Suite(.timed) struct TraceContextTests {
    private static let traceId = "4bf92f3577b34da6a3ce929d0e0e4736"
    private static let parent = "00f067aa0ba902b7"

    @Test(arguments: ["00", "01", "03", "ff"])
    func flags_sayWhetherItIsRecorded(flags: String) throws {
        let context = try #require(TraceContext("00-\(Self.traceId)-\(Self.parent)-\(flags)".utf8))
        #expect(context.traceId == Self.traceId)
        #expect(TraceContext.text(context.spanId) == Self.parent)
        #expect(context.isSampled == (flags != "00"))
    }

    @Test func traceparent_roundTrips() {
        let text = "00-\(Self.traceId)-\(Self.parent)-01"
        #expect(TraceContext(text.utf8)?.traceparent == text)
        #expect(
            TraceContext("cc-\(Self.traceId)-\(Self.parent)-01-what-a-later-version-adds".utf8)?.traceparent == text)
        #expect(TraceContext("cc-\(Self.traceId)-\(Self.parent)-01".utf8)?.traceparent == text)
    }

    @Test(
        arguments: [
            "", "00", "00-\(traceId)-\(parent)", "00-\(traceId)-\(parent)-1", "00-\(traceId)-\(parent)-01-",
            "00-\(traceId)-\(parent)-01-more", "cc-\(traceId)-\(parent)-01more", "ff-\(traceId)-\(parent)-01",
            "00-\(traceId.uppercased())-\(parent)-01", "00-00000000000000000000000000000000-\(parent)-01",
            "00-\(traceId)-0000000000000000-01", "00_\(traceId)-\(parent)-01", "00-\(traceId)-\(parent)-0g",
            "0-\(traceId)-\(parent)-01 ", " 00-\(traceId)-\(parent)-01", "00-\(traceId)-00f067aa0ba902é-01",
        ])
    func malformedTraceparent_isIgnored(text: String) { #expect(TraceContext(text.utf8) == nil) }

    @Test func childSpan_belongsToTheSameTrace() throws {
        for isSampled in [true, false] {
            let root = TraceContext.root(isSampled: isSampled)
            let child = root.child
            #expect(child.traceId == root.traceId && child.spanId != root.spanId && child.isSampled == isSampled)
            #expect(TraceContext(child.traceparent.utf8) == child)
        }
    }
}
