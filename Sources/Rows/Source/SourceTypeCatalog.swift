import Values

/// Lookups in a server's `pg_type`, for types that are not built in or rarely used.
public enum SourceTypeCatalog {
    /// A query for types (`$1`, a list of their OIDs such as `{16401,16402}`) and the types that they consist of.
    ///
    /// It only reads catalogs, and runs no code of the app.
    public static let query = """
        WITH RECURSIVE wanted(id) AS (
            SELECT pg_catalog.unnest($1::pg_catalog.oid[])
            UNION
            SELECT part.id FROM wanted JOIN pg_catalog.pg_type t ON t.oid = wanted.id,
                LATERAL (SELECT t.typbasetype
                    UNION ALL SELECT t.typelem WHERE t.typoutput = 'pg_catalog.array_out'::pg_catalog.regproc
                    UNION ALL SELECT a.atttypid FROM pg_catalog.pg_attribute a WHERE t.typtype = 'c'
                        AND a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped) AS part(id)
            WHERE part.id <> 0)
        SELECT t.oid, t.typbasetype,
            CASE WHEN t.typoutput = 'pg_catalog.array_out'::pg_catalog.regproc THEN t.typelem ELSE 0::pg_catalog.oid END,
            pg_catalog.ascii(t.typdelim::pg_catalog.text),
            CASE WHEN t.typtype = 'c' THEN (
                SELECT pg_catalog.json_agg(pg_catalog.json_build_array(
                    a.attname::pg_catalog.text, a.atttypid::pg_catalog.int8) ORDER BY a.attnum)
                FROM pg_catalog.pg_attribute a
                WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped) END
        FROM pg_catalog.pg_type t WHERE t.oid IN (SELECT id FROM wanted)
        """

    /// Returns the types in the query's rows, by OID.
    public static func types(of rows: [[String?]]) -> [UInt32: SourceType] {
        var waiting: [UInt32: Entry] = [:]
        for row in rows where row.count == 5 {
            let numbers = row.prefix(4).map { $0.flatMap { UInt32($0) } ?? 0 }
            waiting[numbers[0]] = Entry(
                domainOf: numbers[1], arrayOf: numbers[2], delimiter: UInt8(truncatingIfNeeded: numbers[3]),
                attributes: row[4].flatMap(attributes))
        }
        let delimiters = waiting.mapValues(\.delimiter)
        var types = SourceType.known
        // Resolves each type once, from the parts to the wholes: with nested types, expanding the same part repeatedly
        // could exceed the memory.
        for _ in 0..<depthMax where !waiting.isEmpty {
            var found: [UInt32: SourceType] = [:]
            for (id, entry) in waiting { found[id] = types[id] ?? type(entry, of: types, delimiters) }
            types.merge(found) { $1 }
            waiting = waiting.filter { found[$0.key] == nil }
        }
        return delimiters.keys.reduce(into: [:]) { $0[$1] = types[$1] ?? .text }
    }

    private struct Entry {
        let domainOf: UInt32
        let arrayOf: UInt32
        let delimiter: UInt8
        /// The attributes of a composite type; nil for all others.
        let attributes: [(name: String, type: UInt32)]?
    }

    /// The maximum nesting depth of types, and so of values. Deeper types are read as text.
    private static let depthMax = 32

    private static func attributes(_ text: String) -> [(name: String, type: UInt32)]? {
        guard case .array(let pairs)? = try? JSONValue(parsing: Array(text.utf8)) else { return nil }
        return pairs.compactMap { pair in
            guard case .array(let parts) = pair, parts.count == 2, case .string(let name) = parts[0],
                case .integer(let type) = parts[1]
            else { return nil }
            return (name, UInt32(truncatingIfNeeded: type))
        }
    }

    /// Returns nil while one of its parts is unknown.
    private static func type(
        _ entry: Entry, of types: [UInt32: SourceType], _ delimiters: [UInt32: UInt8]
    ) -> SourceType? {
        if entry.domainOf != 0 { return types[entry.domainOf] }
        if entry.arrayOf != 0 {
            return types[entry.arrayOf].map {
                .array(of: $0, delimiter: delimiters[entry.arrayOf] ?? UInt8(ascii: ","))
            }
        }
        guard let columns = entry.attributes else { return .text }
        var attributes: [SourceType.Attribute] = []
        for column in columns {
            guard let type = types[column.type] else { return nil }
            attributes.append(SourceType.Attribute(name: column.name, type: type))
        }
        return .composite(attributes)
    }
}
