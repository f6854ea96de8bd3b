import Database
import Domain
import MicroHTTP
import Rows
import Values
import Visibility

extension PostsFeature {
    static let followEndpoints = [
        Endpoint(.get, "/v1/users/{id}", access: .bearer, showAuthor),
        Endpoint(.get, "/v1/users/{id}/followers", access: .bearer, query: ["limit", "cursor"]) {
            try list(asAuthor: true, $0)
        },
        Endpoint(.get, "/v1/users/{id}/following", access: .bearer, query: ["limit", "cursor"]) {
            try list(asAuthor: false, $0)
        },
        Endpoint(.get, "/v1/users/{id}/followers/{followerId}", access: .bearer, showFollowing),
        Endpoint(.put, "/v1/users/{id}/followers/{followerId}", access: .bearer, adds: true, follow),
        Endpoint(.delete, "/v1/users/{id}/followers/{followerId}", access: .bearer, unfollow),
    ]

    /// `GET /v1/users/{id}`: a user without followers has zeros, because the token's issuer manages users.
    private static func showAuthor(_ call: Call) throws -> Answer {
        let userId = try call.pathUser(0)
        return .read { tx in
            let author = try author(userId, tx)
            let isFollowed = try findFollowing(of: tx.caller.userId, to: userId, tx) != nil
            let isFollowing = try findFollowing(of: userId, to: tx.caller.userId, tx) != nil
            return Response.json(200) { writer in
                author.write(membersTo: &writer)
                writer.member("followed", isFollowed)
                writer.member("followsYou", isFollowing)
            }
        }
    }

    /// `GET …/followers` and `…/following`: only relations in which the caller is one of the two.
    private static func list(asAuthor: Bool, _ call: Call) throws -> Answer {
        let page = try call.page(limitMax: PostLimits.pageMax)
        let listing = followings(
            of: try call.pathUser(0), asAuthor: asAuthor, after: page.after, limit: page.rowsMax,
            visibleTo: call.caller.scope)
        return .query(listing) { rows in
            page.response(try rows.rows(following)) { asAuthor ? $0.followerId.text : $0.authorId.text }
        }
    }

    private static func showFollowing(_ call: Call) throws -> Answer {
        let (authorId, followerId) = try (call.pathUser(0), call.pathUser(1))
        return .read { tx in
            Response.json(200, try findFollowing(of: followerId, to: authorId, tx).required("follower"))
        }
    }

    /// `PUT …/followers/me`: 201; 200 for an existing follower. A backend names the follower.
    private static func follow(_ call: Call) throws -> Answer {
        let (authorId, followerId) = try (call.pathUser(0), call.pathUser(1))
        guard authorId != followerId else {
            throw Failure(
                .conflict, "follow.self", "You cannot follow yourself: your feed already contains your own posts.")
        }
        return .write { tx in
            try tx.requireContact(.follows, with: [authorId])
            // Both locks are acquired at once, in one order, because the two may be following each other at the same
            // moment.
            try tx.lock([.author(authorId), .author(followerId)])
            if let known = try findFollowing(of: followerId, to: authorId, tx) { return try response(200, known, tx) }
            guard try author(followerId, tx).followingCount < PostLimits.followedMax else {
                throw Failure(
                    .conflict, "follow.too_many",
                    "A user can follow at most \(PostLimits.followedMax) others. Unfollow one first.")
            }
            let following = Following(followerId: followerId, authorId: authorId, followedAt: tx.now)
            guard try insert(following, tx) else { throw Failure.notFound("user") }
            try note(followerId, follows: authorId, true, tx)
            return try response(201, following, tx)
        }
    }

    /// `DELETE …/followers/me`; authors can also remove a follower.
    private static func unfollow(_ call: Call) throws -> Answer {
        let (authorId, followerId) = try (call.pathUser(0), call.pathUser(1))
        return .write { tx in
            try tx.lock([.author(authorId), .author(followerId)])
            if try unfollow(authorId, by: followerId, tx) { try note(followerId, follows: authorId, false, tx) }
            return .noContent
        }
    }

    /// Changes both counts, and at once the keys of the follower's open streams.
    static func note(
        _ followerId: ID<User>, follows authorId: ID<User>, _ follows: Bool, _ tx: Transaction
    ) throws {
        try add(followers: follows ? 1 : -1, to: authorId, tx)
        try add(following: follows ? 1 : -1, to: followerId, tx)
        if follows { tx.noteReached(authorId) }
        KeyGrants.publish(followed, of: followerId.text, in: authorId.text, isGranted: follows, tx)
        tx.publish(
            "follow:changed", audience: [AudienceKey.make("user", followerId.text)],
            data: JSONWriter.object { writer in
                writer.member("authorId", authorId)
                writer.member("followerId", followerId)
                writer.member("followed", follows)
            })
    }

    private static func response(_ status: Int, _ following: Following, _ tx: Transaction) throws -> Response {
        let author = try author(following.authorId, tx)
        return Response.json(status) { writer in
            writer.member("followerId", following.followerId)
            writer.member("authorId", following.authorId)
            writer.member("followedAt", following.followedAt)
            writer.member("followerCount", author.followerCount)
        }
    }
}
