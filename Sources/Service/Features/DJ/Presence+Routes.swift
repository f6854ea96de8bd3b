import Database
import Domain
import MicroHTTP
import Values

extension DJFeature {
    static let presenceEndpoints = [
        Endpoint(.get, "/v1/shops/{id}/presence", access: .bearer, showRule),
        Endpoint(.put, "/v1/shops/{id}/presence", access: .staffOrService, replaceRule),
        Endpoint(.get, "/v1/shops/{id}/presence/code", access: .staffOrService, showCode),
        Endpoint(.get, "/v1/shops/{id}/presence/me", access: .bearer, showPresence),
        Endpoint(.put, "/v1/shops/{id}/presence/me", access: .bearer, arrive),
        Endpoint(.delete, "/v1/shops/{id}/presence/me", access: .bearer, leave),
    ]

    private static func showRule(_ call: Call) throws -> Answer {
        let id = try call.pathID(0, Shop.self)
        return .read { tx in rule(try requireShop(id, tx).requiresCode, of: id) }
    }

    /// `PUT …/presence` `{"codeRequired": true}`: from now on, a guest must prove their presence by the code.
    private static func replaceRule(_ call: Call) throws -> Answer {
        let id = try call.pathID(0, Shop.self)
        let requiresCode = try call.body { $0.bool("codeRequired") }
        return .write(locking: .dj(id)) { tx in
            _ = try requireOwnShop(id, tx)
            if requiresCode { try makeCodeSecret(tx) }
            try tx.db.run(
                "UPDATE \(shops, writableBy: tx.scope) SET requires_code = \(requiresCode) WHERE shop_id = \(id)")
            return rule(requiresCode, of: id)
        }
    }

    private static func rule(_ requiresCode: Bool, of shopId: ID<Shop>) -> Response {
        Response.json(200) { writer in
            writer.member("shopId", shopId)
            writer.member("codeRequired", requiresCode)
            writer.member("lifetimeSeconds", PresenceLimits.lifetimeSeconds)
        }
    }

    /// `GET …/presence/code`: the code that the shop displays to its guests now.
    private static func showCode(_ call: Call) throws -> Answer {
        let id = try call.pathID(0, Shop.self)
        return .read { tx in
            guard try requireOwnShop(id, tx).requiresCode else {
                throw Failure(.conflict, "presence.no_code", "The shop does not require a code.")
            }
            let window = PresenceCode.Window(at: tx.now)
            let code = try code(of: id, in: window, tx)
            let body = JSONWriter.object { writer in
                writer.member("shopId", id)
                writer.member("code", code.description)
                writer.member("rotatesAt", window.rotatesAt)
                writer.member("expiresAt", window.expiresAt)
            }
            return Response.json(200, body, headers: [("Cache-Control", "no-store")])
        }
    }

    private static func showPresence(_ call: Call) throws -> Answer {
        let id = try call.pathID(0, Shop.self)
        return .read { tx in
            let shop = try requireShop(id, tx)
            return response(try presence(in: id, tx), shop)
        }
    }

    /// `PUT …/presence/me` `{"code": "…"}`: marks the caller as present for the next ten minutes.
    private static func arrive(_ call: Call) throws -> Answer {
        let id = try call.pathID(0, Shop.self)
        let typed = try call.optionalBody { $0.optionalString("code", bytesMax: PresenceLimits.typedBytesMax) }
        return .write(locking: .user(call.caller.userId)) { tx in
            let shop = try requireShop(id, tx)
            if shop.requiresCode, let refusal = try refusal(of: typed, at: id, tx) { return .problem(refusal) }
            let presence = Presence(shopId: id, source: shop.requiresCode ? .code : .claim, at: tx.now)
            return response(try store(presence, tx), shop)
        }
    }

    /// Returns the reason for refusing a code; nil if it is the shop's.
    ///
    /// The failure is returned and not thrown, because the attempt must be stored.
    private static func refusal(of typed: String?, at shopId: ID<Shop>, _ tx: Transaction) throws -> Failure? {
        guard let typed else {
            throw Failure.forbidden("The shop requires the code that it displays.", code: "presence.code_required")
        }
        let attempts = try ownAttempts(tx)
        if let wait = attempts.waitSeconds(at: tx.now) {
            throw Failure(
                .rateLimited, "presence.too_many_codes", "You have entered too many wrong codes. Try again later.",
                retryAfterSeconds: wait)
        }
        guard try !isValid(typed, at: shopId, tx) else { return nil }
        try store(attempts.addingFailure(at: tx.now), tx)
        return .forbidden("The code is wrong. Enter the code that the shop displays.", code: "presence.wrong_code")
    }

    /// `DELETE …/presence/me`: removes the caller's presence, if there is any.
    private static func leave(_ call: Call) throws -> Answer {
        let id = try call.pathID(0, Shop.self)
        return .write(locking: .user(call.caller.userId)) { tx in
            _ = try requireShop(id, tx)
            try removePresence(in: id, tx)
            return .noContent
        }
    }

    private static func response(_ presence: Presence?, _ shop: DJShop) -> Response {
        Response.json(200) { writer in
            writer.member("shopId", shop.session.shopId)
            writer.member("isPresent", presence != nil)
            writer.member("source", presence?.source.rawValue)
            writer.member("since", presence?.since)
            writer.member("expiresAt", presence?.expiresAt)
            writer.member("codeRequired", shop.requiresCode)
        }
    }
}
