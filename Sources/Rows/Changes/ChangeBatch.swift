import Values

/// The items of a delivery, in order.
public struct ChangeBatch: Sendable, Hashable {
    public enum Item: Sendable, Hashable {
        case change(TableChange)
        /// Well formed, but without any effect: a tombstone.
        case ignored(reason: String)
        case rejected(ChangeRejection)
    }

    /// The items. The index of an item is its place in the delivery.
    public private(set) var items: [Item] = []
    /// Whether the delivery is an array. Pointers into it then begin with the index of the item.
    let isArray: Bool

    public var changes: [TableChange] {
        items.compactMap { if case .change(let change) = $0 { change } else { nil } }
    }

    /// Reads a delivery: one item, or an array of at most ``ChangeLimits/itemsMax``.
    ///
    /// - Parameters:
    ///   - body: JSON. Numbers are never rounded (``TableChange``).
    ///   - delivery: The metadata from the headers.
    ///   - format: The required format of every item; nil to recognize each item by its shape. ``ChangeFormat/batch``
    ///     requires an array of any formats.
    /// - Throws: A failure if the body as a whole cannot be read: it is too large, it is not JSON, its items cannot be
    ///   separated, or it has too many. An error in one item rejects only that item.
    public init(
        reading body: [UInt8], delivery: ChangeDelivery = ChangeDelivery(), format: ChangeFormat? = nil
    ) throws(Failure) {
        guard body.count <= ChangeLimits.bodyBytesMax else {
            throw Failure(
                .tooLarge, "changes.too_large",
                "A delivery must have at most \(ChangeLimits.bodyBytesMax) bytes, but this one has \(body.count).")
        }
        var scanner = DeliveryScanner(bytes: body)
        var found = try scanner.items()
        // A single frame in the form of an array, not a delivery of several items.
        let isFrame = scanner.isArray && RealtimeFrame.isSerialized(found.map { body[$0] })
        if isFrame { found = [0..<body.count] }
        isArray = scanner.isArray && !isFrame
        let expectation = try ChangeExpectation(delivery: delivery, format: format, isArray: isArray)
        items.reserveCapacity(found.count)
        for (index, place) in found.enumerated() {
            switch try read(body[place], delivery, expectation) {
            case .success(var change?):
                if change.deduplicationID == nil, let deliveryID = delivery.deliveryID {
                    change.deduplicationID = "webhook:\(deliveryID)/\(index)"
                }
                change.originID = change.originID ?? delivery.originID
                items.append(.change(change))
            case .success(nil):
                items.append(.ignored(reason: "a tombstone: the deletion of the row was already delivered"))
            case .failure(let fault): items.append(.rejected(rejection(of: index, at: fault.pointer, fault.reason)))
            }
        }
    }

    /// Reads one item; nil for a tombstone. A malformed object that comes alone is rejected like one in an array,
    /// because senders such as Debezium stop for good if the whole delivery is refused.
    ///
    /// - Throws: For a body that is neither an array nor an object, and so not a delivery at all.
    private func read(
        _ item: ArraySlice<UInt8>, _ delivery: ChangeDelivery, _ expectation: ChangeExpectation
    ) throws(Failure) -> Result<TableChange?, ChangeFault> {
        guard item.count <= ChangeLimits.itemBytesMax else {
            return .failure(
                ChangeFault("", "has \(item.count) bytes; at most \(ChangeLimits.itemBytesMax) are accepted"))
        }
        let value: JSONValue
        do throws(Failure) {
            value = try JSONValue(parsing: Array(item), depthMax: ChangeLimits.depthMax, isExact: true)
        } catch {
            guard isArray || item.first == UInt8(ascii: "{") || item.first == UInt8(ascii: "[") else { throw error }
            return .failure(ChangeFault("", error.detail + " (Byte positions are relative to the start of the item.)"))
        }
        guard isArray || expectation.mayBeDelivered(value) else {
            throw .invalid("", "must be a change, or an array of changes, not \(value.typeName)")
        }
        return Result { () throws(ChangeFault) in try expectation.change(value, delivery) }
    }

    /// Returns the rejection of an item. The pointer begins at the item.
    public func rejection(of index: Int, at pointer: String, _ reason: String) -> ChangeRejection {
        ChangeRejection(index: index, pointer: (isArray ? "/\(index)" : "") + pointer, reason: reason)
    }
}

