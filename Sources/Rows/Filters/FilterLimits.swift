/// The bounds of filters and subscriptions, each with what breaks without it. `/v1/config` publishes them.
public enum FilterLimits {
    /// 1,000 quoted UUIDs take 39,000 bytes; four such filters in one request are still no large body. Without it a
    /// client chooses how much memory each of its subscriptions takes.
    public static let filterBytesMax = 65536
    /// Each condition is evaluated on every candidate row. Without it one subscription makes every change slow.
    public static let conditionsMax = 20
    /// Values of one `in`. A set refers to its values by 16-bit numbers, so that an id takes little memory.
    public static let valuesMax = 1000
    /// Long enough for URLs and composite ids. Without it a thousand values could fill the bytes of a filter with a
    /// single comparison.
    public static let valueBytesMax = 1024
    /// Bytes of a number or a time. The largest 256-bit integer has 78 digits. Without it a filter could hold thousands of
    /// digits, whose conversion costs more than comparing as many bytes of text.
    public static let numberBytesMax = 128
    /// PostgreSQL's names have 63 bytes, other databases' 128.
    public static let columnBytesMax = 128
    /// Characters between two `%` of a `like`: what one machine word can follow at once, so that a text is read once
    /// whatever the pattern. Without it a pattern such as `%aaaa…ab%` costs the product of both lengths.
    public static let patternRunMax = 64
    /// Bytes of a row's text that `like` searches between two `%`; for a longer one the result is unknown. Without it
    /// one change with a megabyte of text costs milliseconds for each such filter.
    public static let searchedBytesMax = 8192
    /// Columns of one `select`. A row with more is sent whole.
    public static let selectedColumnsMax = 100
    /// The bytes of a subscription's own id.
    public static let subscriptionIdBytesMax = 64

    /// Subscriptions of one stream: each is a table and a filter to evaluate, and an id in every event.
    public static let subscriptionsPerStreamMax = 100
    /// Values in all filters of one stream. At 70 bytes each they are 700 KB; without it 100 subscriptions of 1,000
    /// values are 7 MB, and 1,000 such streams fill a machine.
    public static let valuesPerStreamMax = 10_000
    /// Conditions of all filters of one stream that search texts (`like.%word%`). A search of 8 KiB costs what a
    /// hundred other conditions do; without it, 100 subscriptions to one id make each of its changes cost milliseconds.
    public static let searchesPerStreamMax = 10
    /// Values in all filters of one index, 4,000,000 at 70 bytes: 280 MB. Without it the last stream to join ends
    /// the process for all.
    public static let valuesPerIndexMax = 4_000_000
    /// Filters of one table that no hash can find (`points=gt.5`), which every change of the table therefore has to
    /// evaluate: 10,000 at 100 ns make 1 ms a change. Without it, a change costs what all streams cost together.
    public static let scannedPerTableMax = 10_000
    /// Of these, those of one user, by their weight and in all of the user's streams: what a single stream may have at
    /// most, ten searches and ninety others. Without it ten streams of one user fill the table for everybody.
    public static let scannedPerUserMax =
        searchesPerStreamMax * searchWeight + subscriptionsPerStreamMax
    /// The number of them that one filter with a text search counts as: 8 KiB take 10 µs.
    public static let searchWeight = 100
}
