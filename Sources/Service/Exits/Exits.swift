import Domain
import MicroHTTP
import OutboundHTTP
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

    /// Has a server note the bytes that it sends to streams.
    static func watch(_ configuration: inout ServerConfiguration) {
        #if DEBUG
            guard let recorder else { return }
            configuration.sendsToStream = { recorder.note(events: $0) }
        #endif
    }

    static func note(webhook request: OutboundPost, type: WebhookType) {
        #if DEBUG
            recorder?.note(request, as: .webhook, named: type.rawValue)
        #endif
    }

    /// What notes the requests of a client of push services. A browser's message is noted as it was before encryption.
    static var pushObserver: PushClient.Observer? {
        #if DEBUG
            guard let recorder else { return nil }
            return { message, target, request in
                let payload = target.address.payload(of: message)
                recorder.note(request, as: .push, named: target.provider.name, payload: payload)
            }
        #else
            nil
        #endif
    }
}
