/// Requests that can make the HTTP library drop the request while it reads it.
public enum MalformedRequests {
    /// The well-formed request that the damaged ones are derived from.
    public static let sound = "GET /hello HTTP/1.1\r\nHost: x\r\nX-Name: a\r\n\r\n"

    private static let chunked = "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"

    public static let all: [String] = longQueries + heads + bodies + damaged

    /// The library stores each item of a query as a record in the connection's memory.
    private static let longQueries = [250, 300, 2000].flatMap { count in
        ["&", "&=", "&a=b", "&%zz"].map { item in
            "GET /?\(String(repeating: item, count: count)) HTTP/1.1\r\nHost: x\r\n\r\n"
        }
    }

    private static let heads: [String] = {
        let long = String(repeating: "a", count: 20_000)
        return [
            "GET /\(long) HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nX: \(long)\r\n\r\n", "GET / HTTP/9.9\r\n\r\n",
            "GET / HTTP/1.1\r\n" + String(repeating: "X: y\r\n", count: 800) + "\r\n",
            "GET / HTTP/1.1\r\n" + String(repeating: "\r\n a", count: 800) + "\r\n",
            "GET / HTTP/1.1\r\nX: a\r\n" + String(repeating: " b\r\n", count: 800) + "\r\n",
            "GET / HTTP/1.1\r\nCookie: " + String(repeating: "a=b;", count: 1000) + "\r\n\r\n",
            "GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
            "GET / HTTP/1.1\r\nContent-Length: abc\r\n\r\n",
            "GET / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
            "GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "\r\n\r\n\r\n", "GET", "\0\0\0",
        ]
    }()

    private static let bodies = [
        chunked + "zz\r\n", chunked + "ffffffffffffffffff\r\n", chunked + "3\r\nabcX", chunked + "0\r\nbroken\r\n\r\n",
        chunked + "3\nabc\r\n0\r\n\r\n", chunked + "3\r\nab",
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc",
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc",
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        "POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ]

    /// A well-formed head with a wrong byte inserted at each position, and a head truncated at each position.
    private static let damaged = (0..<sound.utf8.count).flatMap { place in
        let split = sound.utf8.index(sound.utf8.startIndex, offsetBy: place)
        let (before, after) = (String(sound[..<split]), String(sound[split...]))
        return ["\0", "\r", "\n", " ", ":"].map { before + $0 + after } + [before]
    }
}
