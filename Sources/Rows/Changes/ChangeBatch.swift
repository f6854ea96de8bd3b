import Values

/// The contents of a delivery, item by item, in its order.
public struct ChangeBatch: Sendable, Hashable {
    public enum Item: Sendable, Hashable {
        case change(TableChange)
        /// Well formed, and nothing to do: a tombstone.
        case ignored(reason: String)
        case rejected(ChangeRejection)
    }

    /// An item's index here is its place in the delivery.
    public let items: [Item]
    /// Whether the delivery is an array: then places in it begin with the item's index.
    let isArray: Bool

    public var changes: [TableChange] {
        items.compactMap { if case .change(let change) = $0 { change } else { nil } }
    }
    public var rejections: [ChangeRejection] {
        items.compactMap { if case .rejected(let rejection) = $0 { rejection } else { nil } }
    }

    /// Reads a delivery: one item, or an array of at most ``ChangeLimits/itemsMax``.
    ///
    /// - Parameters:
    ///   - body: JSON. Numbers are never rounded (``TableChange``).
    ///   - delivery: what the headers say.
    ///   - format: a form that every item must have; nil to recognize each by its shape.
    ///     ``ChangeFormat/batch`` asks for an array of whatever forms.
    /// - Throws: a failure if the body as a whole cannot be read: it is too large, no JSON, its items cannot be
    ///   separated, or it has too many. Whatever is wrong with one item rejects that item alone.
    public init(
        reading body: [UInt8], delivery: ChangeDelivery = ChangeDelivery(), format: ChangeFormat? = nil
    ) throws(Failure) {
        guard body.count <= ChangeLimits.bodyBytesMax else {
            throw Failure(
                .tooLarge, "changes.too_large",
                "A delivery has at most \(ChangeLimits.bodyBytesMax) bytes, and this one has \(body.count).")
        }
        var scanner = DeliveryScanner(body)
        let found = try scanner.items()
        let expectation = try ChangeExpectation(
            delivery: delivery, format: format, isArray: scanner.isArray)
        let isArray = scanner.isArray
        self.isArray = isArray
        var items: [Item] = []
        items.reserveCapacity(found.count)
        for (index, item) in found.enumerated() {
            items.append(try ChangeBatch.read(body, item, index: index, isArray: isArray, delivery, expectation))
        }
        self.items = items
    }

    private static func read(
        _ body: [UInt8], _ item: DeliveryScanner.Item, index: Int, isArray: Bool, _ delivery: ChangeDelivery,
        _ expectation: ChangeExpectation
    ) throws(Failure) -> Item {
        let parsed: Result<JSONValue, Failure>?
        if item.bytes.count > ChangeLimits.itemBytesMax {
            parsed = nil
        } else {
            parsed = parse(body[item.bytes], item)
            // A body that is no JSON has no item that could be rejected alone.
            if !isArray, case .failure(let failure)? = parsed { throw failure }
            if !isArray, case .success(let value)? = parsed, !expectation.mayBeDelivered(value) {
                throw .invalid("", "must be a change, or an array of changes, not \(value.typeName)")
            }
        }
        do throws(ChangeFault) {
            let value = try value(parsed, byteCount: item.bytes.count)
            guard var change = try expectation.change(value, delivery) else {
                return .ignored(reason: "a tombstone: the row was told as deleted before")
            }
            if change.deduplicationID == nil, let deliveryID = delivery.deliveryID {
                change.deduplicationID = "webhook:\(deliveryID)/\(index)"
            }
            change.originID = change.originID ?? delivery.originID
            return .change(change)
        } catch {
            return .rejected(ChangeBatch.rejection(index, error.pointer, error.reason, isArray: isArray))
        }
    }

    private static func rejection(
        _ index: Int, _ pointer: String, _ reason: String, isArray: Bool
    ) -> ChangeRejection {
        ChangeRejection(index: index, pointer: (isArray ? "/\(index)" : "") + pointer, reason: reason)
    }

    /// A rejection of an item after it was read; the pointer begins at the item.
    public func rejection(of index: Int, at pointer: String, _ reason: String) -> ChangeRejection {
        ChangeBatch.rejection(index, pointer, reason, isArray: isArray)
    }

