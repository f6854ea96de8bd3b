/// The bounds of a file of tables, and of what is stored because of it.
public enum TableLimits {
    /// Templates are compared with one another: without a bound a generated file could delay the start for minutes.
    public static let tablesMax = 200
    /// Kinds of topics; each is looked at for every topic that a stream names.
    static let topicsMax = 64
    /// With a colon and an id of 128 bytes a topic has 160 at most.
    static let topicPrefixBytesMax = 31
    /// PostgreSQL's own bound for names (NAMEDATALEN − 1): a longer name is never the name of a table or column.
    public static let nameBytesMax = 63
    /// Every row is put through every template of its operation, twice for an update.
    public static let templatesMax = 16
    /// A template stands in every key it makes, and keys stand in every event and every scope.
    public static let templateBytesMax = 256
    /// A value that is longer makes no key: keys are stored for every stream whose scope has them.
    static let keyValueBytesMax = 256
    static let primaryKeyColumnsMax = 8
    /// An update compares each of them, old with new.
    public static let columnsMax = 100
    static let groupsMax = 16
    /// With ``groupsMax`` it bounds the query keys that one row can invalidate, each an entry per stream that receives
    /// it.
    static let keysPerGroupMax = 16
    public static let keyPartsMax = 8
    /// A part of a query key: it is sent to every client that receives the key.
    public static let keyPartBytesMax = 128
    static let relatedMax = 4
    static let membershipsPerTableMax = 4
    /// Every scope is put through every membership when a stream opens.
    static let membershipsMax = 64
    static let conditionColumnsMax = 8
    static let conditionValuesMax = 16
    static let countsMax = 8
    /// Keys that memberships give to one scope, about 100 bytes each: those of a district's admin with all classes. More
    /// is said in the stream, the log and `/v1/me`; without it a table of everybody's memberships fills the memory by way
    /// of one user. What all streams' wide scopes may have together is bounded by `StreamLimits.wideKeysMax`, what
    /// verified tokens' may by `Limits.verifiedKeysMax`.
    public static let grantedKeysMax = 10_000
    /// What one subject may have of one membership: more would be cut from every scope.
    public static let grantsPerSubjectMax = grantedKeysMax
    /// Keys that one row makes of a list's elements, or by way of a related column. Each is a row of the log's index.
    public static let keysPerRowMax = 512
    /// Stored facts and subjects, about 300 bytes each: more would take the memory that streams need.
    public static let membershipEntriesMax = 1_000_000
    /// Mistakes that are reported at once: enough to mend a file, few enough to read.
    public static let mistakesMax = 20
    /// Shorter would send as often as rows come; longer would miss what a screen may lag behind its database, 5 s.
    public static let windowMilliseconds = 50...60_000
    public static let windowDefaultMilliseconds = 1_000
    /// Query keys that wait for one stream. A client that must fetch more than these fetches everything.
    public static let pendingKeysPerStreamMax = 512
    /// Causes that are sent with one key of one window: enough for a burst of 20 rows.
    public static let causesPerKeyMax = 32
    /// Causes that are sent in one event, of all its keys: about 150 bytes each. A client that does not receive all of
    /// them fetches.
    public static let causesPerBatchMax = 128
}
