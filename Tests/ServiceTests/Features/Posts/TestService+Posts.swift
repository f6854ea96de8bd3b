import BellhopClient
import Testing

@testable import Service

/// Shorthand requests for the tests of posts.
extension TestService {
    func client(_ user: String) -> BellhopClient { client(as: .user(user)) }

    /// Creates a post and returns the answer.
    @discardableResult
    func post(_ user: String, _ text: String = "hello", _ visibility: String = "public") async throws -> JSON {
        let answer = try await client(user).post(
            "/v1/posts", ["text": .string(text), "visibility": .string(visibility)])
        #expect(answer.status == 201, "\(answer.problem)")
        return answer.json
    }

    func follow(_ author: String, as user: String) async throws {
        let answer = try await client(user).put("/v1/users/\(author)/followers/me")
        #expect(answer.isSuccess, "\(answer.problem)")
    }

    func unfollow(_ author: String, as user: String) async throws {
        #expect(try await client(user).delete("/v1/users/\(author)/followers/me").status == 204)
    }

    func feed(_ user: String, _ query: String = "") async throws -> JSON {
        let answer = try await client(user).get("/v1/feed\(query)")
        #expect(answer.status == 200, "\(answer.problem)")
        return answer.json
    }

    /// Returns the sequence numbers of the whole feed, page by page.
    func pages(of user: String, limit: Int, since: Int? = nil) async throws -> [Int] {
        var sequences: [Int] = []
        var cursor: String?
        repeat {
            let newer = since.map { "&since=\($0)" } ?? ""
            let page = try await feed(user, "?limit=\(limit)\(newer)" + (cursor.map { "&cursor=\($0)" } ?? ""))
            sequences += (page["items"].array ?? []).compactMap { $0["sequence"].int }
            cursor = page["next"].string
        } while cursor != nil
        return sequences
    }
}
