import BellhopClient
import Testing

/// The steps that prepare the tests of posts.
extension TestService {
    @discardableResult
    func post(
        _ user: String, _ text: String = "hello", _ visibility: Bellhop.CreatePostBody.Visibility = .public
    ) async throws -> Bellhop.PostView {
        let made = try await client(user).createPost(.init(visibility: visibility, text: text))
        #expect(made.status == 201)
        return made.value
    }

    func follow(_ author: String, as user: String) async throws {
        try await client(user).follow(id: author, followerId: "me")
    }

    func unfollow(_ author: String, as user: String) async throws {
        #expect(try await client(user).unfollow(id: author, followerId: "me").status == 204)
    }

    /// Returns the sequence numbers of the whole feed, page by page.
    func pages(of user: String, limit: Int, since: Int? = nil) async throws -> [Int] {
        try await client(user).feedPages(since: since, limit: limit).items.reduce(into: []) { $0.append($1.sequence) }
    }
}
