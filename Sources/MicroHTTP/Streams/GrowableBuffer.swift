/// A growable array of plain values in manually managed memory.
///
/// In the sending loop, an `Array` would check uniqueness and bounds at each access, and count references. The owner
/// must call `deallocate()`. Bounds are checked in debug builds.
struct GrowableBuffer<Element: BitwiseCopyable> {
    private(set) var base: UnsafeMutablePointer<Element>
    private(set) var count = 0
    private(set) var capacity: Int

    init(capacity: Int) {
        precondition(capacity > 0, "the capacity must be positive")
        self.capacity = capacity
        base = .allocate(capacity: capacity)
    }

    func deallocate() { base.deallocate() }

    @inline(__always)
    mutating func append(_ element: Element) {
        if count == capacity { grow() }
        (base + count).initialize(to: element)
        count += 1
    }

    @inline(__always)
    subscript(index: Int) -> Element {
        get {
            assert(index >= 0 && index < count)
            return base[index]
        }
        nonmutating set {
            assert(index >= 0 && index < count)
            base[index] = newValue
        }
    }

    @inline(__always)
    func pointer(at index: Int) -> UnsafeMutablePointer<Element> {
        assert(index >= 0 && index < count)
        return base + index
    }

    mutating func popLast() -> Element? {
        guard count > 0 else { return nil }
        count -= 1
        return base[count]
    }

    /// Removes all elements, and frees memory beyond the given capacity that a rare burst has taken.
    mutating func removeAll(keepingCapacityUpTo capacityMax: Int) {
        count = 0
        guard capacity > capacityMax else { return }
        base.deallocate()
        capacity = capacityMax
        base = .allocate(capacity: capacityMax)
    }

    @inline(never)
    private mutating func grow() {
        let larger = UnsafeMutablePointer<Element>.allocate(capacity: capacity * 2)
        larger.moveInitialize(from: base, count: count)
        base.deallocate()
        base = larger
        capacity *= 2
    }
}
