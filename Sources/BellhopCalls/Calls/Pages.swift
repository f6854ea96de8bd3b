extension Bellhop {
    /// All pages of a list. Each page is fetched when the iteration reaches it.
    ///
    /// ```swift
    /// for try await message in client.messagePages(id: "c1").items { print(message.text) }
    /// ```
    public struct Pages<Page: PageOfItems>: AsyncSequence, Sendable {
        public typealias Element = Answer<Page>

        let fetch: @Sendable (_ cursor: String?) async throws -> Answer<Page>

        package init(fetch: @escaping @Sendable (_ cursor: String?) async throws -> Answer<Page>) {
            self.fetch = fetch
        }

        public func makeAsyncIterator() -> Iterator { Iterator(fetch: fetch) }

        /// The items of all pages, one after another.
        public var items: Items { Items(pages: self) }

        public struct Iterator: AsyncIteratorProtocol {
            let fetch: @Sendable (_ cursor: String?) async throws -> Answer<Page>
            private var cursor: String?
            private var isOver = false

            init(fetch: @escaping @Sendable (_ cursor: String?) async throws -> Answer<Page>) {
                self.fetch = fetch
            }

            public mutating func next() async throws -> Answer<Page>? {
                guard !isOver else { return nil }
                let page = try await fetch(cursor)
                // A page that names itself as the next one would be fetched forever.
                isOver = page.value.next == nil || page.value.next == cursor
                cursor = page.value.next
                return page
            }
        }

        public struct Items: AsyncSequence, Sendable {
            public typealias Element = Page.Item

            let pages: Pages

            public func makeAsyncIterator() -> Iterator { Iterator(pages: pages.makeAsyncIterator()) }

            public struct Iterator: AsyncIteratorProtocol {
                var pages: Pages.Iterator
                private var items: ArraySlice<Page.Item> = []

                init(pages: Pages.Iterator) { self.pages = pages }

                public mutating func next() async throws -> Page.Item? {
                    while items.isEmpty {
                        guard let page = try await pages.next() else { return nil }
                        items = page.value.items[...]
                    }
                    return items.removeFirst()
                }
            }
        }
    }
}
