import Values

/// The subscription of a stream to the changes of one table: `{id, schema, table, event, filter, select}`.
public struct TableSubscription: Sendable, Hashable {
    /// The kinds of changes that a subscription requests.
    public struct Events: OptionSet, Sendable, Hashable {
        public let rawValue: UInt8
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        public static let insert = Events(rawValue: 1)
        public static let update = Events(rawValue: 2)
        public static let delete = Events(rawValue: 4)
        public static let all: Events = [.insert, .update, .delete]
    }

    /// The id of this subscription in events; unique within its stream.
    public let id: String
    public let schema: String
    public let table: String
    public let events: Events
    public let filter: Filter
    /// Nil means all columns.
    public let selection: ColumnSelection?

    public init(
        id: String, schema: String = "public", table: String, events: Events = .all, filter: Filter = .all,
        selection: ColumnSelection? = nil
    ) {
        self.id = id
        self.schema = schema
        self.table = table
        self.events = events
        self.filter = filter
        self.selection = selection
    }

    /// The approximate memory of the subscription in bytes: its texts, and the overhead of each value.
    public var storedBytes: Int {
        id.utf8.count + schema.utf8.count + table.utf8.count + filter.storedBytes
            + (selection?.columns.reduce(0) { $0 + $1.utf8.count + MemoryLayout<String>.stride } ?? 0)
    }

    /// The transition that a change of this table causes for a receiver that may see the old and new row as given.
    ///
    /// A missing row (the old one of an insert, the new one of a delete) is in no receiver's set. The same holds for an
    /// old row if the feed sends only its primary key and the filter names another column. Such an update is an
    /// `enter`, and no receiver gets a `leave`. Feeds that send whole old rows have neither problem.
    public func transition(
        _ event: Events, old: Filter.Row?, new: Filter.Row?, seesOld: Bool, seesNew: Bool
    ) -> RowTransition? {
        guard events.contains(event) else { return nil }
        return RowTransition(
            wasInside: seesOld && old.map(filter.matches) ?? false,
            isInside: seesNew && new.map(filter.matches) ?? false)
    }
}

extension [TableSubscription] {
    /// The sum of ``TableSubscription/storedBytes``.
    var storedBytes: Int { reduce(0) { $0 + $1.storedBytes } }
}

// MARK: - Writing

extension TableSubscription: JSONObjectWritable {
    /// Writes the subscription in the form in which it is read, but complete: with defaults, and the filter in its
    /// canonical spelling.
    public func write(membersTo writer: inout JSONWriter) {
        writer.member("id", id)
        writer.member("schema", schema)
        writer.member("table", table)
        writer.member("event", events.text)
        writer.member("filter", filter.canonical)
        if let selection {
            writer.member("select", selection.columns)
        } else {
            writer.key("select")
            writer.null()
        }
    }
}

// MARK: - Reading

extension TableSubscription {
    /// Reads all subscriptions of one stream and collects up to 20 mistakes, each with its place (`/tables/3/filter`).
    ///
    /// A client that leaves out the subscriptions named by the mistakes can subscribe to the rest.
    ///
    /// - Parameters:
    ///   - columns: Returns the declared columns of a table; nil if the file does not list them.
    ///   - isDeclared: Returns whether the table exists.
    /// - Throws: ``Failure`` of kind `invalid`.
    public static func list(
        _ values: [JSONValue], at pointer: String, columns: (_ schema: String, _ table: String) -> ColumnTypes?,
        isDeclared: (_ schema: String, _ table: String) -> Bool = { _, _ in true }
    ) throws(Failure) -> [TableSubscription] {
        guard values.count <= FilterLimits.subscriptionsPerStreamMax else {
            throw .invalid(
                pointer, "a stream can have at most \(FilterLimits.subscriptionsPerStreamMax) subscriptions")
        }
        var subscriptions: [TableSubscription] = []
        var mistakes: [Failure.Field] = []
        var ids: Set<String> = []
        for (index, value) in values.enumerated() {
            let place = "\(pointer)/\(index)"
            guard case .object(let members) = value else {
                mistakes.append(Failure.Field(place, "must be an object, not \(value.typeName)"))
                continue
            }
            do {
                let subscription = try TableSubscription(members, at: place, index: index, columns)
                subscriptions.append(subscription)
                if !ids.insert(subscription.id).inserted {
                    mistakes.append(Failure.Field("\(place)/id", "is used twice: '\(subscription.id)'"))
                }
                if !isDeclared(subscription.schema, subscription.table) {
                    mistakes.append(
                        Failure.Field(
                            "\(place)/table", TableCatalog.undeclared(subscription.schema, subscription.table)))
                }
            } catch {
                mistakes += error.fields
            }
        }
        guard mistakes.isEmpty else { throw .invalid(Array(mistakes.prefix(mistakesMax))) }
        try requireWithinLimits(of: subscriptions, at: pointer)
        return subscriptions
    }

