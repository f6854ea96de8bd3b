import Domain
import Push
import Values

/// The body of `PUT /v1/devices/{id}`: `{platform, app?, environment?}` and the address, as its provider reads it.
struct DeviceDraft: Sendable {
    let target: PushTarget
    private let app: String?
    private let environment: Device.Environment

    /// - Throws: 422 with the places of the mistakes. The rules depend on the platform, so a mistake there is the only one.
    init(reading fields: inout Fields, _ push: PushSettings) throws(Failure) {
        let provider = try Self.provider(reading: &fields, push)
        app = fields.optionalString("app", bytesMax: AddressLimits.appBytesMax)
        environment = fields.optionalWord("environment") ?? .production
        Self.checkMembers(of: type(of: provider), app: app, environment: environment, in: &fields)
        target = try provider.target(
            reading: &fields, of: PushApp(id: app, isSandbox: environment == .sandbox))
    }

    private static func provider(
        reading fields: inout Fields, _ push: PushSettings
    ) throws(Failure) -> any PushProvider {
        guard let name = fields.optionalString("platform"), PushProviders.all.contains(where: { $0.name == name })
        else {
            throw .invalid("/platform", "must be one of \(names(of: PushProviders.all))")
        }
        guard let provider = push.provider(of: name) else {
            let known = names(of: push.providers.map { type(of: $0) })
            throw .invalid("/platform", "\(name) is not set up here; use one of \(known)")
        }
        return provider
    }

    /// Refuses members that only other providers have.
    private static func checkMembers(
        of provider: any PushProvider.Type, app: String?, environment: Device.Environment, in fields: inout Fields
    ) {
        if let app, !PushApp.isBundleID(app) {
            fields.reject("app", "must be a bundle id: letters, digits, hyphens and dots")
        }
        if !provider.hasApps {
            let known = names(of: PushProviders.all.filter { $0.hasApps })
            if app != nil { fields.reject("app", "is only allowed for \(known)") }
            if environment == .sandbox { fields.reject("environment", "can be sandbox only for \(known)") }
        }
        for member in Set(PushProviders.all.map { $0.addressMember }).sorted() where member != provider.addressMember {
            guard fields.value(member) != nil else { continue }
            let known = names(of: PushProviders.all.filter { $0.addressMember == member })
            fields.reject(member, "is only allowed for \(known)")
        }
    }

    private static func names(of providers: [any PushProvider.Type]) -> String {
        providers.map { $0.name }.joined(separator: ", ")
    }

    /// Returns the device of the registration.
    ///
    /// - Parameter createdAt: The time of an earlier registration, if any.
    func device(_ id: ID<Device>, createdAt: Timestamp?, at now: Timestamp) -> Device {
        Device(
            id: id, platform: target.provider.name, app: app, environment: environment, createdAt: createdAt, at: now)
    }
}
