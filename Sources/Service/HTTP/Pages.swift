import MicroHTTP
import Values

/// The page of a list that a request asks for with `limit` and `cursor`, and the answer that shows it: `{items, next}`
/// with the address of the next page in `Link` (RFC 8288).
struct Page: Sendable {
    /// The key of the last item of the page before.
    let after: String?
    let limit: Int
    private let call: Call

    init(_ call: Call, limitMax: Int) throws(Failure) {
        self.call = call
        limit = try call.query.int("limit", in: 1...limitMax) ?? min(Limits.pageDefault, limitMax)
        if let cursor = try call.query.string("cursor") {
            after = try call.cursors.open(cursor, filters: PageCursors.filters(of: call))
        } else {
            after = nil
        }
    }

    /// How many rows to read: one more than the page has tells whether there is a next one.
    var rowsMax: Int { limit + 1 }

    /// The rows of the page, and the cursor of the next one; nil if this is the last.
    ///
    /// - Parameters:
    ///   - found: up to `rowsMax` rows behind `after`.
    ///   - key: what `after` is for the page that begins behind a row.
    func cut<Row>(_ found: [Row], by key: (Row) -> String) -> (rows: ArraySlice<Row>, next: String?) {
        let rows = found.prefix(limit)
        guard found.count > limit, let last = rows.last else { return (rows, nil) }
        return (rows, call.cursors.seal(key(last), filters: PageCursors.filters(of: call)))
    }

    /// The page as the answer.
    func response<Row: JSONWritable>(_ found: [Row], by key: (Row) -> String) -> Response {
        response(found, by: key, showing: { $0 })
    }

    /// The page as the answer, each row as `show` makes it: for what is read of the rows that are shown alone.
    func response<Row>(
        _ found: [Row], by key: (Row) -> String, showing show: (Row) throws -> some JSONWritable
    ) rethrows -> Response {
        let (rows, next) = cut(found, by: key)
        return Response.list(try rows.map(show), next: next, headers: next.map { [link(to: $0)] } ?? [])
    }

    private func link(to cursor: String) -> (name: String, value: String) {
        let others = call.request.queryItems.filter { $0.name != "cursor" }
            .map { "\(Response.encoded($0.name))=\(Response.encoded($0.value ?? ""))&" }.joined()
        return ("Link", "<\(call.request.path)?\(others)cursor=\(cursor)>; rel=\"next\"")
    }
}

extension Call {
    /// The page that `limit` and `cursor` ask for.
    func page(limitMax: Int) throws(Failure) -> Page { try Page(self, limitMax: limitMax) }
}

extension Response {
    /// All items of a list, or those of one page.
    static func list(
        _ items: some Sequence<some JSONWritable>, next: String? = nil, headers: HeaderFields = []
    ) -> Response {
        .json(headers: headers) { writer in
            writer.member("items", items)
            writer.member("next", next)
        }
    }
}
