import Database
import Domain
import Values

extension ShopsFeature {
    private static let leaving = Unscoped.reaction("an erased person works in no shop")

    /// Removes an erased barber from every shop, whose queue is then computed again.
    static let personStep = PersonStep("shops.barbers") { person, place, tx in
        let last = try tx.lastID(
            after: place, of: PersonStep.lookedUpAtOnce, in: WalkedTable(shops, by: "shop_id", leaving))
        guard let last else { return nil }
        let found: [ID<Shop>] = try tx.db.rows(
            """
            SELECT shop.shop_id FROM \(shops, within: tx.tenant, leaving) AS shop
            JOIN \(barbers, within: tx.tenant, leaving) AS barber ON barber.tenant = shop.tenant
                AND barber.shop_id = shop.shop_id AND barber.barber_id = \(person)
            WHERE shop.shop_id > \(place ?? "") AND shop.shop_id <= \(last)
            ORDER BY shop.shop_id
            """
        ) { try $0.id(0) }
        try tx.lock(found.map { .shop($0) })
        for id in found {
            try removeBarber(ID(person.text), of: id, tx)
            tx.record(.shopQueueTouched(id))
        }
        return last
    }
}
