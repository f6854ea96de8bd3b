/// The bounds of one delivery of table changes, each with what breaks without it.
public enum ChangeLimits {
    /// Bytes of a whole delivery. It takes memory once as bytes and once as values, for every delivery under way.
    public static let bodyBytesMax = 8 << 20
    /// Items of one delivery. A delivery is one transaction; a longer one would delay all other writes for more
    /// than the 100 ms in which a delivery is to be acknowledged.
    public static let itemsMax = 1_000
    /// Bytes of one item, the size at which Supabase Realtime cuts rows as well. A row goes into the event log and to
    /// every stream that may see it; one row of megabytes would fill the buffers of all of them.
    public static let itemBytesMax = 1 << 20
    /// Levels of an item. Rows are read again from the event log with the reader's default of 32; a row that is deeper
    /// could be accepted and never be delivered.
    public static let depthMax = 32
    /// Levels of a JSON document that stands as text inside a row. It becomes part of the row, which has levels of its
    /// own above it.
    static let embeddedDepthMax = 24
    /// Columns of a row: what PostgreSQL allows for a table. Each is looked up by filters and compared old against new.
    public static let columnsMax = 1_600
    /// Bytes of the name of a schema, a table or a column. Names are keys of indexes and stand in every event; 63 is
    /// PostgreSQL's own bound, 128 characters the longest of the databases that Debezium reads.
    public static let nameBytesMax = 256
    /// Bytes of an id that identifies duplicates. Every one is stored in a unique index for as long as duplicates are
    /// expected.
    public static let deduplicationIDBytesMax = 512
    /// Bytes of a primary key as text. It stands in every event and in the causes of every invalidation.
    public static let primaryKeyBytesMax = 512
    /// Elements of a row's arrays of dates, times, decimals or JSON, all of them together, where Debezium's schema asks
    /// to write them out. Each may become sixteen times as long as it was, so that a row of the largest size would fill
    /// the event log with sixteen.
    public static let translatedElementsMax = 32_768
    /// Bytes of a decimal that Debezium writes as a binary integer: more than 1,200 digits. Turning it into digits
    /// costs time in proportion to its square.
    public static let decimalBytesMax = 512
    /// Digits behind (or zeros before) the point of such a decimal. A scale is five bytes and could ask for gigabytes.
    static let decimalScaleMax = 2_000
}
