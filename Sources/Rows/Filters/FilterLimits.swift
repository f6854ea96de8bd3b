/// The limits of filters and subscriptions, each with its reason. `/v1/config` publishes them.
public enum FilterLimits {
    /// Bytes of a filter. 1,000 quoted UUIDs take 39,000 bytes, and four such filters in one request are still a small
    /// body. Without this limit, a client chooses how much memory each of its subscriptions takes.
    public static let filterBytesMax = 65536
    /// Conditions of a filter. Each is evaluated on every candidate row. Without this limit, one subscription makes
    /// every change slow.
    public static let conditionsMax = 20
    /// Values of one `in`. A set refers to its values by 16-bit numbers, so that an id takes little memory.
    public static let valuesMax = 1000
    /// Bytes of a value. This is enough for URLs and composite ids. Without this limit, a single comparison could take
    /// all bytes of a filter.
    public static let valueBytesMax = 1024
    /// Bytes of a number or a time. The largest 256-bit integer has 78 digits. Without this limit, a filter could hold
    /// thousands of digits, whose conversion costs more than comparing as many bytes of text.
    public static let numberBytesMax = 128
    /// Bytes of a column name. PostgreSQL allows 63, other databases 128.
    public static let columnBytesMax = 128
    /// Characters between two `%` of a `like`. They fit one machine word, so that a text is read once whatever the
    /// pattern. Without this limit, a pattern such as `%aaaa…ab%` costs the product of both lengths.
    public static let patternRunMax = 64
    /// Bytes of a row's text that `like` searches between two `%`. For a longer text the result is unknown. Without
    /// this limit, one change with a megabyte of text costs milliseconds for each such filter.
    public static let searchedBytesMax = 8192
    /// Columns of one `select`. Clients that need more receive the whole row.
    public static let selectedColumnsMax = 100
    /// Bytes of a subscription's id, which the client chooses.
    public static let subscriptionIdBytesMax = 64

    /// Subscriptions of one stream. Each is a table and a filter to evaluate, and an id in every event.
    public static let subscriptionsPerStreamMax = 100
    /// Values in all filters of one stream: 700 KB at 70 bytes each. Without this limit, 100 subscriptions of 1,000
    /// values take 7 MB, and 1,000 such streams fill a machine.
    public static let valuesPerStreamMax = 10_000
    /// Conditions of all filters of one stream that search texts (`like.%word%`). A search of 8 KiB costs as much as a
    /// hundred other conditions. Without this limit, 100 subscriptions to one id make each of its changes cost
    /// milliseconds.
    public static let searchesPerStreamMax = 10
    /// Bytes of all subscriptions of one user (``TableSubscription/storedBytes``): two of the largest streams, or a
    /// thousand at the usual 3 KB. Without this limit, the twenty streams of one user hold 34 MB, and a few users fill
    /// the memory.
    public static let bytesPerUserMax = 4 << 20
    /// The minimum of these bytes that each shard's index allows, because one stream with 1 MiB of filters must fit.
    /// With more than two shards, a user may have more than ``bytesPerUserMax`` in total.
    public static let bytesPerUserOfShardMin = 2 << 20
    /// Values in all filters of one index, 4,000,000 at 70 bytes: 280 MB. Without this limit, one more stream
    /// could exhaust the memory and end the process for all.
    public static let valuesPerIndexMax = 4_000_000
    /// Filters of one table that no hash can find (`points=gt.5`). Every change of the table must evaluate them: 10,000
    /// at 100 ns make 1 ms per change. Without this limit, the cost of a change grows with the number of all streams.
    public static let scannedPerTableMax = 10_000
    /// The share of these that one user may have in all streams together, by weight. It is the maximum of a single
    /// stream: ten searches and ninety others. Without this limit, ten streams of one user use up the table's limit for
    /// all users.
    public static let scannedPerUserMax =
        searchesPerStreamMax * searchWeight + subscriptionsPerStreamMax
    /// The number of filters that one filter with a text search counts as: 8 KiB take 10 µs.
    public static let searchWeight = 100
}
