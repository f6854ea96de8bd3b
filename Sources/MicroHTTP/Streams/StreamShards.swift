import Synchronization

/// The threads that own streams, and the count of streams over all of them.
///
/// They are created before the code that sends to streams, and before the server that hands over connections. A message
/// that is posted before ``start(makeProgram:)`` waits for it.
public final class StreamShards<Program: StreamProgram>: StreamAcceptor {
    public let all: [StreamShard<Program>]
    private let configuration: ServerConfiguration
    private let places: StreamPlaces
    private let turn = Atomic<Int>(0)

    public init(_ configuration: ServerConfiguration) throws {
        let configuration = configuration.within()
        let places = StreamPlaces(max: configuration.streamsMax)
        var options = StreamShardOptions(
            bufferBytesMax: configuration.streamBufferBytesMax, heartbeatSeconds: configuration.heartbeatSeconds,
            isPinned: configuration.pinsShards, clock: configuration.clock, released: { places.release() })
        #if DEBUG
            options.sends = configuration.sendsToStream
        #endif
        all = try (0..<configuration.shards).map { try StreamShard<Program>(index: $0, options: options) }
        self.configuration = configuration
        self.places = places
    }

    /// The maximum number of open streams, after applying the limit of descriptors.
    public var streamsMax: Int { configuration.streamsMax }

    /// Starts all threads.
    ///
    /// - Parameter makeProgram: Called once for each shard, in order.
    public func start(makeProgram: (StreamShard<Program>) -> Program) {
        for shard in all { shard.start(program: makeProgram(shard)) }
    }

    /// Posts a message to every program.
    public func post(_ message: Program.Message) {
        for shard in all { shard.post(message) }
    }

    /// Posts messages to every program, in order, with nothing between them.
    public func post(contentsOf messages: [Program.Message]) {
        for shard in all { shard.post(contentsOf: messages) }
    }

    /// The sum of all counters, at the end of the shards' last batches.
    public var counters: StreamCounters { all.reduce(StreamCounters()) { $0 + $1.counters } }

    func stop(deadlineSeconds: Double) {
        for shard in all { shard.stop(deadlineSeconds: deadlineSeconds) }
    }

    /// Reserves a place for a stream. Streams are distributed over the shards in turn.
    func reserve(_ opening: StreamOpening) -> StreamHandOff? {
        guard places.take() else { return nil }
        let shard = all[turn.wrappingAdd(1, ordering: .relaxed).newValue % all.count]
        let (context, places) = (opening.context, places)
        return StreamHandOff(
            configuration: configuration, adopt: { shard.adopt(descriptor: $0, context: context) },
            releasePlace: { places.release() })
    }
}

/// Counts the streams that are open or opening.
private final class StreamPlaces: Sendable {
    private let max: Int
    private let taken = Atomic<Int>(0)

    init(max: Int) { self.max = max }

    func take() -> Bool {
        guard taken.wrappingAdd(1, ordering: .relaxed).newValue <= max else {
            release()
            return false
        }
        return true
    }

    func release() { taken.wrappingSubtract(1, ordering: .relaxed) }
}
