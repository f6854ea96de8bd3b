import MicroHTTP
import Values

/// The page of a list that a request selects with `limit` and `cursor`, and its response: `{items, next}`, with the
/// address of the next page in `Link` (RFC 8288).
struct Page: Sendable {
    /// The key of the last item of the previous page.
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

    /// The number of rows to read: one more than the page has, to detect a next page.
    var rowsMax: Int { limit + 1 }

    /// Returns the rows of the page, and the cursor of the next one; nil if this is the last page.
    ///
    /// - Parameters:
    ///   - found: up to `rowsMax` rows behind `after`.
    ///   - key: the value of `after` for a page that begins behind a row.
    func cut<Row>(_ found: [Row], by key: (Row) -> String) -> (rows: ArraySlice<Row>, next: String?) {
        let rows = found.prefix(limit)
        guard found.count > limit, let last = rows.last else { return (rows, nil) }
        return (rows, call.cursors.seal(key(last), filters: PageCursors.filters(of: call)))
    }

    /// Returns the page as a response.
    func response<Row: JSONWritable>(_ found: [Row], by key: (Row) -> String) -> Response {
        response(found, by: key, showing: { $0 })
    }

    /// Returns the page as a response, with each row converted by `show`: for values that are only read for shown rows.
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
    /// Returns the page that `limit` and `cursor` select.
    func page(limitMax: Int) throws(Failure) -> Page { try Page(self, limitMax: limitMax) }
}

extension Response {
    /// Returns all items of a list, or the items of one page.
    static func list(
        _ items: some Sequence<some JSONWritable>, next: String? = nil, headers: HeaderFields = []
    ) -> Response {
        .json(headers: headers) { writer in
            writer.member("items", items)
            writer.member("next", next)
        }
    }
}
