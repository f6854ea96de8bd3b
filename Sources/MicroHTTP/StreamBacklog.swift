import CMicroHTTPD
import Glibc

/// What a socket did not take: the items that wait for one slow reader, oldest first.
///
/// Made when a socket is full and dropped when it has caught up; a stream whose reader is fast enough never has one.
final class StreamBacklog {
    private struct Item {
        let bytes: SharedBytes
        let collapse: UInt64
    }

    private var items: [Item] = []
    /// Bytes of the first item that were sent. An item that has begun must be finished, or the client would read half an
    /// event.
    private var sentOfFirst = 0
    private(set) var waitingBytes = 0

    /// So many pieces go to the kernel at once; the limit of `sendmsg` is 1,024. It bounds what lies on the stack.
    private static var piecesMax: Int { 64 }

    var isEmpty: Bool { items.isEmpty }

    /// Puts an item at the end. One that waits under the same key goes: the reader would only see it overtaken.
    /// - Parameter sent: bytes of it that are sent already. Only the first item can have any.
    /// - Returns: items replaced.
    @discardableResult
    func append(_ bytes: SharedBytes, collapse: UInt64, sent: Int = 0) -> Int {
        assert(sent == 0 || items.isEmpty, "bytes are sent in order")
        var replaced = 0
        if collapse != 0, let index = items.lastIndex(where: { $0.collapse == collapse }),
            index > 0 || sentOfFirst == 0
        {
            waitingBytes -= items[index].bytes.count
            items.remove(at: index)
            replaced = 1
        }
        items.append(Item(bytes: bytes, collapse: collapse))
        if sent > 0 { sentOfFirst = sent }
        waitingBytes += bytes.count - sent
        return replaced
    }

    /// Throws away all but an item that has begun. Answers how many.
    func discard() -> Int {
        let begun = sentOfFirst > 0 ? 1 : 0
        let discarded = items.count - begun
        items.removeSubrange(begun...)
        waitingBytes = items.first.map { $0.bytes.count - sentOfFirst } ?? 0
        return discarded
    }

    /// Hands the next pieces to `body`, which says how many bytes of them are gone.
    /// - Returns: what `body` returned, and how many items are gone with it.
    func withPieces(_ body: (UnsafeMutableBufferPointer<iovec>, Int) -> Int) -> (sent: Int, items: Int) {
        let sent = withUnsafeTemporaryAllocation(of: iovec.self, capacity: Self.piecesMax) { pieces in
            var (count, byteCount) = (0, 0)
            for item in items.prefix(Self.piecesMax) {
                let skipped = count == 0 ? sentOfFirst : 0
                let piece = iovec(iov_base: item.bytes.base + skipped, iov_len: item.bytes.count - skipped)
                pieces.initializeElement(at: count, to: piece)
                count += 1
                byteCount += piece.iov_len
            }
            return body(UnsafeMutableBufferPointer(rebasing: pieces[..<count]), byteCount)
        }
        return (sent, sent > 0 ? remove(sent) : 0)
    }

    private func remove(_ sent: Int) -> Int {
        waitingBytes -= sent
        var (rest, whole) = (sent, 0)
        while whole < items.count, rest >= items[whole].bytes.count - (whole == 0 ? sentOfFirst : 0) {
            rest -= items[whole].bytes.count - (whole == 0 ? sentOfFirst : 0)
            whole += 1
        }
        sentOfFirst = whole == 0 ? sentOfFirst + rest : rest
        items.removeFirst(whole)
        return whole
    }
}
