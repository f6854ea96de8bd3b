import Database

/// The notification preferences of each user: sound, haptics, quiet hours (VIS FR-5.2, FR-5.3).
enum PreferencesFeature {
    static let feature = Feature(
        name: "preferences", tables: [preferences], migrations: migrations, endpoints: endpoints)
}
