/// The list of all providers.
public enum PushProviders {
    public static let all: [any PushProvider.Type] = [
        APNs.self,
        FCM.self,
        WebPush.self,
    ]
}
