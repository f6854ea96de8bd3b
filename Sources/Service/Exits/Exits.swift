import Domain
import MicroHTTP
import Push
import Values

#if DEBUG
    import Foundation
#endif

/// The exits of the service: its answers, events, webhooks and push messages.
///
/// Debug builds record what leaves if the variable `TEST_EXITS` names a folder, and `Tests/exits` judges the records by
/// the contract. In release builds these functions are empty.
enum Exits {
    #if DEBUG
        private static let recorder = ProcessInfo.processInfo.environment["TEST_EXITS"].map(ExitRecorder.init(folder:))
    #endif

    /// Notes an answer as it leaves, with all its header fields.
    static func note(_ response: inout Response, to request: Request) {
        #if DEBUG
            recorder?.note(&response, to: request)
        #endif
    }

    /// Has a server note what it sends to streams.
    static func watch(_ configuration: inout ServerConfiguration) {
        #if DEBUG
            guard let recorder else { return }
            configuration.sendsToStream = { recorder.note(events: $0) }
        #endif
    }

    static func note(webhook body: [UInt8], type: WebhookType) {
        #if DEBUG
            recorder?.note(body, as: .webhook, named: type.rawValue)
        #endif
    }

    static func note(push message: PushMessage, to target: PushTarget, _ platform: Device.Platform) {
        #if DEBUG
            recorder?.note(target.payload(of: message), as: .push, named: platform.rawValue)
        #endif
    }
}