/// The formats that a delivery's items may have.
private enum ChangeExpectation {
    case any
    case only(ChangeFormat)
    /// The body is the data of a CloudEvent whose attributes are headers.
    case binaryCloudEvent

    init(delivery: ChangeDelivery, format: ChangeFormat?, isArray: Bool) throws(Failure) {
        let isBatchType = delivery.mediaType == "application/cloudevents-batch+json"
        // Debezium Server sends this type for arrays too, although the specification requires the batch type for them.
        let isEventType = delivery.mediaType == "application/cloudevents+json"
        guard isArray || !isBatchType, isArray || format != .batch else {
            throw Failure(.invalid, "changes.not_a_batch", "The body must be a JSON array of changes.")
        }
        let isBinary = !delivery.attributes.isEmpty && !isBatchType && !isEventType
        let isCloudEvent = isBinary || isBatchType || isEventType
        if isCloudEvent, let format, format != .cloudEvents, format != .batch {
            throw Failure(
                .invalid, "changes.format_contradicted",
                "The format is given as \(format.rawValue), but the headers declare a CloudEvent.")
        }
        if isBinary {
            guard !isArray else {
                throw Failure(
                    .invalid, "changes.not_an_event",
                    "The ce- headers describe a single event, but the body is an array.")
            }
            self = .binaryCloudEvent
        } else if isCloudEvent {
            self = .only(.cloudEvents)
        } else if let format, format != .batch {
            self = .only(format)
        } else {
            self = .any
        }
    }

    /// Whether the value is a change or a tombstone. A body with another value contains no item that could be rejected.
    func mayBeDelivered(_ value: JSONValue) -> Bool {
        switch (value, self) {
        case (.object, _), (.array, _), (.null, .any), (.null, .only(.debezium)), (.null, .binaryCloudEvent): true
        default: false
        }
    }

    /// Reads a change; nil for a tombstone.
    func change(_ item: JSONValue, _ delivery: ChangeDelivery) throws(ChangeFault) -> TableChange? {
        if case .binaryCloudEvent = self {
            var members = delivery.attributes.mapValues { JSONValue.string($0) }
            members["datacontenttype"] = delivery.contentType.map { .string($0) }
            members["data"] = item
            do throws(ChangeFault) {
                var change = try CloudEvent(members: ChangeMembers(members: members, pointer: "")).change()
                change?.movePointers { $0.hasPrefix("/data/") ? String($0.dropFirst(5)) : $0 }
                return change
            } catch {
                throw ChangeExpectation.inBinaryMode(error)
            }
        }
        if item == .null {
            switch self {
            case .any, .only(.debezium): return nil
            default: throw ChangeFault("", "must be an object, not null")
            }
        }
        if case .array(let elements) = item, let frame = RealtimeFrame.members(of: elements) {
            do throws(ChangeFault) {
                var change = try self.change(.object(frame), delivery)
                change?.movePointers { RealtimeFrame.place(of: $0) }
                return change
            } catch {
                throw ChangeFault(RealtimeFrame.place(of: error.pointer), error.reason)
            }
        }
        guard case .object(let members) = item else {
            throw ChangeFault("", "must be an object, not \(item.typeName)")
        }
        if case .only(let format) = self, ChangeFormat.recognize(members) != format {
            let found = ChangeFormat.recognize(members).map { "is \($0.rawValue)" } ?? ChangeFormat.unrecognized
            throw ChangeFault("", "must have the format \(format.rawValue), but \(found)")
        }
        return try ChangeFormat.read(ChangeMembers(members: members, pointer: ""))
    }

    /// Returns the fault as seen in binary mode, where the body is the data and the attributes are headers.
    private static func inBinaryMode(_ fault: ChangeFault) -> ChangeFault {
        if fault.pointer == "/data" || fault.pointer.hasPrefix("/data/") {
            return ChangeFault(String(fault.pointer.dropFirst(5)), fault.reason)
        }
        if fault.pointer == "/datacontenttype" { return ChangeFault("content-type", fault.reason) }
        return ChangeFault("ce-\(fault.pointer.dropFirst())", fault.reason)
    }
}
