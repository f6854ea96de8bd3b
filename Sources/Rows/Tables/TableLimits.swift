/// The limits of a file of tables, and of the data that is stored because of it.
public enum TableLimits {
    /// Tables. Their templates are compared with one another: without this limit, a generated file could delay the
    /// start by minutes.
    public static let tablesMax = 200
    /// Kinds of topics. Each is checked for every topic to which a stream subscribes.
    static let topicsMax = 64
    /// With a colon and an id of 128 bytes, a topic has at most 160 bytes.
    static let topicPrefixBytesMax = 31
    /// PostgreSQL's own limit for names (NAMEDATALEN − 1). A longer name is never the name of a table or column.
    public static let nameBytesMax = 63
    /// Templates per operation. Every row is evaluated against each of them, twice for an update.
    public static let templatesMax = 16
    /// Bytes of a template. It is part of every key that it makes, and keys are part of every event and every scope.
    public static let templateBytesMax = 256
    /// Bytes of a value in a key; a longer value makes no key. Keys are stored for every stream whose scope has them.
    static let keyValueBytesMax = 256
    static let primaryKeyColumnsMax = 8
    /// Columns. An update compares each of them, old with new.
    public static let columnsMax = 100
    static let groupsMax = 16
    /// Keys of an invalidation group. With ``groupsMax``, it bounds the query keys that one row can invalidate; each is
    /// an entry per receiving stream.
    static let keysPerGroupMax = 16
    public static let keyPartsMax = 8
    /// Bytes of a part of a query key, which is sent to every client that receives the key.
    public static let keyPartBytesMax = 128
    static let relatedMax = 4
    static let membershipsPerTableMax = 4
    /// Memberships. Every scope is evaluated against each of them when a stream opens.
    static let membershipsMax = 64
    static let conditionColumnsMax = 8
    static let conditionValuesMax = 16
    static let countsMax = 8
    /// Keys that memberships give to one scope, about 100 bytes each. They are enough for the admin of a district with
    /// all classes. If a scope exceeds the limit, the stream, the log and `/v1/me` say so. Without this limit, a table
    /// with the memberships of all users could fill the memory through one user. `StreamLimits.wideKeysMax` bounds the
    /// wide scopes of all streams together, and `Limits.verifiedKeysMax` the keys of verified tokens.
    public static let grantedKeysMax = 10_000
    /// Objects of one subject in one membership. More would be cut from every scope.
    public static let grantsPerSubjectMax = grantedKeysMax
    /// Keys that one row makes from the elements of a list or through a related column. Each is a row in the index of
    /// the log.
    public static let keysPerRowMax = 512
    /// Stored facts and subjects, about 300 bytes each. More would take the memory that streams need.
    public static let membershipEntriesMax = 1_000_000
    /// Mistakes that are reported at once: enough to fix a file, few enough to read.
    public static let mistakesMax = 20
    /// A shorter window would send as often as rows arrive. With a longer one, a screen would lag more than 5 s behind
    /// its database.
    public static let windowMilliseconds = 50...60_000
    public static let windowDefaultMilliseconds = 1_000
    /// Query keys that wait for one stream. A client that must fetch more than these fetches everything.
    public static let pendingKeysPerStreamMax = 512
    /// Causes that are sent with one key of one window: enough for a burst of 20 rows.
    public static let causesPerKeyMax = 32
    /// Causes of all keys in one event, about 150 bytes each. A client that does not receive all of them fetches.
    public static let causesPerBatchMax = 128
}
