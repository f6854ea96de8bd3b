/// The limits of the addresses of devices, each with its reason.
public enum AddressLimits {
    /// Bytes of a token. APNs and FCM document no maximum; theirs have 64 to 300.
    static let tokenBytesMax = 4096
    /// Bytes of an app's bundle id.
    public static let appBytesMax = 155
    /// Bytes of the address of a browser's push service.
    static let endpointBytesMax = 2048
}
