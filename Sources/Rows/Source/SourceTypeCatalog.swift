/// What a server's `pg_type` says of types that PostgreSQL does not ship, or that are shipped and seldom.
public enum SourceTypeCatalog {
    /// Asks for types (`$1`, a list of their numbers as `{16401,16402}`), and those that they are made of.
    public static let query = """
        WITH RECURSIVE wanted(id) AS (
            SELECT unnest($1::oid[])
            UNION
            SELECT part.id FROM wanted JOIN pg_type t ON t.oid = wanted.id,
                LATERAL (VALUES (t.typbasetype),
                    (CASE WHEN t.typoutput = 'array_out'::regproc THEN t.typelem ELSE 0::oid END)) AS part(id)
            WHERE part.id <> 0)
        SELECT t.oid, t.typbasetype,
            CASE WHEN t.typoutput = 'array_out'::regproc THEN t.typelem ELSE 0::oid END, ascii(t.typdelim::text),
            CASE WHEN t.typtype IN ('c', 'p')
                OR (t.typsubscript = 'array_subscript_handler'::regproc AND t.typoutput <> 'array_out'::regproc)
                OR (t.oid >= 16384 AND EXISTS (SELECT 1 FROM pg_cast c
                    WHERE c.castsource = t.oid AND c.casttarget = 'json'::regtype AND c.castmethod = 'f'))
                THEN 't' ELSE 'f' END
        FROM pg_type t WHERE t.oid IN (SELECT id FROM wanted)
        """

    /// Asks for the name by which `ask` casts.
    public static let nameQuery = "SELECT format_type($1::oid, NULL)"

    /// Asks for a value (`$1`) as JSON.
    ///
    /// - Parameter type: its name, as ``nameQuery`` gives it.
    public static func valueQuery(type: String) -> String { "SELECT to_jsonb($1::\(type))::text" }

    /// The types of the query's rows, by their numbers.
    public static func types(of rows: [[String?]]) -> [UInt32: SourceType] {
        var entries: [UInt32: Entry] = [:]
        for row in rows where row.count == 5 {
            let numbers = row.prefix(4).map { $0.flatMap { UInt32($0) } ?? 0 }
            entries[numbers[0]] = Entry(
                domainOf: numbers[1], arrayOf: numbers[2], delimiter: UInt8(truncatingIfNeeded: numbers[3]),
                isAsked: row[4] == "t")
        }
        return Dictionary(uniqueKeysWithValues: entries.keys.map { ($0, type($0, entries, depth: 0)) })
    }

    private struct Entry {
        let domainOf: UInt32
        let arrayOf: UInt32
        let delimiter: UInt8
        let isAsked: Bool
    }

    /// Types of types end: a domain of a domain of an array, and so on, as far as somebody made them.
    private static let depthMax = 32

    private static func type(_ id: UInt32, _ entries: [UInt32: Entry], depth: Int) -> SourceType {
        if let known = SourceType.known[id] { return known }
        guard let entry = entries[id], depth < depthMax else { return .text }
        if entry.isAsked { return .asked }
        if entry.domainOf != 0 { return type(entry.domainOf, entries, depth: depth + 1) }
        guard entry.arrayOf != 0 else { return .text }
        return .array(
            of: type(entry.arrayOf, entries, depth: depth + 1),
            delimiter: entries[entry.arrayOf]?.delimiter ?? UInt8(ascii: ","))
    }
}
