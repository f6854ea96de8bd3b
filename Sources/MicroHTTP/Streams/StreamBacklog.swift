import CMicroHTTPD
import Glibc

/// The backlog of a slow reader: the items that its socket did not accept, oldest first.
///
/// It is created when a socket is full and dropped when the reader has caught up. A stream with a fast reader never has
/// one.
final class StreamBacklog {
    private struct Item {
        let bytes: SharedBytes
        let collapse: UInt64
    }

    private var items: [Item] = []
    /// The sent bytes of the first item. A started item must be finished; otherwise the client would read half an
    /// event.
    private var sentOfFirst = 0
    private(set) var waitingBytes = 0

    /// The number of pieces per system call; the limit of `sendmsg` is 1,024. It bounds the memory on the stack.
    private static var piecesMax: Int { 64 }

    var isEmpty: Bool { items.isEmpty }

    /// Appends an item. A waiting item with the same key is removed, because it is outdated.
    ///
    /// - Parameters:
    ///   - collapse: The key; 0 for an item that neither replaces another one nor is replaced.
    ///   - sent: The bytes of the item that are already sent. Only the first item can have any.
    /// - Returns: The number of replaced items.
    @discardableResult
    func append(_ bytes: SharedBytes, collapse: UInt64, sent: Int = 0) -> Int {
        assert(sent == 0 || items.isEmpty, "bytes must be sent in order")
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

    /// Discards everything except a started item. Returns the number of discarded items.
    func discard() -> Int {
        let begun = sentOfFirst > 0 ? 1 : 0
        let discarded = items.count - begun
        items.removeSubrange(begun...)
        waitingBytes = items.first.map { $0.bytes.count - sentOfFirst } ?? 0
        return discarded
    }

    /// Passes the next pieces to `body`, which returns how many of their bytes were sent.
    /// - Returns: The result of `body`, and the number of items that were sent completely.
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