    private static func parse(
        _ bytes: ArraySlice<UInt8>, _ item: DeliveryScanner.Item
    ) -> Result<JSONValue, Failure> {
        Result { () throws(Failure) in
            try JSONValue(
                parsing: item.hasLongNumber ? ExactNumber.quotingInexact(bytes) : Array(bytes),
                depthMax: ChangeLimits.depthMax)
        }
    }

    /// - Parameter parsed: nil for what is too long to be read.
    private static func value(
        _ parsed: Result<JSONValue, Failure>?, byteCount: Int
    ) throws(ChangeFault) -> JSONValue {
        switch parsed {
        case nil: throw ChangeFault("", "has \(byteCount) bytes; at most \(ChangeLimits.itemBytesMax) are taken")
        case .success(let value)?: return value
        case .failure(let failure)?:
            throw ChangeFault("", failure.detail + " (Bytes are counted from the item's first.)")
        }
    }
}

/// Which forms a delivery's items may have.
private enum ChangeExpectation {
    case any
    case only(ChangeFormat)
    /// The body is the data of a CloudEvent whose attributes are headers.
    case binaryCloudEvent

    init(delivery: ChangeDelivery, format: ChangeFormat?, isArray: Bool) throws(Failure) {
        let isBatchType = delivery.mediaType == "application/cloudevents-batch+json"
        let isEventType = delivery.mediaType == "application/cloudevents+json"
        guard !isArray || !isEventType else {
            throw Failure(
                .invalid, "changes.not_an_event", "application/cloudevents+json is one event, and no array.")
        }
        guard isArray || !isBatchType, isArray || format != .batch else {
            throw Failure(.invalid, "changes.not_a_batch", "The body must be a JSON array of changes.")
        }
        let isBinary = !delivery.attributes.isEmpty && !isBatchType && !isEventType
        let isCloudEvent = isBinary || isBatchType || isEventType
        if isCloudEvent, let format, format != .cloudEvents, format != .batch {
            throw Failure(
                .invalid, "changes.format_contradicted",
                "The format is given as \(format.rawValue), and the headers say that the body is a CloudEvent.")
        }
        if isBinary {
            guard !isArray else {
                throw Failure(
                    .invalid, "changes.not_an_event", "ce- headers describe one event, and the body is an array.")
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

    /// Whether it is a change, or a tombstone: another value is no delivery that has an item to reject.
    func mayBeDelivered(_ value: JSONValue) -> Bool {
        switch (value, self) {
        case (.object, _), (.null, .any), (.null, .only(.debezium)), (.null, .binaryCloudEvent): true
        default: false
        }
    }

    /// Nil for a tombstone.
    func change(_ item: JSONValue, _ delivery: ChangeDelivery) throws(ChangeFault) -> TableChange? {
        if case .binaryCloudEvent = self {
            var members = delivery.attributes.mapValues { JSONValue.string($0) }
            members["datacontenttype"] = delivery.contentType.map { .string($0) }
            members["data"] = item
            do throws(ChangeFault) {
                var change = try CloudEvent(members: ChangeMembers(members, at: "")).change()
                change?.shorten(by: "/data")
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
        guard case .object(let members) = item else {
            throw ChangeFault("", "must be an object, not \(item.typeName)")
        }
        let recognized = ChangeFormat.recognize(members)
        if case .only(let format) = self, recognized != format {
            let found = recognized.map { "is \($0.rawValue)" } ?? ChangeFormat.unrecognized
            throw ChangeFault("", "must have the form \(format.rawValue), and \(found)")
        }
        let fields = ChangeMembers(members, at: "")
        switch recognized {
        case .supabaseWebhook: return try SupabaseWebhook.read(fields)
        case .supabaseRealtime: return try RealtimeFrame.read(fields)
        case .broadcastChanges: return try BroadcastChange.read(fields)
        case .debezium: return try DebeziumEvent.read(fields)
        case .cloudEvents: return try CloudEvent(members: fields).change()
        case .batch, nil: throw ChangeFault("", ChangeFormat.unrecognized)
        }
    }

    /// In binary mode the body is the data, and the attributes are headers.
    private static func inBinaryMode(_ fault: ChangeFault) -> ChangeFault {
        if fault.pointer == "/data" || fault.pointer.hasPrefix("/data/") {
            return ChangeFault(String(fault.pointer.dropFirst(5)), fault.reason)
        }
        if fault.pointer == "/datacontenttype" { return ChangeFault("content-type", fault.reason) }
        return ChangeFault("ce-\(fault.pointer.dropFirst())", fault.reason)
    }
}
