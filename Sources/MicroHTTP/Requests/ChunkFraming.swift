/// A check of the lines between the chunks of a body (RFC 9112 §7.1). libmicrohttpd 0.9.75 accepts a bare LF as their
/// end, which other servers do not, and shows only the chunks.
///
/// The lines are in its buffer before and after the pieces that it passes on, until new bytes are read into the buffer.
/// So a line is sound, bad, or unseen. A body with an unseen line is accepted but must be the last of its connection,
/// so that no request can be hidden behind it.
struct ChunkFraming {
    enum Verdict { case sound, unseen, bad }

    private(set) var verdict = Verdict.sound
    /// The beginning of the buffer, after the head. Each turn of the reactor reads new bytes into it.
    private let start: UnsafePointer<UInt8>
    /// The end of the last piece, and the turn in which it was read.
    private var end: UnsafePointer<UInt8>
    private var turn: UInt64
    /// The bytes after the last piece. They are valid only in the turn in which they were read.
    private var behind: [UInt8]
    /// The remaining bytes of the current chunk; nil before the first.
    private var remaining: Int?

    init(bufferStart: UnsafePointer<UInt8>, turn: UInt64) {
        start = bufferStart
        end = bufferStart
        self.turn = turn
        behind = Self.eightBytes(at: bufferStart)
    }

    /// Checks the bytes before a piece.
    mutating func receive(_ piece: UnsafeBufferPointer<UInt8>, turn now: UInt64) {
        guard let base = piece.baseAddress else { return }
        let from = now == turn ? end : start
        if from <= base { read(UnsafeBufferPointer(start: from, count: base - from)) } else { note(.unseen) }
        remaining = (remaining ?? 0) - piece.count
        (end, turn) = (base + piece.count, now)
        behind = Self.eightBytes(at: end)
    }

    /// Checks the bytes after the last piece, at the end of the body.
    mutating func finish(turn now: UInt64) {
        guard now == turn, (remaining ?? 0) == 0 else { return note(.unseen) }
        var line = Line(bytes: behind)
        if remaining != nil { line.passEnd() }
        line.passSize()
        // The line of the last chunk, and the empty line. A body with trailers is not read to its end.
        line.passEnd()
        line.passEnd()
        note(line.verdict)
    }

    private mutating func read(_ bytes: UnsafeBufferPointer<UInt8>) {
        if let remaining, remaining > 0 {
            if !bytes.isEmpty { note(.unseen) }
            return
        }
        var line = Line(bytes: Array(bytes))
        if remaining != nil { line.passEnd() }
        remaining = line.passSize()
        line.passExtension()
        line.passEnd()
        if line.verdict == .sound, !line.isOver { line.verdict = .unseen }
        note(line.hasBareLineFeed ? .bad : line.verdict)
    }

    private mutating func note(_ found: Verdict) {
        if verdict != .bad, found != .sound { verdict = found }
    }

    /// Returns the eight bytes at a position. They exist after every piece, because libmicrohttpd's header records,
    /// which are larger, follow the buffer in the same block of memory.
    private static func eightBytes(at place: UnsafePointer<UInt8>) -> [UInt8] {
        Array(UnsafeBufferPointer(start: place, count: 8))
    }

    private struct Line {
        let bytes: [UInt8]
        var index = 0
        var verdict = Verdict.sound

        private var next: UInt8? { index < bytes.count ? bytes[index] : nil }
        var isOver: Bool { index == bytes.count }

        init(bytes: [UInt8]) { self.bytes = bytes }

        var hasBareLineFeed: Bool {
            bytes.indices.contains { bytes[$0] == 0x0A && ($0 == 0 || bytes[$0 - 1] != 0x0D) }
        }

        /// Passes over CR and LF.
        mutating func passEnd() {
            guard verdict == .sound else { return }
            if next == 0x0A { return verdict = .bad }
            guard next == 0x0D, index + 1 < bytes.count, bytes[index + 1] == 0x0A else { return verdict = .unseen }
            index += 2
        }

        /// Passes over the size of a chunk, in hexadecimal digits, and returns it.
        @discardableResult mutating func passSize() -> Int {
            let first = index
            var size = 0
            while verdict == .sound, let digit = next.flatMap({ Character(UnicodeScalar($0)).hexDigitValue }),
                size < 1 << 40
            {
                size = size << 4 | digit
                index += 1
            }
            if index == first, verdict == .sound { verdict = .unseen }
            return size
        }

        mutating func passExtension() {
            guard next == UInt8(ascii: ";") else { return }
            while let byte = next, byte != 0x0D, byte != 0x0A { index += 1 }
        }
    }
}
