/// The limits of a delivery of table changes, each with its reason.
public enum ChangeLimits {
    /// Bytes of a whole delivery. Each delivery in progress is in memory once as bytes and once as values.
    public static let bodyBytesMax = 8 << 20
    /// Items of a delivery. A delivery is one transaction; a longer one would delay all other writes by more than the
    /// 100 ms in which a delivery must be acknowledged.
    public static let itemsMax = 1_000
    /// Bytes of one item. Supabase Realtime truncates rows at the same size. A row goes into the event log and to every
    /// stream that may see it, so a row of megabytes would fill the buffers of all of them.
    public static let itemBytesMax = 1 << 20
    /// Nesting levels of an item. Rows are read again from the event log with the reader's default of 32. A deeper row
    /// could be accepted but never delivered.
    public static let depthMax = 32
    /// Nesting levels of a JSON document that is embedded as text in a row. It becomes part of the row, which adds its
    /// own levels.
    static let embeddedDepthMax = 24
    /// Columns of a row: PostgreSQL's limit for a table. Filters look up each of them and compare old with new.
    public static let columnsMax = 1_600
    /// Bytes of the name of a schema, table or column. Names are keys of indexes and part of every event. PostgreSQL's
    /// own limit is 63; the longest of the databases that Debezium reads is 128 characters.
    public static let nameBytesMax = 256
    /// Bytes of an id that identifies duplicates. Each is stored in a unique index for as long as duplicates are
    /// expected.
    public static let deduplicationIDBytesMax = 512
    /// Bytes of a primary key as text. It is part of every event and of the causes of every invalidation.
    public static let primaryKeyBytesMax = 512
    /// Elements of all of a row's arrays of dates, times, decimals or JSON that are converted because of Debezium's
    /// schema. Each may become sixteen times as long, so a row of the maximum size would write sixteen times that into
    /// the event log.
    public static let translatedElementsMax = 32_768
    /// Bytes of a decimal that Debezium writes as a binary integer: more than 1,200 digits. The conversion to digits
    /// takes quadratic time.
    public static let decimalBytesMax = 512
    /// Digits after the point of such a decimal, or zeros before it. A scale takes five bytes and could demand
    /// gigabytes.
    static let decimalScaleMax = 2_000
}
