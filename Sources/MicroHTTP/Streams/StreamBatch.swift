/// The data that a batch has queued for the streams, before any of it is sent.
///
/// Most streams of a shard get the same items in the same order, so their lists are stored once. A list consists of its
/// last item and the list before it, and streams with equal lists share a number. So queueing for one more stream costs
/// a comparison and no memory, and a list's joined bytes are created once for all streams that share it.
struct StreamBatch {
    struct Item: BitwiseCopyable {
        /// Retained from `item(for:)` to `removeAll()`.
        let bytes: Unmanaged<SharedBytes>
        let collapse: UInt64
    }

    struct List: BitwiseCopyable {
        /// The list without its last item.
        let before: Int32
        let lastItem: Int32
        /// The most recent list that was made by adding an item to this one.
        var longer: Int32 = 0
        /// The number of streams that have exactly this list.
        var holders: Int32 = 0
        let itemCount: Int32
        let byteCount: Int
        /// All bytes in one piece; nil if they were not joined.
        var joined: UnsafeMutableRawPointer?
    }

    /// The empty list, of a stream that gets nothing from the batch.
    static let empty: Int32 = 0

    private(set) var items = GrowableBuffer<Item>(capacity: 64)
    private(set) var lists = GrowableBuffer<List>(capacity: 64)
    /// The byte count of the longest list.
    private(set) var longestBytes = 0
    private var joinedBytes = 0

    /// Memory for the joined bytes of one batch. Thousands of streams with different lists would take too much. Beyond
    /// this limit, lists are sent in pieces.
    private static let joinedBytesMax = 4 << 20
    /// The number of elements whose memory is reused from batch to batch. A batch with different data for each stream
    /// takes more.
    private static let reusedCapacityMax = 16_384

    init() { lists.append(List(before: 0, lastItem: -1, itemCount: 0, byteCount: 0)) }

    mutating func deallocate() {
        removeAll()
        items.deallocate()
        lists.deallocate()
    }

    /// Returns the item's number. Sending the same bytes to consecutive streams makes only one item.
    @inline(__always)
    mutating func item(for bytes: SharedBytes, collapse: UInt64) -> Int32 {
        let last = items.count - 1
        if last >= 0, items[last].bytes.toOpaque() == Unmanaged.passUnretained(bytes).toOpaque(),
            items[last].collapse == collapse
        {
            return Int32(truncatingIfNeeded: last)
        }
        items.append(Item(bytes: Unmanaged.passRetained(bytes), collapse: collapse))
        return Int32(truncatingIfNeeded: last + 1)
    }

    /// Adds an item to a stream with the list `before`, and returns its new list.
    @inline(__always)
    mutating func list(_ before: Int32, adding item: Int32, byteCount: Int) -> Int32 {
        let parent = lists.pointer(at: Int(before))
        parent.pointee.holders &-= 1
        let candidate = parent.pointee.longer
        if candidate != 0, lists[Int(candidate)].lastItem == item {
            lists.pointer(at: Int(candidate)).pointee.holders &+= 1
            return candidate
        }
        return makeList(before, adding: item, byteCount: byteCount)
    }

    private mutating func makeList(_ before: Int32, adding item: Int32, byteCount: Int) -> Int32 {
        let made = Int32(lists.count)
        let shorter = lists[Int(before)]
        lists.append(
            List(
                before: before, lastItem: item, holders: 1, itemCount: shorter.itemCount + 1,
                byteCount: shorter.byteCount + byteCount,
                joined: shorter.itemCount == 0 ? items[Int(item)].bytes.takeUnretainedValue().base : nil))
        lists.pointer(at: Int(before)).pointee.longer = made
        longestBytes = max(longestBytes, shorter.byteCount + byteCount)
        return made
    }

    /// Joins the list's bytes if enough streams share it.
    mutating func join(_ list: Int32) {
        let entry = lists.pointer(at: Int(list))
        guard entry.pointee.holders > 1, joinedBytes + entry.pointee.byteCount <= Self.joinedBytesMax else { return }
        joinedBytes += entry.pointee.byteCount
        let memory = UnsafeMutableRawPointer.allocate(byteCount: entry.pointee.byteCount, alignment: 1)
        var (end, rest) = (entry.pointee.byteCount, list)
        while rest != Self.empty {
            let bytes = items[Int(lists[Int(rest)].lastItem)].bytes.takeUnretainedValue()
            end -= bytes.count
            (memory + end).copyMemory(from: bytes.base, byteCount: bytes.count)
            rest = lists[Int(rest)].before
        }
        entry.pointee.joined = memory
    }

    /// Stores the list's items, first to last, in `storage`.
    func items(of list: Int32, in storage: inout [Item]) {
        storage.removeAll(keepingCapacity: true)
        var rest = list
        while rest != Self.empty {
            storage.append(items[Int(lists[Int(rest)].lastItem)])
            rest = lists[Int(rest)].before
        }
        storage.reverse()
    }

    /// Removes everything, once every list has been sent.
    mutating func removeAll() {
        for index in 0..<lists.count where lists[index].itemCount > 1 { lists[index].joined?.deallocate() }
        for index in 0..<items.count { items[index].bytes.release() }
        items.removeAll(keepingCapacityUpTo: Self.reusedCapacityMax)
        lists.removeAll(keepingCapacityUpTo: Self.reusedCapacityMax)
        lists.append(List(before: 0, lastItem: -1, itemCount: 0, byteCount: 0))
        longestBytes = 0
        joinedBytes = 0
    }
}