    /// Checks the limits of one stream. The failure names the subscriptions that exceed the limits together with the
    /// subscriptions before them.
    static func requireWithinLimits(of subscriptions: [TableSubscription], at pointer: String) throws(Failure) {
        guard subscriptions.count <= FilterLimits.subscriptionsPerStreamMax else {
            throw .invalid(
                pointer,
                "a stream can have at most \(FilterLimits.subscriptionsPerStreamMax) subscriptions, but this one would have "
                    + "\(subscriptions.count)")
        }
        var mistakes: [Failure.Field] = []
        func require(_ count: (Filter) -> Int, max: Int, _ what: String) {
            let counts = subscriptions.map { count($0.filter) }
            let whole = counts.reduce(0, +)
            guard whole > max else { return }
            var taken = 0
            for (index, count) in counts.enumerated() where count > 0 {
                if taken + count <= max {
                    taken += count
                } else {
                    mistakes.append(
                        Failure.Field(
                            "\(pointer)/\(index)/filter",
                            "exceeds the limit: a stream can have at most \(max) \(what), but this one would have \(whole)"
                        ))
                }
            }
        }
        require(\.valueCount, max: FilterLimits.valuesPerStreamMax, "values in its filters")
        require(
            \.searchCount, max: FilterLimits.searchesPerStreamMax, "conditions that search for text between two '%'")
        guard mistakes.isEmpty else { throw .invalid(Array(mistakes.prefix(mistakesMax))) }
    }

    /// More mistakes are not helpful, and 100 subscriptions could have thousands.
    static let mistakesMax = 20

    private init(
        _ members: [String: JSONValue], at pointer: String, index: Int, _ columns: (String, String) -> ColumnTypes?
    ) throws(Failure) {
        var fields = Fields(members, at: pointer)
        let id = fields.optionalString("id", bytesMax: FilterLimits.subscriptionIdBytesMax) ?? String(index)
        let schema = fields.optionalString("schema", bytesMax: FilterLimits.columnBytesMax) ?? "public"
        let table = fields.string("table", bytesMax: FilterLimits.columnBytesMax)
        if table == "*" { fields.reject("table", "must be a single table; a subscription cannot cover all tables") }
        let events = Events.read("event", &fields)
        let columns = columns(schema, table)
        var filter = Filter.all
        if let text = fields.optionalString("filter", bytesMax: FilterLimits.filterBytesMax, empty: true) {
            do {
                filter = try Filter(parsing: text, columns: columns)
            } catch {
                fields.reject("filter", error.detail)
            }
        }
        let selection = ColumnSelection.read("select", of: columns, &fields)
        try fields.finish()
        self.init(id: id, schema: schema, table: table, events: events, filter: filter, selection: selection)
    }
}

extension TableSubscription.Events {
    private static let words: KeyValuePairs = ["*": all, "INSERT": insert, "UPDATE": update, "DELETE": delete]

    fileprivate var text: String { Self.words.first { $0.value == self }?.key ?? "*" }

    /// Reads one of the words, in any case; absent means `*`.
    fileprivate static func read(_ name: String, _ fields: inout Fields) -> TableSubscription.Events {
        guard let text = fields.optionalString(name, bytesMax: 16)?.uppercased() else { return .all }
        if let word = words.first(where: { $0.key == text }) { return word.value }
        fields.reject(name, "must be one of \(words.map(\.key).joined(separator: ", "))")
        return .all
    }
}

extension ColumnSelection {
    fileprivate static func read(
        _ name: String, of declared: ColumnTypes?, _ fields: inout Fields
    ) -> ColumnSelection? {
        guard
            let columns = fields.strings(
                name, countMax: FilterLimits.selectedColumnsMax, bytesMax: FilterLimits.columnBytesMax)
        else { return nil }
        guard !columns.isEmpty else {
            fields.reject(name, "must name at least one column; omit it to get all columns")
            return nil
        }
        for (index, column) in columns.enumerated() where declared.map({ $0[column] == nil }) ?? false {
            fields.reject("\(name)/\(index)", "the table has no column '\(column)'")
        }
        return ColumnSelection(columns)
    }
}
